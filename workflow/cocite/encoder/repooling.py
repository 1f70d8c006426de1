"""A trained encoder with another pooling: the same weights, so that one training is scored with several poolings."""

import os
from pathlib import Path

from cocite.encoder import poolings
from cocite.encoder.model import CARD
from cocite.ground.atomic import atomic_path, read_json, write_json
from cocite.ground.errors import InputError


def repool(model: Path, pooling: str, output: Path) -> None:
    """Write the folder of an encoder that differs in its pooling alone; all else is linked to `model`.

    Raises `InputError` if one of the two poolings is by sentence, which takes other weights and tokens.
    """
    if any(map(poolings.is_by_sentence, (pooling, poolings.pooling_in(model)))):
        raise InputError(f"{model}: a pooling by sentence is no alternative to another one.")
    with atomic_path(output) as folder:
        folder.mkdir()
        for file in sorted(model.iterdir()):
            if file.name not in (poolings.FOLDER, CARD) and not file.name.startswith("."):
                (folder / file.name).symlink_to(os.path.relpath(file.resolve(), output.resolve()))
        own = read_json(model / poolings.FOLDER / "config.json")
        kept = {key: value for key, value in own.items() if not key.startswith("pooling_mode")}
        (folder / poolings.FOLDER).mkdir()
        write_json(folder / poolings.FOLDER / "config.json", kept | poolings.flags_of(pooling))
