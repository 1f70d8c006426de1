"""Search of the whole corpus by held-out papers: by vectors, by words, by how often papers are cited, or by an index.

The vectors, or the texts, of all papers stream past those of the queries in blocks (`core.searching`). Products are
taken in double precision and rounded, so that equal vectors tie.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cocite.config.benchmarks.holdout import CITATION_CLASSES, MOST_CITED
from cocite.core.progress import progress
from cocite.core.randomness import priorities
from cocite.core.searching import Answers, block_size, vector_blocks
from cocite.core.tables.files import read_table, table_in, vectors_of_papers
from cocite.core.words import Formula, WordSearch
from cocite.core.written_ids import Ids, look_up
from cocite.evaluation.scored import UnscorableError

DEPTH = 1000
"""Answers of each query that MAP looks at, as runs of TREC have them."""
SHARE_OF_MOST_CITED = 0.01
ROUNDING = 1e-9
"""Squared distances below this share of the squared lengths are 0."""


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
        vectors, answers = vectors[is_known].astype(np.float64), Answers(queries[is_known], DEPTH)
        seen, size = np.zeros(len(popularity.papers), np.bool_), block_size(len(vectors))
        for places, matrix in progress(vector_blocks(files, popularity.papers, size), of="Searched", unit="block"):
            if not np.isfinite(matrix).all():
                raise UnscorableError(f"{folder}: a vector is not finite; the model's training has probably diverged.")
            squares = (vectors**2).sum(axis=1)[:, None] + (matrix**2).sum(axis=1)
            nearness = 2 * vectors @ matrix.T - squares
            nearness[nearness > -ROUNDING * squares] = 0  # the same vector
            answers.add((popularity.papers[places], nearness.astype(np.float32)))
            seen[places] = True
        is_outside = popularity.citations_of(queries) < 0
        missing = np.count_nonzero(~seen) + np.count_nonzero(is_outside & ~is_known)
        return SearchResult(answers.ranked(), len(seen) + int(np.count_nonzero(is_outside)), int(missing))

    return search


def by_words(folder: Path, formula: Formula) -> Search:
    """Search the table papers by the words of the queries. A paper that shares no word with a query is no answer."""

    def search(queries: Ids, popularity: Popularity) -> SearchResult:
        by_words = WordSearch(folder, queries, popularity.papers, formula)
        answers = Answers(by_words.queries, DEPTH)
        for block in by_words.blocks():
            answers.add(block)
        outside = int(np.count_nonzero(popularity.citations_of(queries) < 0))
        missing = len(queries) - len(by_words.queries)
        return SearchResult(answers.ranked(), len(popularity.papers) + outside, missing)

    return search


def by_answers(path: Path) -> Search:
    """The answers of an index, in the order of their scores."""

    def search(queries: Ids, popularity: Popularity) -> SearchResult:
        table = read_table(path, "answers")
        table = table.filter(table["is_found"])
        rows, is_asked = look_up(queries, table["query"].to_numpy())
        papers, scores = (table[name].to_numpy()[is_asked] for name in ("paper", "score"))
        answers = Answers(queries, DEPTH, rows[is_asked], papers, scores)
        outside = int(np.count_nonzero(popularity.citations_of(queries) < 0))
        return SearchResult(answers.ranked(), len(popularity.papers) + outside, 0)

    return search


def by_citations_alone(queries: Ids, popularity: Popularity) -> SearchResult:
    """The most cited papers, the same for every query. Raises `UnscorableError` if no paper is cited in training."""
    if not popularity.citations.any():
        raise UnscorableError("No paper is cited in training, so that citations rank nothing.")
    ties = priorities(0, "equal answers", popularity.papers)
    first = popularity.papers[np.lexsort((ties, -popularity.citations))[: DEPTH + 1]]
    answers = {query: first[first != query][:DEPTH] for query in queries.tolist()}
    return SearchResult(answers, len(popularity.papers), 0)
