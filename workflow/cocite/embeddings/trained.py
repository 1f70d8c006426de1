"""What a training of any engine leaves: vectors by row of the imported graph, and the scores of each epoch.

Vectors that have collapsed are refused: neighbours among equal vectors would be in order of id, and look like any
others. A sample of the papers with an edge to train on is compared. Papers with the same neighbours, with or without
themselves, may have the same vector, as `fastrp` gives them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.embeddings import AnyEngine
from cocite.config.entries import as_json
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import read_json, write_json
from cocite.core.checkpoints import remove_state
from cocite.core.errors import InputError
from cocite.core.options import Omissions, Seed, State, WrittenSettings
from cocite.core.progress import report
from cocite.core.randomness import generator, mix
from cocite.core.tables.files import vector_column, write_omissions, write_table
from cocite.core.written_ids import distinct
from cocite.embeddings.edges import TRAINING, Rows
from cocite.embeddings.imported import ImportedFolder

VALUES_IN_MEMORY = 16_000_000  # numbers of vectors that are read, made or written at a time
SAMPLED = 10_000
VALUES_SAMPLED = 8_000_000
SHARE = 0.1  # share of the papers that may have the vector of a paper with other neighbours by chance
STEPS = 2**16  # vectors are equal if their directions and lengths are, rounded to this part of their length


class Vectors:
    """The vectors of all papers by row, loaded on demand from the parts of partitions, papers × dimension: arrays, or
    what has their shape and rows."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts
        self.starts = np.cumsum([0, *map(len, parts)])

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.parts[0].shape[1])

    def of(self, rows: Rows) -> NDArray[np.float32]:
        """A copy of the vectors of some rows, rows × dimension."""
        found = np.empty((len(rows), self.dimension), dtype=np.float32)
        for part, start, stop in zip(self.parts, self.starts, self.starts[1:], strict=False):
            chosen = (start <= rows) & (rows < stop)
            found[chosen] = part[rows[chosen] - start]
        return found


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training leaves."""

    vectors: Vectors
    """The vectors at the end, by row of the imported graph."""
    scores: list[dict[str, Any]]
    """What `link_prediction.measure` gave after each epoch."""


def train(
    imported: Annotated[Path, typer.Argument(help="Folder of the imported edges.")],
    settings: GivenAsJson[AnyEngine],
    *,
    seed: Seed,
    state: State,
    vectors: Annotated[Path, typer.Option(help="Table graph_embeddings.")],
    scores: Annotated[Path, typer.Option(help="Table graph_scores.")],
    written_settings: WrittenSettings,
    omissions: Omissions,
) -> None:
    """Train a graph embedding and measure it; a killed training is resumed."""
    trained = settings.train(imported, seed=seed, state=state)
    untrained = write_vectors(vectors, ImportedFolder(imported), trained.vectors, settings.remedy)
    write_scores(scores, trained.scores)
    write_omissions(omissions, {"papers whose edges were all held out: never trained, no vector": untrained})
    write_json(written_settings, {**as_json(settings), "seed": seed})
    remove_state(state)


def kept_scores(state: Path, epochs: int) -> list[dict[str, Any]]:
    """The scores of all epochs, the first first."""
    return [read_json(score_file(state, epoch)) for epoch in range(1, epochs + 1)]


def score_file(state: Path, epoch: int) -> Path:
    """The file of the scores of an epoch."""
    return state / "scores" / f"{epoch}.json"


def write_vectors(path: Path, graph: ImportedFolder, vectors: Vectors, remedy: str) -> int:
    """Write table `graph_embeddings`; return the number of papers left out because all their edges are held out. Those
    were never trained. Raises `InputError` if vectors are not finite, or collapsed; it ends with `remedy`."""
    papers = graph.papers()
    has_training_edge = np.zeros(len(papers), dtype=bool)
    for lhs, rhs in graph.edges(TRAINING):
        has_training_edge[lhs] = has_training_edge[rhs] = True
    trained = np.flatnonzero(has_training_edge)
    rows = trained[np.argsort(papers[trained])]
    size = min(len(trained), SAMPLED, max(1, VALUES_SAMPLED // vectors.dimension))
    sample = np.sort(generator(1, "collapse").choice(trained, size, replace=False))
    _check_distinct(graph, sample, _finite(vectors, sample, remedy), remedy)
    at_once = max(1, VALUES_IN_MEMORY // vectors.dimension)
    batches = (
        pa.record_batch({"corpusid": papers[block], "vector": vector_column(_finite(vectors, block, remedy))})
        for block in (rows[start : start + at_once] for start in range(0, len(rows), at_once))
    )
    write_table(path, "graph_embeddings", batches)
    untrained = len(papers) - len(rows)
    report(f"{len(rows):,} papers with a vector; {untrained:,} left out whose edges were all held out")
    return untrained


def _check_distinct(graph: ImportedFolder, rows: Rows, vectors: NDArray[np.float32], remedy: str) -> None:
    """Raise `InputError`, which ends with `remedy`, if too many vectors of the papers in these rows are equal."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, None]
    directions = np.divide(vectors, lengths, where=lengths > 0, out=np.zeros(vectors.shape))
    steps = np.hstack([directions, np.log(lengths, where=lengths > 0, out=np.zeros(lengths.shape))]) * STEPS
    equal = len(rows) - len(np.unique(np.rint(steps).astype(np.int32), axis=0))
    if equal > SHARE * len(rows):
        equal -= _count_twins(graph, rows)
    if equal > SHARE * len(rows):
        raise InputError(
            f"The graph embedding has collapsed: of {len(rows):,} papers, {equal:,} have the vector of another paper "
            f"that has other neighbours in the graph ({int((~vectors.any(axis=1)).sum()):,} vectors are zeros); "
            f"{remedy}."
        )


def write_scores(path: Path, scores: Sequence[Mapping[str, Any]]) -> None:
    """Write table `graph_scores` from the scores of each epoch (see `link_prediction.measure`)."""
    rows = [
        {"epoch": epoch, "metric": metric, "filtered": kind == "filtered", "value": value, "edges": measured["edges"]}
        for epoch, measured in enumerate(scores, start=1)
        for metric in sorted(measured["raw"])
        for kind, value in (("raw", measured["raw"][metric]), ("filtered", measured["filtered"][metric]))
    ]
    write_table(path, "graph_scores", pa.Table.from_pylist(rows))


def _finite(vectors: Vectors, rows: Rows, remedy: str) -> NDArray[np.float32]:
    found = vectors.of(rows)
    if not np.isfinite(found).all():
        raise InputError(f"The graph embedding has vectors that are not finite; {remedy}.")
    return found


def _count_twins(graph: ImportedFolder, rows: Rows) -> int:
    """Number of the papers in these rows, rising, with the neighbours of another one, with or without themselves."""
    papers, found = int(graph.starts()[-1]), [np.empty(0, dtype=np.int64)]
    place = np.full(papers, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    for ends in graph.edges(TRAINING):
        for paper, other in (ends, ends[::-1]):
            chosen = place[paper] >= 0
            found.append(place[paper[chosen]] * papers + other[chosen])
    pairs = distinct(*found)
    sums = np.zeros(len(rows), dtype=np.uint64)
    np.add.at(sums, pairs // papers, mix((pairs % papers).astype(np.uint64)))
    with_themselves = sums + mix(rows.astype(np.uint64))
    return sum(len(rows) - len(distinct(each)) for each in (sums, with_themselves))
