"""Build the approximate index that a configuration asks for."""

from collections.abc import Sequence
from pathlib import Path

from cocite.ground.errors import InputError
from cocite.neighbours.choices import IndexSettings, metric_of
from cocite.neighbours.clusters import build_lists
from cocite.neighbours.links import build_links
from cocite.neighbours.vectors import open_vectors


def build_index(
    vectors: Path, settings: IndexSettings, *, papers: Sequence[Path] = (), seed: int, threads: int, output: Path
) -> None:
    """Write the folder of an index of the papers in the table `graph_embeddings`, or of those that have a text."""
    if settings.index not in ("ivf", "hnsw"):
        raise InputError(f"index {settings.index!r} cannot be built; it must be ivf or hnsw.")
    table, metric = open_vectors(vectors, papers), metric_of(settings)
    if settings.index == "ivf":
        build_lists(table, output, metric=metric, lists=settings.lists, seed=seed, threads=threads)
    else:
        build_links(table, output, metric=metric, links=settings.links, breadth=settings.ef_construction)
