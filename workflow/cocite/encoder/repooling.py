"""A trained encoder with another pooling: the same weights, so that one training is scored with several poolings."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.aspects import SPACES
from cocite.core.atomic import atomic_path, read_json, write_json
from cocite.core.errors import InputError
from cocite.core.options import Output
from cocite.encoder import poolings
from cocite.encoder.card import add_remark
from cocite.encoder.model import CARD
from cocite.encoder.spaces import spaces_in

REMARK = """
The pooling is {pooling}, and was {trained} in the training that the card describes. The weights are the same.
"""
WITHOUT_SPACES = "The spaces of aspects are left out: their maps are for vectors of the other pooling.\n"


def repool(
    model: Annotated[Path, typer.Argument(help="Folder of the encoder.")],
    pooling: Annotated[str, typer.Option(help="Name of the pooling.")],
    output: Output,
) -> None:
    """Write an encoder with another pooling and without spaces of aspects, and all else of an encoder as links.

    Raises `InputError` if one of the two poolings is by sentence, which takes other weights and tokens.
    """
    trained = poolings.pooling_in(model)
    if any(map(poolings.is_by_sentence, (pooling, trained))):
        raise InputError(f"{model}: a pooling by sentence is no alternative to another one.")
    changed = Path(poolings.FOLDER, "config.json")
    own = read_json(model / changed)
    kept = {key: value for key, value in own.items() if not key.startswith("pooling_mode")}
    with atomic_path(output) as folder:
        left_out = shutil.ignore_patterns(".*", SPACES)
        shutil.copytree(model, folder, symlinks=True, ignore=left_out, copy_function=_link)
        write_json(folder / changed, kept | poolings.flags_of(pooling))
        if (folder / CARD).is_file():
            remark = REMARK.format(pooling=pooling, trained=trained) + (WITHOUT_SPACES if spaces_in(model) else "")
            add_remark(folder / CARD, remark)


def _link(source: str, target: str) -> None:
    """Another name of a file, or a copy of it where the disk has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
