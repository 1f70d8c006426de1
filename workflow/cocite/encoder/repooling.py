"""A trained encoder with another pooling: the same weights, so that one training is scored with several poolings."""

import os
import shutil
from pathlib import Path

from cocite.encoder import poolings
from cocite.encoder.model import CARD
from cocite.ground.atomic import atomic_path, read_json, write_json, write_text
from cocite.ground.errors import InputError

REMARK = """
The pooling is {pooling}, and was {trained} in the training that the card describes. The weights are the same.
"""


def repool(model: Path, pooling: str, output: Path) -> None:
    """Write the folder of an encoder that differs from `model` in its pooling alone; the weights take no more disk.

    Raises `InputError` if one of the two poolings is by sentence, which takes other weights and tokens.
    """
    trained = poolings.pooling_in(model)
    if any(map(poolings.is_by_sentence, (pooling, trained))):
        raise InputError(f"{model}: a pooling by sentence is no alternative to another one.")
    changed = Path(poolings.FOLDER, "config.json")
    own = read_json(model / changed)
    kept = {key: value for key, value in own.items() if not key.startswith("pooling_mode")}
    with atomic_path(output) as folder:
        shutil.copytree(model, folder, symlinks=True, ignore=shutil.ignore_patterns(".*"), copy_function=_link)
        for name in (changed, CARD):
            (folder / name).unlink(missing_ok=True)
        write_json(folder / changed, kept | poolings.flags_of(pooling))
        if (model / CARD).is_file():
            title, line, rest = (model / CARD).read_text(encoding="utf-8").partition("\n# ")
            heading, _, text = rest.partition("\n")
            remark = REMARK.format(pooling=pooling, trained=trained)
            write_text(folder / CARD, f"{title}{line}{heading}\n{remark}{text}")


def _link(source: str, target: str) -> None:
    """Another name of a file, or a copy of it where the disk has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
