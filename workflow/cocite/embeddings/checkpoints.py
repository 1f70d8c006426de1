"""What a killed training goes on from: a folder that tells what it belongs to, and checkpoints that commit whole.

settings.json    what the training depends on: settings, seed, and a hash of the imported edges
checkpoint/      PyTorch-BigGraph's files, one version an iteration (a chunk of an epoch)
scores/          link prediction after each epoch, a file each
"""

import hashlib
import shutil
from pathlib import Path
from typing import Any

from torchbiggraph.checkpoint_manager import CHECKPOINT_STORAGES
from torchbiggraph.checkpoint_storage import FileCheckpointStorage

from cocite.embeddings.imported import ENTITY
from cocite.ground.progress import report
from cocite.tables.files import read_json, write_json, write_text

SCHEME = "whole"


@CHECKPOINT_STORAGES.register_as(SCHEME)
class WholeCheckpointStorage(FileCheckpointStorage):
    """PyTorch-BigGraph's storage, but the file that commits a version is replaced, not rewritten.

    The original truncates `checkpoint_version.txt` first; killed at that moment, it would start from nothing.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url.removeprefix(f"{SCHEME}://"))

    def save_version(self, version: int) -> None:
        """Commit a version, of which all other files are written."""
        write_text(self.get_version_file(), f"{version}\n")


class TrainingState:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.owner = folder / "settings.json"
        self.url = f"{SCHEME}://{(folder / 'checkpoint').resolve()}"

    def open(self, belongs_to: dict[str, Any]) -> int:
        """Number of iterations that are done and can be gone on from; 0 after whatever belongs to others is removed."""
        before = read_json(self.owner) if self.owner.exists() else None
        if before is not None and before != belongs_to:
            changed = sorted(key for key in belongs_to if before.get(key) != belongs_to[key])
            report(f"{self.folder}: {', '.join(changed)} changed since the training that was killed; starting afresh")
        if before != belongs_to:
            self.remove()
            write_json(self.owner, belongs_to)
        # PyTorch-BigGraph replays this log on start; a kill can leave a line of it torn or an iteration in it twice.
        (self.folder / "checkpoint" / "training_stats.json").unlink(missing_ok=True)
        return self.version()

    def version(self) -> int:
        """Number of iterations that the committed checkpoint holds."""
        return int(FileCheckpointStorage(str(self.folder / "checkpoint")).load_version())

    def vectors(self, part: int, version: int) -> Path:
        """HDF5 file of the vectors of a partition after so many iterations, in the order of the imported names."""
        return self.folder / "checkpoint" / f"embeddings_{ENTITY}_{part}.v{version}.h5"

    def keep_scores(self, epoch: int, scores: dict[str, Any]) -> None:
        """Keep the scores of an epoch."""
        write_json(self.folder / "scores" / f"{epoch}.json", scores)

    def scores(self, epochs: int) -> list[dict[str, Any]]:
        """The scores of all epochs, the first first."""
        return [read_json(self.folder / "scores" / f"{epoch}.json") for epoch in range(1, epochs + 1)]

    def remove(self) -> None:
        """Remove the folder; the owner goes first, so that what a kill may leave of it belongs to no training."""
        self.owner.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def fingerprint(folder: Path) -> str:
    """A hash of all files of a folder and their names."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
