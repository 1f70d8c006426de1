"""Mine negatives: rank documents for each query of a set of examples, and write the best and the positives' scores.

Queries are processed in groups that fit into memory. A killed search resumes after the last finished group and, by
vectors, within the next one. Documents are ranked by distances; scores are minus or one minus these. They come from
words (`word_ranking.py`), or from vectors by the exact search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numba import njit
from numpy.typing import NDArray

from cocite.config.entries import as_json
from cocite.config.mining import ByWords, Collection, SearchedDocuments
from cocite.config.settings import GivenAsJson
from cocite.core.checkpoints import open_whole, remove_state, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, id_set
from cocite.core.options import MemoryMb, Omissions, Papers, Queries, State, Threads
from cocite.core.progress import report
from cocite.core.tables.files import checked_files, read_table, table_in, write_omissions, write_table
from cocite.core.tables.papers import read_kept_out, read_twins
from cocite.core.written_ids import Ids, distinct, look_up
from cocite.neighbours import nearest
from cocite.neighbours.nearest import FARTHEST, Block, Keys, Metric, Numbers, Vectors, Workers
from cocite.neighbours.searching import RESERVED_MB, Checkpoint, Search, open_search
from cocite.neighbours.vectors import Documents, VectorFiles, papers_with_text

TABLES_OF_VECTORS = ("paper_embeddings", "text_embeddings")
"""The tables whose vectors are searched; the first column of each has the ids."""
SHORT = "candidates, up to the last rank of each query, that there are no documents for"

Scores = NDArray[np.float32]


class Asked(NamedTuple):
    """Queries, rising, and the positives of each."""

    queries: Ids
    positives: Ids
    """The positives of each query, rising, one query after the other."""
    starts: Ids
    """Start of the positives of each query, and at the end their number."""

    def slice(self, first: int, end: int) -> "Asked":
        """The queries from one place to before another."""
        starts = self.starts[first : end + 1]
        return Asked(self.queries[first:end], self.positives[starts[0] : starts[-1]], starts - starts[0])

    @property
    def query_of_positive(self) -> Ids:
        """The place of the query of each positive."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.starts))


class Ranked(NamedTuple):
    """The best documents of each query, their positives among them."""

    keys: Keys
    """Queries × k, by rank, padded with `FARTHEST`."""
    positives: Scores
    """The score of each positive."""
    likeness: Scores
    """The largest cosine of each document to the query and its positives, queries × k."""


class VectorRanking:
    """Ranks by vectors; `WordRanking` has the same methods."""

    def __init__(self, vectors: VectorFiles, metric: Metric) -> None:
        self.vectors, self.metric, self.documents = vectors, metric, vectors.documents

    def prepare(self, folder: Path, workers: Workers, memory_mb: float) -> float:
        """Hold all vectors if they take at most half of the memory; return how much of it is taken, MB."""
        blocks = workers.threads * nearest.bytes_of_thread(self.vectors.dimension) / 1e6
        if self.vectors.size_mb > memory_mb / 2:
            return blocks
        self.vectors.hold(workers)
        return blocks + self.vectors.size_mb

    def bytes_of_query(self, k: int, positives: float) -> float:
        """Pools, results, two copies of the query's vector and one of each positive's."""
        return 8 * (nearest.capacity(k) + 2 * k) + 4 * self.vectors.dimension * (3 + positives)

    def rank(self, asked: Asked, k: int, workers: Workers, checkpoint: Checkpoint | None = None) -> Ranked:
        """The k best documents of each query, but the query itself: search exactly, then compare them with the
        positives. Raises `InputError` if a query or a positive is not known."""
        named = distinct(asked.queries, asked.positives)
        given = nearest.block_of(named, self.vectors.find(named, workers))
        own, positives = np.searchsorted(named, asked.queries), np.searchsorted(named, asked.positives)
        numbers = self.documents.numbers_of(asked.queries)
        queries = Block(numbers, given.vectors[own], given.norms[own])
        keys = Search(self.vectors, self.metric).nearest(queries, k, workers, checkpoint)
        distances = _distances(given.vectors, given.norms, own[asked.query_of_positive], positives, int(self.metric))
        likeness = np.full(keys.shape, -1, dtype=np.float32)
        places, found = found_in(keys)

        def compare(group: int) -> None:
            for block in self.vectors.blocks([group]):
                bounds = np.searchsorted(found, block.numbers), np.searchsorted(found, block.numbers, side="right")
                _compare(block, *bounds, places, given, own, positives, asked.starts, k, likeness.ravel())

        list(workers.map(compare, self.vectors.row_groups))
        return Ranked(keys=keys, positives=scores_of(distances, self.metric), likeness=likeness)


def scores_of(distances: NDArray[np.float64], metric: Metric) -> Scores:
    """Scores of distances: higher is nearer."""
    return (1 - distances if metric is Metric.COSINE else 0 - distances).astype(np.float32)


def found_in(keys: Keys) -> tuple[Ids, Numbers]:
    """Positions of the documents among all keys, row after row, and their numbers, rising."""
    places = np.flatnonzero(keys.ravel() != FARTHEST)
    numbers = nearest.numbers_in(keys.ravel()[places])
    order = np.argsort(numbers, kind="stable")
    return places[order], numbers[order]


def mine(
    examples: Annotated[Path, typer.Argument(help="Table triplets or sampled_examples: queries and positives.")],
    files: Annotated[
        Sequence[Path],
        typer.Argument(
            help="Tables paper_embeddings and text_embeddings, none for BM25; sampled_texts, for a set with its own "
            "texts."
        ),
    ] = (),
    *,
    papers: Papers,
    queries: Queries,
    settings: GivenAsJson[SearchedDocuments],
    memory_mb: MemoryMb,
    threads: Threads,
    state: State,
    candidates: Annotated[Path, typer.Option(help="Table mined_candidates to write.")],
    positives: Annotated[Path, typer.Option(help="Table mined_positives to write.")],
    omissions: Omissions,
) -> None:
    """Write the tables `mined_candidates` and `mined_positives` of a set, and what is missing, by reason.

    Resumes from `state` if it belongs to the same search, and removes it at the end. Raises `InputError` if a query or
    a positive has no text or vector, or there is nothing to search.
    """
    vectors = [path for path in files if table_in(path) in TABLES_OF_VECTORS]
    texts = [path for path in files if path not in vectors]
    if other := next((path for path in texts if table_in(path) != "sampled_texts"), None):
        raise InputError(f"{other}: is none of the tables {', '.join(TABLES_OF_VECTORS)} and sampled_texts.")
    if (settings.by.kind == "bm25") == bool(vectors):
        needs = "bm25 takes no vectors" if vectors else f"{settings.by.kind} needs vectors"
        raise InputError(f"by is {settings.by.kind}: {needs}.")
    asked = read_asked(examples)
    documents = read_documents(settings.collection, papers, queries, texts)
    buckets = checked_files(papers, "papers")
    if isinstance(settings.by, ByWords):
        from cocite.neighbours.word_ranking import WordRanking

        files_of_words = [*([] if settings.collection == "texts" else buckets), *texts]
        ranking: VectorRanking | WordRanking = WordRanking(files_of_words, documents)
    else:
        ranking = VectorRanking(VectorFiles(vectors, documents), Metric[settings.by.metric.upper()])
    last = settings.ranks[1]
    k = min(last + int(np.diff(asked.starts).max()), documents.size)
    depends_on = {**as_json(settings), "inputs": sampled_fingerprint([examples, *buckets, queries, *vectors, *texts])}
    words = state.with_name(f"{state.name}-words")
    with nearest.start_workers(threads) as workers:
        left_mb = memory_mb - RESERVED_MB - documents.held_mb
        left_mb -= ranking.prepare(words, workers, left_mb)
        of_query = ranking.bytes_of_query(k, len(asked.positives) / len(asked.queries))
        size = open_search(state, depends_on, max(1, int(left_mb * 1e6 / of_query)))
        groups = [asked.slice(start, start + size) for start in range(0, len(asked.queries), size)]
        written = [state / "groups" / f"{number}.npz" for number in range(len(groups))]
        for number, (group, file) in enumerate(zip(groups, written, strict=True)):
            if not file.exists():
                report(f"group {number + 1} of {len(groups)}")
                ranked = ranking.rank(group, k, workers, Checkpoint(state / "going.npz", number))
                with open_whole(file) as opened:
                    np.savez(opened, **ranked._asdict())
    found = list(zip(groups, written, strict=True))
    rows = write_table(candidates, "mined_candidates", _candidates(found, documents, ranking.metric, last))
    write_table(positives, "mined_positives", _positives(found))
    write_omissions(omissions, {SHORT: len(asked.queries) * last - rows})
    remove_state(state)
    remove_state(words)


def read_documents(collection: Collection, papers: Path, queries: Path, texts: Sequence[Path]) -> Documents:
    """The documents of a collection: papers with text that are not excluded, one of each work, texts that are not
    queries, or both. Raises `InputError` if there are none."""
    documents = Documents(papers=id_set(()))
    if collection != "texts":
        kept_out = distinct(read_kept_out(queries)["corpusid"].to_numpy(), read_twins(queries).papers)
        documents = Documents(papers=id_set(papers_with_text(papers), without=kept_out))
    if collection != "papers":
        tables = [read_table(path, "sampled_texts", ["text", "is_query"]) for path in texts]
        each = [table["text"].filter(pc.invert(table["is_query"])).to_numpy() for table in tables]
        documents = replace(documents, texts=distinct(NO_IDS, *each))
    if documents.size == 0:
        where = "the set supplies no documents" if collection == "texts" else f"{papers} has no paper with text"
        raise InputError(f"There is nothing to mine negatives among: {where}.")
    return documents


def read_asked(examples: Path) -> Asked:
    """The queries of a set of triplets or examples, and the distinct positives of each."""
    table = table_in(examples)
    if table not in ("triplets", "sampled_examples"):
        raise InputError(f"{examples}: is neither the table triplets nor sampled_examples.")
    name = "positive" if table == "triplets" else "positives"
    read = read_table(examples, table, ["query", name])
    queries, positives = read["query"].to_numpy(), read[name]
    if table == "sampled_examples":
        lists = positives.combine_chunks()
        queries, positives = queries[pc.list_parent_indices(lists).to_numpy()], lists.flatten()
    pairs = np.unique(np.stack([queries, positives.to_numpy()]), axis=1)
    asked, starts = np.unique(pairs[0], return_index=True)
    if len(asked) == 0:
        raise InputError(f"{examples}: has no examples to mine negatives for.")
    return Asked(asked, pairs[1], np.append(starts, pairs.shape[1]))


def _candidates(
    found: Sequence[tuple[Asked, Path]], documents: Documents, metric: Metric, last: int
) -> Iterator[pa.RecordBatch]:
    """The rows of `mined_candidates`: the best documents that are no positives, up to the last rank."""
    for group, file in found:
        with np.load(file) as ranked:
            keys, likeness = ranked["keys"], ranked["likeness"]
        places, columns = np.nonzero(keys != FARTHEST)
        chosen = keys[places, columns]
        ids = documents.ids_of(nearest.numbers_in(chosen))
        # Positives are left out. Both sides are pairs of small numbers, so that one number can represent a pair.
        named = distinct(group.positives)
        of_documents, is_named = look_up(named, ids)
        pairs = group.query_of_positive * len(named) + np.searchsorted(named, group.positives)
        is_left = ~(is_named & np.isin(places * len(named) + of_documents, pairs))
        places, columns, chosen, ids = places[is_left], columns[is_left], chosen[is_left], ids[is_left]
        ranks = 1 + np.arange(len(places)) - np.searchsorted(places, places)
        rows = {
            "query": group.queries[places],
            "rank": ranks.astype(np.int32),
            "document": ids,
            "score": scores_of(nearest.distances_in(chosen), metric),
            "likeness": likeness[places, columns],
        }
        yield pa.record_batch({name: column[ranks <= last] for name, column in rows.items()})


def _positives(found: Sequence[tuple[Asked, Path]]) -> Iterator[pa.RecordBatch]:
    for group, file in found:
        with np.load(file) as ranked:
            columns = [group.queries[group.query_of_positive], group.positives, ranked["positives"]]
        yield pa.record_batch(columns, ["query", "positive", "score"])


@njit(nogil=True, cache=True)
def _distances(vectors: Vectors, norms, queries, positives, metric):  # type: ignore[no-untyped-def]
    """The distances of pairs, rounded as in keys."""
    distances = np.empty(len(queries))
    for pair in range(len(queries)):
        one, other = queries[pair], positives[pair]
        query = vectors[one].astype(np.float64)
        distances[pair] = np.float32(nearest.exact_distance(query, norms[one], vectors[other], norms[other], metric))
    return distances


@njit(nogil=True, cache=True)
def _compare(  # type: ignore[no-untyped-def]
    block, first, end, places, given, own, positives, starts, k, likeness
):
    """Write the similarity of the documents of a block to the positions where they were found."""
    _, vectors, norms = given
    for row in range(len(block.numbers)):
        if first[row] == end[row]:
            continue
        document, norm = block.vectors[row].astype(np.float64), block.norms[row]
        for place in places[first[row] : end[row]]:
            query = place // k
            at = own[query]
            least = nearest.exact_distance(document, norm, vectors[at], norms[at], 2)
            for at in positives[starts[query] : starts[query + 1]]:
                least = min(least, nearest.exact_distance(document, norm, vectors[at], norms[at], 2))
            likeness[place] = 1 - least
