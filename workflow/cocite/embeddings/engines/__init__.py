"""Engines that train graph embeddings, each in a package of its own; `biggraph/` holds PyTorch-BigGraph.

An engine offers what `Engine` says: it lays out the edges of a graph as it reads them, opens what it has laid out, and
trains from that to one vector a paper. What all engines share lies beside this package:

    edges.py            the table edges in blocks, which edges are held out, and what an imported graph offers
    link_prediction.py  the held-out edges with their negatives, and how far above them they score
    vectors.py          the vectors and the scores as tables
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cocite.embeddings.edges import ImportedGraph
from cocite.embeddings.vectors import Vectors

ImportSettings = TypeVar("ImportSettings", contravariant=True)
TrainingSettings = TypeVar("TrainingSettings", contravariant=True)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training leaves."""

    vectors: Vectors
    """The vectors after the last epoch, by row."""
    scores: list[dict[str, Any]]
    """What `link_prediction.measure` gave after each epoch."""


class Engine(Protocol[ImportSettings, TrainingSettings]):
    """What an engine has to offer, with settings of its own."""

    def import_edges(
        self, edges: Sequence[Path], settings: ImportSettings, *, directed: bool, seed: int, output: Path
    ) -> None:
        """Make the folder `output` of the files of the table edges, whole or not at all.

        An undirected edge is trained on both ways. `edges.held_out` says which edges are held out. The same edges and
        seed give the same bytes, in whatever buckets the edges come.
        """

    def open_graph(self, imported: Path) -> ImportedGraph:
        """The graph in a folder that the engine has made."""

    def train(self, imported: Path, settings: TrainingSettings, *, seed: int, state: Path) -> Trained:
        """Train to the end, and measure after each epoch.

        The folder `state` (see `ground.checkpoints`) holds what a killed training goes on from. It is removed if it
        belongs to other settings, edges or another seed, and stays at the end: the caller removes it once the results
        are written, and the vectors may lie in it until then.
        """
