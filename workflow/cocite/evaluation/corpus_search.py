"""Search of the whole corpus by held-out papers: by vectors, or by how often papers are cited.

The vectors, or the texts, of all papers stream past those of the queries in blocks. Memory holds a block, the best
answers of each query, and some tens of bytes for each paper. Equal similarities are ordered at random, the same way
each time. Products are taken in double precision and rounded, so that equal vectors tie.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.config.benchmarks.holdout import CITATION_CLASSES, MOST_CITED
from cocite.core.id_sets import Ids
from cocite.core.progress import progress
from cocite.core.randomness import priorities
from cocite.core.tables.files import open_table, read_table, table_in, vectors_of, vectors_of_papers
from cocite.core.written_ids import look_up
from cocite.evaluation.scored import UnscorableError

DEPTH = 1000
"""Answers of each query that MAP looks at, as runs of TREC have them."""
SHARE_OF_MOST_CITED = 0.01
ROUNDING = 1e-9
"""Squared distances below this share of the squared lengths are 0."""
PAPERS_AT_ONCE = 4096
PAIRS_AT_ONCE = PAPERS_AT_ONCE * 1500
"""Queries times papers that are compared at once; with more queries, blocks have fewer papers."""

Block = tuple[Ids, NDArray[np.float32]]
"""Papers, and the similarity of each query to each of them; more is nearer, and -inf is no answer."""


class Popularity(NamedTuple):
    """The papers that are searched, ascending, and how often each is cited in training."""

    papers: Ids
    citations: Ids

    def citations_of(self, papers: Ids) -> Ids:
        """The citations of some of them; of other papers, -1."""
        places, is_there = look_up(self.papers, papers)
        return np.where(is_there, self.citations[np.where(is_there, places, 0)], -1)

    @classmethod
    def read(cls, path: Path) -> "Popularity":
        """Read the table popularity."""
        table = read_table(path, "popularity")
        return cls(table["corpusid"].to_numpy(), table["citations"].to_numpy())

    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The classes of citations, from and to, and that of the most cited papers, at most 1% of them."""
        most = min(max(1, round(SHARE_OF_MOST_CITED * len(self.papers))), len(self.papers) - 1)
        least = int(np.partition(self.citations, -most - 1)[-most - 1]) + 1 if most else 1
        return {**CITATION_CLASSES, MOST_CITED: (least, np.inf)}


@dataclass
class Answers:
    """The nearest papers of each query among the blocks so far."""

    queries: Ids
    rows: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    """The place of the query of each answer."""
    papers: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    nearness: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    least: NDArray[np.float32] | None = None
    """What an answer of each query must reach."""

    def add(self, block: Block) -> None:
        """Take the answers of a block; keep a few times as many as are wanted, at most."""
        papers, nearness = block
        places, is_there = look_up(papers, self.queries)
        nearness[np.flatnonzero(is_there), places[is_there]] = -np.inf  # no paper finds itself
        least = np.full(len(self.queries), -np.inf, np.float32) if self.least is None else self.least
        rows, columns = np.nonzero((nearness >= least[:, None]) & (nearness > -np.inf))
        self.rows = np.concatenate([self.rows, rows])
        self.papers = np.concatenate([self.papers, papers[columns]])
        self.nearness = np.concatenate([self.nearness, nearness[rows, columns]])
        if len(self.rows) > 3 * DEPTH * len(self.queries):
            self.cut()

    def cut(self) -> None:
        """Put the answers in order, query by query, and drop those beyond the depth."""
        ties = priorities(0, "equal answers", self.papers)
        order = np.lexsort((ties, -self.nearness, self.rows))
        starts = np.searchsorted(self.rows[order], np.arange(len(self.queries) + 1))
        rank = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
        self.least = np.full(len(self.queries), -np.inf, np.float32)
        is_last = rank == DEPTH - 1
        self.least[self.rows[order[is_last]]] = self.nearness[order[is_last]]
        kept = order[rank < DEPTH]
        self.rows, self.papers, self.nearness = self.rows[kept], self.papers[kept], self.nearness[kept]

    def ranked(self) -> dict[int, Ids]:
        """The papers that each query finds, the nearest first."""
        self.cut()
        starts = np.searchsorted(self.rows, np.arange(1, len(self.queries)))
        return dict(zip(self.queries.tolist(), np.split(self.papers, starts), strict=True))


class SearchResult(NamedTuple):
    """What a search of the corpus gives."""

    answers: dict[int, Ids]
    """The papers that each query finds, the nearest first."""
    documents: int
    """Papers that are searched, and queries that are not among them."""
    missing: int
    """How many of these could not be compared."""


Search = Callable[[Ids, Popularity], SearchResult]
"""From queries, ascending, and the papers that are searched to their answers."""


def by_vectors(folder: Path) -> Search:
    """Search by minus the squared Euclidean distance, as the other tasks of held-out papers rank."""

    def search(queries: Ids, popularity: Popularity) -> SearchResult:
        files = sorted(folder.glob("*.parquet"))
        vectors, is_known = vectors_of_papers(files, table_in(files[0]), queries)
        vectors, answers = vectors[is_known].astype(np.float64), Answers(queries[is_known])
        seen, size = np.zeros(len(popularity.papers), np.bool_), block_size(len(vectors))
        for places, matrix in progress(_blocks(files, popularity, size), of="Searched", unit="block"):
            squares = (vectors**2).sum(axis=1)[:, None] + (matrix**2).sum(axis=1)
            nearness = 2 * vectors @ matrix.T - squares
            nearness[nearness > -ROUNDING * squares] = 0  # the same vector
            answers.add((popularity.papers[places], nearness.astype(np.float32)))
            seen[places] = True
        is_outside = popularity.citations_of(queries) < 0
        missing = np.count_nonzero(~seen) + np.count_nonzero(is_outside & ~is_known)
        return SearchResult(answers.ranked(), len(seen) + int(np.count_nonzero(is_outside)), int(missing))

    return search


def block_size(queries: int) -> int:
    """How many papers a block has."""
    return max(1, min(PAPERS_AT_ONCE, PAIRS_AT_ONCE // max(queries, 1)))


def _blocks(files: Iterable[Path], popularity: Popularity, size: int) -> Iterator[tuple[Ids, NDArray[np.float64]]]:
    """The places of papers that are searched, and their vectors. Raises `UnscorableError` if one is not finite."""
    for path in files:
        with open_table(path, table_in(path)) as file:
            for batch in file.iter_batches(size, columns=["corpusid", "vector"]):
                papers, matrix = batch["corpusid"].to_numpy(), vectors_of(pa.table(batch)).astype(np.float64)
                places, is_searched = look_up(popularity.papers, papers)
                if not np.isfinite(matrix).all():
                    raise UnscorableError(
                        f"{path}: a vector is not finite; the model's training has probably diverged."
                    )
                yield places[is_searched], matrix[is_searched]


def by_citations_alone(queries: Ids, popularity: Popularity) -> SearchResult:
    """The most cited papers, the same for every query. Raises `UnscorableError` if no paper is cited in training."""
    if not popularity.citations.any():
        raise UnscorableError("No paper is cited in training, so that citations rank nothing.")
    ties = priorities(0, "equal answers", popularity.papers)
    first = popularity.papers[np.lexsort((ties, -popularity.citations))[: DEPTH + 1]]
    answers = {query: first[first != query][:DEPTH] for query in queries.tolist()}
    return SearchResult(answers, len(popularity.papers), 0)
