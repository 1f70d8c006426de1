"""The papers that an index finds for each held-out paper, and what it knows of them.

Found are the nearest by the vectors of each model, the best by BM25, and the papers that the nearest by all models cite
or are cited by (their votes). All else is computed for these alone. Vectors and texts stream past in blocks, and of the
links only those of the nearest papers are read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from cocite.config.index import Lists
from cocite.config.settings import GivenAsJson
from cocite.core.adjacency import Adjacency, open_adjacency
from cocite.core.errors import InputError
from cocite.core.options import Output, Papers
from cocite.core.progress import progress, report
from cocite.core.searching import Answers, block_size, of_unit_length, vector_blocks
from cocite.core.tables.files import ages_of_papers, read_table, table_in, vector_column, vectors_of_papers, write_table
from cocite.core.words import UsualFormula, WordSearch
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.retrieval.search import LISTED, TEMPERATURE, VOTES

PAIRS_AT_ONCE = 8192

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Pairs of a query and a paper that is searched; a pair is a number, and they rise."""

    queries: Ids
    papers: Ids
    """All that are searched, ascending."""
    keys: Ids

    @property
    def rows(self) -> Ids:
        """The place of the query of each."""
        return self.keys // len(self.papers)

    @property
    def places(self) -> Ids:
        """The place of the paper of each."""
        return self.keys % len(self.papers)

    def met_in(self, blocks: Iterable[tuple[Ids, NDArray[Any]]]) -> Iterator[tuple[Ids, Ids, NDArray[Any]]]:
        """The pairs with a paper of each block, whose places rise: their numbers, places in the block, its array."""
        order = np.argsort(self.places, kind="stable")
        sought = self.places[order]
        for places, array in blocks:
            if len(places):
                first, end = np.searchsorted(sought, [places[0], places[-1] + 1])
                at, is_there = look_up(places, sought[first:end])
                yield order[first:end][is_there], at[is_there], array

    def joined(self, rows: Ids, places: Ids) -> "Pairs":
        """These and others; no query is paired with itself."""
        others = (self.queries[rows] != self.papers[places]).nonzero()[0]
        keys = distinct(self.keys, rows[others] * len(self.papers) + places[others])
        return Pairs(self.queries, self.papers, keys)


class ModelVectors:
    """The vectors of all papers by one model, on the disk, and those of the queries, of length 1."""

    def __init__(self, folder: Path, pairs: Pairs) -> None:
        """Raises `InputError` where none of the queries has a vector."""
        self.folder, self.files, self.papers = folder, sorted(folder.glob("*.parquet")), pairs.papers
        table = table_in(self.files[0]) if self.files else ""
        vectors, self.is_known = vectors_of_papers(self.files, table, pairs.queries)
        if not self.is_known.any():
            raise InputError(f"{folder}: holds no vector of a held-out paper; embed the corpus by the model first.")
        self.queries = of_unit_length(vectors.astype(np.float64))
        self.size = block_size(len(pairs.queries))

    def _blocks(self) -> Iterator[tuple[Ids, Numbers]]:
        for places, matrix in progress(vector_blocks(self.files, self.papers, self.size), of="Searched", unit="block"):
            if not np.isfinite(matrix).all():
                raise InputError(f"{self.folder}: a vector is not finite; the model's training has probably diverged.")
            yield places, of_unit_length(matrix)

    def nearest(self, pairs: Pairs) -> Pairs:
        """The pairs, and those of each query with the papers that are nearest by the cosine."""
        answers, of_answers = Answers(pairs.queries[self.is_known], LISTED), np.flatnonzero(self.is_known)
        for places, matrix in self._blocks():
            answers.add((self.papers[places], (self.queries[self.is_known] @ matrix.T).astype(np.float32)))
        answers.cut()
        return pairs.joined(of_answers[answers.rows], look_up(self.papers, answers.papers)[0])

    def cosines(self, pairs: Pairs) -> NDArray[np.float32]:
        """The cosine of each pair; NaN where one of the two has no vector."""
        rows, cosines = pairs.rows, np.full(len(pairs.keys), np.nan, np.float32)
        for numbers, at, matrix in pairs.met_in(self._blocks()):
            known = np.flatnonzero(self.is_known[rows[numbers]])
            for some in np.split(known, range(PAIRS_AT_ONCE, len(known), PAIRS_AT_ONCE)):
                of_queries = self.queries[rows[numbers[some]]]
                cosines[numbers[some]] = np.einsum("ij,ij->i", of_queries, matrix[at[some]])
        return cosines


def find_candidates(
    vectors: Annotated[Sequence[Path], typer.Argument(help="Folder of the vectors of all papers by each model.")],
    *,
    tables: Annotated[Path, typer.Option(help="Folder of the tables of a hold-out whose papers search the corpus.")],
    settings: GivenAsJson[Lists],
    tasks: Annotated[str, typer.Option(help="Tasks that name candidates, with commas between them.")],
    papers: Papers,
    links: Annotated[Path, typer.Option(help="Folder of the links of papers in the graph.")],
    output: Output,
) -> None:
    """Find papers for held-out papers, and compute what an index knows of them.

    Raises `InputError` where no held-out paper has a vector, or the graph has none of the papers that are searched.
    """
    searches = read_table(tables / "searches.parquet", "searches", ["query", "split"])
    popularity = read_table(tables / "popularity.parquet", "popularity")
    queries, first = np.unique(searches["query"].to_numpy(), return_index=True)
    splits = searches["split"].take(first).combine_chunks()
    nothing = Pairs(queries, popularity["corpusid"].to_numpy(), np.empty(0, np.int64))
    adjacency = open_adjacency(links)
    if not len(np.intersect1d(adjacency.ids, nothing.papers)):
        raise InputError(f"{links}: the graph links none of the papers that are searched; name one of citations.")
    with threadpool_limits(1):  # The last bits of products of matrices depend on how many threads there are.
        models = [ModelVectors(folder, nothing) for folder in vectors]
        nearest = nothing
        for model in models:
            nearest = model.nearest(nearest)
        similarity = np.stack([model.cosines(nearest) for model in models]).astype(np.float64)
        votes = _votes(nearest, np.nanmean(similarity, axis=0), adjacency)  # every pair has a cosine
        found = nearest.joined(*_first(votes["votes_100"]))
        named = read_table(tables / "judgements.parquet", "judgements", ["task", "query", "candidate"])
        named = named.filter(pc.is_in(named["task"], pa.array(tasks.split(","))))
        asking, candidates = (named[name].cast(pa.int64()).to_numpy() for name in ("query", "candidate"))
        judged = found.joined(look_up(queries, asking)[0], look_up(nothing.papers, candidates)[0])
        words = np.full(len(judged.keys), np.nan)
        if settings.words:
            named_by_words, words = _by_words(judged, papers)
            found, judged = found.joined(*named_by_words), judged.joined(*named_by_words)
        cosines = [model.cosines(judged) for model in models]
    is_found = look_up(found.keys, judged.keys)[1]
    columns = {
        "query": queries[judged.rows],
        "paper": judged.papers[judged.places],
        "split": splits.take(pa.array(judged.rows)),
        "is_found": is_found,
        "cosines": vector_column(np.stack(cosines, axis=1)),
        "words": _known(words),
        **{name: _known(of) for name, of in _votes_of(judged, is_found, votes, adjacency).items()},
        "citations": popularity["citations"].to_numpy()[judged.places],
        "age": _known(ages_of_papers(papers, popularity["corpusid"].to_numpy())[judged.places]).cast(pa.int16()),
    }
    write_table(output, "candidates", pa.table(columns))
    report(f"{len(found.keys) / max(len(queries), 1):,.0f} papers found for each of {len(queries):,} held-out papers")


def _votes(pairs: Pairs, similarity: Numbers, adjacency: Adjacency) -> dict[str, csr_array]:
    """The votes of the papers with links that are most similar to each query, queries × papers."""
    papers, at = np.unique(pairs.places, return_inverse=True)
    links = _links_of(papers, pairs.papers, adjacency)
    degrees = links.sum(axis=1)
    order = np.lexsort((pairs.places, -similarity, pairs.rows))
    order = order[degrees[at[order]] > 0]
    rows = pairs.rows[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    votes = {}
    for name, vote in VOTES.items():
        hits = order[rank < vote.hits]
        of_query, nearness = pairs.rows[hits], similarity[hits]
        weights = np.exp((nearness - nearness[np.searchsorted(of_query, of_query)]) / TEMPERATURE)
        weights /= np.bincount(of_query, weights, len(pairs.queries))[of_query]
        weights /= degrees[at[hits]] ** vote.voter
        shape = len(pairs.queries), len(papers)
        votes[name] = (csr_array((weights, (of_query, at[hits])), shape=shape) @ links).tocsr()
        votes[name].sort_indices()
    return votes


def _links_of(some: Ids, papers: Ids, adjacency: Adjacency) -> csr_array:
    """The links of some papers with papers that are searched, some × papers."""
    at, is_there = look_up(np.asarray(adjacency.ids), papers[some])
    starts, ends = (adjacency.starts[at + step] * is_there for step in (0, 1))
    lengths = ends - starts
    spans = [adjacency.others[start:end] for start, end in zip(starts, ends, strict=True)]
    others = np.concatenate([np.empty(0, np.int32), *spans])
    places, is_searched = look_up(papers, np.asarray(adjacency.ids)[others])
    rows = np.repeat(np.arange(len(some)), lengths)[is_searched]
    return csr_array((np.ones(len(rows)), (rows, places[is_searched])), shape=(len(some), len(papers)))


def _votes_of(
    pairs: Pairs, is_found: NDArray[np.bool_], votes: dict[str, csr_array], adjacency: Adjacency
) -> dict[str, Numbers]:
    """The votes for the paper of each pair, by column; NaN for papers without links."""
    papers, at = np.unique(pairs.places, return_inverse=True)
    links = _links_of(papers, pairs.papers, adjacency).sum(axis=1)[at]
    of_pairs = {}
    for name, vote in VOTES.items():
        given, received = votes[name], np.zeros(len(pairs.keys))
        rows = np.repeat(np.arange(given.shape[0], dtype=np.int64), np.diff(given.indptr))
        place, is_there = look_up(rows * len(pairs.papers) + given.indices, pairs.keys)
        received[is_there] = given.data[place[is_there]]
        received /= np.maximum(links, 1) ** vote.receiver
        largest = np.zeros(len(pairs.queries))
        np.maximum.at(largest, pairs.rows[is_found], received[is_found])
        shares = received / np.where(largest > 0, largest, 1)[pairs.rows]
        of_pairs[name] = np.where(links > 0, shares, np.nan)
    return of_pairs


def _first(votes: csr_array) -> tuple[Ids, Ids]:
    """The queries and papers with the most votes, at most so many for each query."""
    rows = np.repeat(np.arange(votes.shape[0]), np.diff(votes.indptr))
    order = np.lexsort((votes.indices, -votes.data, rows))
    rank = np.arange(len(order)) - np.searchsorted(rows, rows)
    kept = order[rank < LISTED]
    return rows[kept], votes.indices[kept].astype(np.int64)


def _by_words(pairs: Pairs, folder: Path) -> tuple[tuple[Ids, Ids], Numbers]:
    """The queries and papers that a search by words finds; and the scores of these and of the pairs, in the order of
    pairs, divided by the best of the query; NaN where it shares no word with a paper."""
    search = WordSearch(folder, pairs.queries, pairs.papers, UsualFormula())
    asking = look_up(pairs.queries, search.queries)[0]
    answers = Answers(search.queries, LISTED)
    row_of = np.full(len(pairs.queries), -1)
    row_of[asking] = np.arange(len(asking))
    rows, of_pairs = row_of[pairs.rows], np.zeros(len(pairs.keys))

    def blocks() -> Iterator[tuple[Ids, NDArray[np.float32]]]:
        for papers, nearness in search.blocks():
            yield look_up(pairs.papers, papers)[0], nearness
            answers.add((papers, nearness))

    for numbers, at, nearness in pairs.met_in(blocks()):
        has_words = rows[numbers] >= 0
        of_pairs[numbers[has_words]] = nearness[rows[numbers[has_words]], at[has_words]]
    answers.cut()
    best = np.zeros(len(pairs.queries))
    np.maximum.at(best, asking[answers.rows], answers.nearness)
    first = asking[answers.rows], look_up(pairs.papers, answers.papers)[0]
    all_keys = np.concatenate([pairs.keys, first[0] * len(pairs.papers) + first[1]])
    scored, at = np.unique(all_keys, return_index=True)
    best_of = best[scored // len(pairs.papers)]
    scores = np.maximum(np.concatenate([of_pairs, answers.nearness])[at], 0) / np.maximum(best_of, 1e-9)
    return first, np.where(best_of > 0, scores, np.nan)


def _known(numbers: Numbers) -> pa.Array:
    """Numbers as a column, null where they are NaN."""
    return pa.array(numbers.astype(np.float32), from_pandas=True)
