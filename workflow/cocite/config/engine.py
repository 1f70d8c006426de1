"""What an engine of graph embeddings is to the configuration: an entry of its settings, one class a module.

The engines are modules of `embeddings/engines`; how to add one is in docs/how-to/new-engine.md.
"""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from cocite.config.entries import Entry, Whole

BYTES_OF_NUMBER = 4


class Engine(Entry):
    """What trains a graph embedding; an engine has a field `engine`, the name of its module."""

    edges: ClassVar[type[Entry]] = Entry
    """The keys of the import that go with this engine (see `config.edges`), beside those of the held-out edges."""

    engine: str
    """What trains the graph embedding."""
    dimension: Annotated[int, Field(ge=2, le=4096)] = 768
    """Length of the vectors."""

    @property
    def cores(self) -> int:
        """Cores that a training uses."""
        return 1

    @property
    def devices(self) -> int:
        """GPUs that a training asks for where there are any."""
        return 0

    @property
    def files(self) -> tuple[Path, ...]:
        """Files outside the run that a training reads; a training is made again when one of them changes."""
        return ()

    @property
    def remedy(self) -> str:
        """What to change if the vectors have collapsed."""
        return "change the settings of its engine"

    def training_memory(self, papers: float, edges_mb: float) -> float:
        """Memory that a training takes, MB.

        `papers` is their number, in the two largest partitions where the import cuts them; `edges_mb` is the size of
        the imported edges.
        """
        return 1000 + 3 * papers * self.dimension * BYTES_OF_NUMBER / 1e6 + 15 * edges_mb

    def training_minutes(self, edges_mb: float) -> float:
        """Time that a training takes, by the size of its imported edges, MB."""
        return 30 + 0.1 * edges_mb

    @abstractmethod
    def train(self, imported: Path, *, seed: int, state: Path) -> Any:
        """Train on the edges in the folder `imported`, measure, and return what `embeddings.vectors.Trained` holds.

        `embeddings.imported.ImportedFolder` reads the folder. `state` (see `core.checkpoints`) holds what a killed
        training resumes from. An engine removes it if it belongs to other settings, edges or another seed, and leaves
        it at the end: the caller removes it once the results are written, and the vectors may lie in it until then.
        """

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A file that is not there."""
        for path in self.files:
            if not path.is_file():
                yield f"{key}: the file {path} does not exist."
