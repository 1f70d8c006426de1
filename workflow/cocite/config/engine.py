"""What an engine of graph embeddings is to the configuration: an entry of its settings, one class a module.

The engines are modules of `embeddings/engines`; how to add one is in docs/how-to/new-engine.md.
"""

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from cocite.config.entries import Entry


class Engine(Entry):
    """What trains a graph embedding; an engine has a field `engine`, the name of its module."""

    engine: str
    """What trains the graph embedding."""
    dimension: Annotated[int, Field(ge=2, le=4096)] = 768
    """Length of the vectors."""

    @property
    def threads(self) -> int:
        """Cores that a training uses."""
        return 1

    def memory_mb(self, vectors: float, edges: float) -> float:
        """Memory that a training takes, MB, by the size of its vectors and of its imported edges, MB as well."""
        return 1000 + 3 * vectors + 15 * edges

    def minutes(self, edges: float) -> float:
        """Time that a training takes, by the size of its imported edges, MB."""
        return 30 + 0.1 * edges

    @abstractmethod
    def train(self, imported: Path, *, seed: int, state: Path) -> Any:
        """Train on the edges in the folder `imported`, measure, and return what `embeddings.vectors.Trained` holds.

        `embeddings.imported.ImportedFolder` reads the folder. `state` (see `ground.checkpoints`) holds what a killed
        training resumes from. An engine removes it if it belongs to other settings, edges or another seed, and leaves
        it at the end: the caller removes it once the results are written, and the vectors may lie in it until then.
        """
