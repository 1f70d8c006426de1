"""What a killed training goes on from: a folder with checkpoints, the best weights so far, and the tokens.

fingerprint.json  what is trained from what; another fingerprint starts afresh
triplets/         tokens of the training and the validation set
unfinished/       the checkpoint that is being written
checkpoint-N/     the last one that was written whole: moved here from `unfinished`, then older ones are removed
best.safetensors  the weights that learn, at the smallest validation loss
tensorboard/      the curves, for those who watch
"""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cocite.errors import InputError
from cocite.files import read_json, write_json

UNFINISHED, BEST, EVENTS = "unfinished", "best.safetensors", "tensorboard"


def open_state(state: Path, fingerprint: dict[str, Any]) -> Path | None:
    """Make the folder ready; return the checkpoint to go on from, or None to start afresh."""
    if _fingerprint_of(state) != fingerprint:
        remove_state(state)
        write_json(state / "fingerprint.json", fingerprint)
    shutil.rmtree(state / UNFINISHED, ignore_errors=True)
    return max(state.glob("checkpoint-*"), key=_step_of, default=None)


def finish_checkpoint(state: Path, name: str) -> None:
    """Move a checkpoint that is written whole to its place, and remove the ones before it."""
    (state / UNFINISHED / name).replace(state / name)
    for older in state.glob("checkpoint-*"):
        if older.name != name:
            shutil.rmtree(older)


def remove_state(state: Path) -> None:
    """Remove the folder, its fingerprint first: what is half removed is then never gone on from."""
    (state / "fingerprint.json").unlink(missing_ok=True)
    shutil.rmtree(state, ignore_errors=True)


def fingerprint_of(files: Iterable[Path]) -> str:
    """One hash over the contents of files and of all files in folders, with their names."""
    digest = hashlib.sha256()
    for path in files:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").hexdigest()
                digest.update(f"{file.relative_to(path)} {content}\n".encode())
    return digest.hexdigest()


def _fingerprint_of(state: Path) -> Any:
    try:
        return read_json(state / "fingerprint.json")
    except InputError:
        return None


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rsplit("-", 1)[1])
