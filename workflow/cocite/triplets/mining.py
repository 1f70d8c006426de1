"""The examples of a set with mined negatives: which candidates may be negatives, and which of them an example gets.

In come a set, and the candidates and scores of positives that the stage neighbours found for its queries. Candidates
may be positives that nobody has marked, and are left out for the first of these reasons: they are near-duplicates of
the query or of a positive, their score is too near that of the positives or out of bounds, or they are linked with the
query in a graph. Margins are those of sentence-transformers' `mine_hard_negatives`: they count from the lowest score of
a positive of the query.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.mining import Mining
from cocite.core.id_sets import Ids
from cocite.core.lookup import look_up
from cocite.core.randomness import priorities
from cocite.core.tables.files import read_table, table_in
from cocite.triplets.combining import as_examples, each_once
from cocite.triplets.sampled import UNSERVED, Block, Sampled, read_chosen

QUERIES_AT_ONCE = 50_000
"""Queries whose candidates are in memory together."""
EXAMPLES_AT_ONCE = 20_000
"""Examples that draw from their candidates together."""
LINKS = {"edges": ("source", "target"), "cocitations": ("paper", "other"), "couplings": ("paper", "other")}
"""The tables of graphs, and the columns of the papers that they link."""
MINED = "mined"
"""The kind of a mined negative."""
DUPLICATE, NEAR, OUT_OF_BOUNDS, LINKED = (
    f"candidates left out: {reason}"
    for reason in (
        "near-duplicates of the query or of a positive",
        "scores within the margin of the positives'",
        "scores above max_score or below min_score",
        "linked with the query",
    )
)
FEW = "mined negatives fewer than asked for"

Chosen = NDArray[np.bool_]


class Candidates(NamedTuple):
    """Candidates of some queries, by query and rank."""

    places: Ids
    """The place of the query of each."""
    ranks: NDArray[np.int32]
    documents: Ids
    scores: NDArray[np.float32]
    likeness: NDArray[np.float32]

    def choose(self, chosen: Chosen) -> "Candidates":
        """Some of them."""
        return Candidates._make(column[chosen] for column in self)


def give_mined(block: Block, sampler: Mining) -> Sampled:
    """The examples of the block's queries with mined negatives."""
    [path] = [source for source in block.sources if table_in(source) in ("triplets", "sampled_examples")]
    of_rows = read_table(path, table_in(path), ["query"])["query"].to_numpy()
    counts: Counter[str] = Counter({DUPLICATE: 0, NEAR: 0, OUT_OF_BOUNDS: 0, LINKED: 0, FEW: 0})
    pieces = []
    for first in range(0, len(block.queries), QUERIES_AT_ONCE):
        queries = block.queries[first : first + QUERIES_AT_ONCE]
        rows = _examples(path, np.isin(of_rows, queries), keeps_negatives=sampler.others == "kept")
        candidates = _left(block, queries, sampler, counts)
        pieces.append(_with_negatives(rows, queries, candidates, sampler, block.seed, counts))
    rows = pa.concat_tables(pieces)
    known, served = np.isin(block.queries, of_rows), np.isin(block.queries, rows["query"].to_numpy())
    unserved = UNSERVED["sampled_examples"]
    counts[f"{unserved}: not in the set"] = int(np.count_nonzero(~known))
    counts[f"{unserved}: too few candidates are left"] = int(np.count_nonzero(known & ~served))
    return Sampled(rows=rows, omissions=dict(counts))


def _examples(path: Path, is_chosen: Chosen, *, keeps_negatives: bool) -> pa.Table:
    """The chosen rows of a set as examples, numbered; without negatives, those of the same positives are one."""
    rows = read_chosen(path, is_chosen)
    if "positive" in rows.column_names:
        rows = as_examples(rows).append_column("number", pa.nulls(len(rows), pa.int32()))
    if keeps_negatives:
        return rows if rows["number"].null_count == 0 and len(rows) else each_once(rows)
    nothing = pa.array([[]] * len(rows), pa.list_(pa.int64()))
    rows = rows.set_column(rows.column_names.index("negatives"), "negatives", nothing)
    kept = [name for name in rows.column_names if not name.startswith("negative_")]
    return each_once(rows.select(kept))


def _left(block: Block, queries: Ids, sampler: Mining, counts: Counter[str]) -> Candidates:
    """The candidates of some queries that may be negatives; counts the others by the first reason."""
    first, last = sampler.ranks
    candidates = _read_candidates(block, queries)
    candidates = candidates.choose((candidates.ranks >= first) & (candidates.ranks <= last))
    lowest = _lowest_positives(block, queries)[candidates.places]
    scores = candidates.scores.astype(np.float64)
    is_near, is_out = np.zeros((2, len(scores)), dtype=bool)
    if sampler.margin is not None:
        is_near |= scores > lowest - sampler.margin
    if sampler.relative_margin is not None:
        is_near |= scores > lowest - np.abs(lowest) * sampler.relative_margin
    if sampler.max_score is not None:
        is_out |= scores > sampler.max_score
    if sampler.min_score is not None:
        is_out |= scores < sampler.min_score
    is_duplicate = candidates.likeness >= (np.inf if sampler.duplicates is None else sampler.duplicates)
    left = np.ones(len(scores), dtype=bool)
    for reason, is_reason in ((DUPLICATE, is_duplicate), (NEAR, is_near), (OUT_OF_BOUNDS, is_out)):
        counts[reason] += int(np.count_nonzero(is_reason & left))
        left &= ~is_reason
    candidates = candidates.choose(left)
    is_linked = are_linked(block, queries[candidates.places], candidates.documents)
    counts[LINKED] += int(np.count_nonzero(is_linked))
    return candidates.choose(~is_linked)


def _read_candidates(block: Block, queries: Ids) -> Candidates:
    columns = ("query", "rank", "document", "score", "likeness")
    parts = [np.empty((0,), dtype=kind) for kind in (np.int64, np.int32, np.int64, np.float32, np.float32)]
    read = [parts]
    for batch in block.read("mined_candidates", columns):
        rows = [batch[name].to_numpy() for name in columns]
        places, is_ours = look_up(queries, rows[0])
        read.append([column[is_ours] for column in (places, *rows[1:])])
    return Candidates._make(np.concatenate(column) for column in zip(*read, strict=True))


def _lowest_positives(block: Block, queries: Ids) -> NDArray[np.float64]:
    """The lowest score of a positive of each query."""
    lowest = np.full(len(queries), np.inf)
    for batch in block.read("mined_positives", ("query", "score")):
        places, is_ours = look_up(queries, batch["query"].to_numpy())
        np.minimum.at(lowest, places[is_ours], batch["score"].to_numpy()[is_ours])
    return lowest


def are_linked(block: Block, queries: Ids, documents: Ids) -> Chosen:
    """Whether the two of each pair are linked in one of the graphs among the sources, in whatever direction."""
    is_linked = np.zeros(len(queries), dtype=bool)
    for table in {table_in(source) for source in block.sources} & LINKS.keys():
        pairs = ([batch[name].to_numpy() for name in LINKS[table]] for batch in block.read(table, LINKS[table]))
        is_linked |= among(queries, documents, (pair for one, other in pairs for pair in ((one, other), (other, one))))
    return is_linked


def among(queries: Ids, documents: Ids, pairs: Iterator[tuple[Ids, Ids]]) -> Chosen:
    """Whether each pair of a query and a document is one of many pairs, which come some at a time."""
    if len(queries) == 0:
        return np.zeros(0, dtype=bool)
    of_queries, of_documents = np.unique(queries), np.unique(documents)
    wanted = np.searchsorted(of_queries, queries) * len(of_documents) + np.searchsorted(of_documents, documents)
    order = np.argsort(wanted, kind="stable")
    wanted, is_found = wanted[order], np.zeros(len(wanted), dtype=bool)
    for one, other in pairs:
        (rows, is_query), (columns, is_document) = look_up(of_queries, one), look_up(of_documents, other)
        is_known = is_query & is_document
        is_found |= look_up(np.unique(rows[is_known] * len(of_documents) + columns[is_known]), wanted)[1]
    unsorted = np.empty_like(is_found)
    unsorted[order] = is_found
    return unsorted


def _with_negatives(
    rows: pa.Table, queries: Ids, candidates: Candidates, sampler: Mining, seed: int, counts: Counter[str]
) -> pa.Table:
    """The examples with the negatives that they get; those that get too few are left out."""
    starts = np.searchsorted(candidates.places, np.arange(len(queries) + 1))
    pieces = []
    for first in range(0, max(1, len(rows)), EXAMPLES_AT_ONCE):
        some = rows.slice(first, EXAMPLES_AT_ONCE)
        places = np.searchsorted(queries, some["query"].to_numpy())
        examples, picked = _picked(some, places, starts, candidates, sampler, seed)
        counts[FEW] += len(some) * sampler.negatives - len(picked)
        pieces.append(_joined(some, examples, candidates, picked, sampler))
    return pa.concat_tables(pieces)


def _picked(
    rows: pa.Table, places: Ids, starts: Ids, candidates: Candidates, sampler: Mining, seed: int
) -> tuple[Ids, Ids]:
    """What examples pick among the candidates of their queries: the example and the candidate of each, by rank."""
    sizes = starts[places + 1] - starts[places]
    examples = np.repeat(np.arange(len(rows)), sizes)
    offered = np.arange(len(examples)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(starts[places], sizes)
    if sampler.others == "kept":
        lists = rows["negatives"].combine_chunks()
        own = pc.list_parent_indices(lists).to_numpy(), lists.flatten().to_numpy()
        is_new = ~among(examples, candidates.documents[offered], iter([own]))
        examples, offered = examples[is_new], offered[is_new]
    if sampler.pick == "random":
        keys = priorities(
            seed,
            "mined negatives",
            rows["query"].to_numpy()[examples],
            rows["number"].to_numpy().astype(np.int64)[examples],
            candidates.documents[offered],
        )
        drawn = np.lexsort((keys, examples))
        is_taken = np.zeros(len(drawn), dtype=bool)
        is_taken[drawn[_ranks(examples[drawn]) < sampler.negatives]] = True
    else:
        is_taken = _ranks(examples) < sampler.negatives
    return examples[is_taken], offered[is_taken]


def _ranks(groups: Ids) -> Ids:
    """The place of each within its group, from 0; those of a group follow each other."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def _joined(rows: pa.Table, examples: Ids, candidates: Candidates, picked: Ids, sampler: Mining) -> pa.Table:
    """The rows with their own negatives in front of those that they picked."""
    lists = rows["negatives"].combine_chunks()
    own, documents = pc.list_parent_indices(lists).to_numpy(), lists.flatten()
    kinds = np.full(len(own), None, dtype=object)
    if "negative_kinds" in rows.column_names:
        given = rows["negative_kinds"].combine_chunks()  # null for an example that came as a triplet
        is_known = np.repeat(given.is_valid().to_numpy(zero_copy_only=False), lists.value_lengths().to_numpy())
        kinds[is_known] = given.flatten().to_numpy(zero_copy_only=False)
    order = np.argsort(np.concatenate([own, examples]), kind="stable")
    sizes = np.bincount(np.concatenate([own, examples]), minlength=len(rows))
    ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))

    def in_lists(of_own: pa.Array, of_picked: Any, kind: pa.DataType) -> pa.ListArray:
        values = pa.concat_arrays([of_own.cast(kind), pa.array(of_picked, kind)])
        return pa.ListArray.from_arrays(ends, values.take(pa.array(order)))

    nothing = pa.nulls(len(own))
    columns = {
        **{name: rows[name] for name in rows.column_names if not name.startswith("negative")},
        "negatives": in_lists(documents, candidates.documents[picked], pa.int64()),
        "negative_kinds": in_lists(pa.array(kinds, pa.string()), [MINED] * len(picked), pa.string()),
        "negative_ranks": in_lists(nothing, candidates.ranks[picked], pa.int32()),
        "negative_scores": in_lists(nothing, candidates.scores[picked].astype(np.float64), pa.float64()),
    }
    mined = np.bincount(examples, minlength=len(rows))
    is_whole = mined >= sampler.negatives if sampler.partial == "dropped" else sizes > 0
    return pa.table(columns).filter(pa.array(is_whole))
