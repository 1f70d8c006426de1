"""PyTorch-BigGraph's checkpoints, in the folder that a killed training goes on from (see `core/checkpoints.py`).

checkpoint/      PyTorch-BigGraph's files, one version an iteration (a chunk of an epoch)
scores/          link prediction after each epoch, a file each
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from torchbiggraph.checkpoint_manager import CHECKPOINT_STORAGES
from torchbiggraph.checkpoint_storage import FileCheckpointStorage

from cocite.core.atomic import read_json
from cocite.core.checkpoints import open_state, write_checked_json
from cocite.core.checksums import add_mark, checked_path, remove_checked, remove_marks
from cocite.embeddings.imported import ENTITY

SCHEME = "whole"


@CHECKPOINT_STORAGES.register_as(SCHEME)
class WholeCheckpointStorage(FileCheckpointStorage):
    """PyTorch-BigGraph's storage, but files have checksums, and the file that commits a version is replaced.

    The original truncates `checkpoint_version.txt` first; killed at that moment, it would start from nothing.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url.removeprefix(f"{SCHEME}://"))

    def save_version(self, version: int) -> None:
        """Commit a version, of which all other files are written."""
        for path in self.path.glob(f"*.v{version}.h5"):
            add_mark(path)
        with checked_path(self.get_version_file()) as temporary:
            temporary.write_text(f"{version}\n")

    def drop_entity_partition(self, version: int, entity_name: str, partition: int) -> None:
        """Remove a file of an earlier version."""
        remove_marks(self.get_entity_partition_file(version, entity_name, partition))
        super().drop_entity_partition(version, entity_name, partition)

    def drop_model(self, version: int) -> None:
        """Remove a file of an earlier version."""
        remove_marks(self.get_model_file(version))
        super().drop_model(version)


class TrainingState:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"{SCHEME}://{(folder / 'checkpoint').resolve()}"

    def open(self, fingerprint: dict[str, Any], *, partitions: int, chunks: int) -> int:
        """Number of iterations that are done and can be gone on from; 0 after what belongs to others is removed.

        An epoch is so many chunks.
        """
        # PyTorch-BigGraph's log of iterations, which it replays on start, has no checksum, and so is removed here: a
        # kill can leave a line of it torn or an iteration in it twice.
        implied = partial(self._implied, partitions, chunks)
        open_state(self.folder, fingerprint, work="training", scratch=["checkpoint/*"], implied=implied)
        version = self.version()
        for path in (self.folder / "checkpoint").glob("*.h5"):
            if not path.name.endswith(f".v{version}.h5"):  # it will be written again, and not in one piece
                remove_checked(path)
        return version

    def version(self) -> int:
        """Number of iterations that the committed checkpoint holds."""
        return int(FileCheckpointStorage(str(self.folder / "checkpoint")).load_version())

    def vectors(self, part: int, version: int) -> NDArray[np.float32]:
        """The vectors of a partition after so many iterations, by row, mapped from disk."""
        return map_vectors(self._vectors(part, version))

    def keep_scores(self, epoch: int, scores: dict[str, Any]) -> None:
        """Keep the scores of an epoch."""
        write_checked_json(self._score(epoch), scores)

    def scores(self, epochs: int) -> list[dict[str, Any]]:
        """The scores of all epochs, the first first."""
        return [read_json(self._score(epoch)) for epoch in range(1, epochs + 1)]

    def _implied(self, partitions: int, chunks: int) -> Iterator[Path]:
        """The files that there must be beside the committed version."""
        version = self.version()
        if version > 0:
            yield self.folder / "checkpoint" / f"model.v{version}.h5"
            yield from (self._vectors(part, version) for part in range(partitions))
            yield from (self._score(epoch) for epoch in range(1, version // chunks + 1))

    def _vectors(self, part: int, version: int) -> Path:
        return self.folder / "checkpoint" / f"embeddings_{ENTITY}_{part}.v{version}.h5"

    def _score(self, epoch: int) -> Path:
        return self.folder / "scores" / f"{epoch}.json"


def map_vectors(checkpoint: Path) -> NDArray[np.float32]:
    """The vectors of a partition without loading them: PyTorch-BigGraph stores them contiguously."""
    with h5py.File(checkpoint) as file:
        vectors = file["embeddings"]
        return np.memmap(checkpoint, np.float32, "r", offset=vectors.id.get_offset(), shape=vectors.shape)
