"""Examples of brought texts: what a layout holds, without what cannot be used, as rows of `sampled_examples`.

What a layout names is looked up in its texts, which are read once for their ids and once more for the texts of those
examples that are left. Memory holds the examples by number, and no text.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.core.id_sets import Ids
from cocite.core.lookup import look_up
from cocite.core.progress import progress
from cocite.core.randomness import mix, priorities
from cocite.core.text_ids import text_id
from cocite.triplets.brought_pairs.reading import TRAINING, UNTOLD, VALIDATION, Brought, Example, Texts
from cocite.triplets.combining import LISTS, each_once
from cocite.triplets.sampled import Block, Sampled
from cocite.triplets.sampled_texts import texts_table
from cocite.triplets.titles import Titles

UNKNOWN, EMPTY, LONG, KEPT_OUT = range(4)
SPLITS = (UNTOLD, TRAINING, VALIDATION)
REPEATED = "names that come again with another text (the first counts)"

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which examples are made of what a layout holds."""

    validation: float
    """Share of the queries that validate, where the layout does not say which do."""
    longest_query: int
    """Words of a short query at most."""
    paired: bool
    """Whether each negative makes an example of its own with one of the positives."""
    per_query: int | None
    """Examples of a query at most."""
    blocks_of: int | None = None
    """Examples of a block, of which a query has whole ones only."""


def sample_brought(block: Block, brought: Brought, rules: Rules) -> Sampled:
    """The examples of a layout, and their texts.

    Left out are texts that are empty or not there, short queries of too many words, and texts with the title of a paper
    that is kept out; negatives that are positives of the same query; and examples without a query or a positive.
    """
    counts: Counter[str] = Counter()
    read = _Read.of(brought.examples(counts))
    keys, ids = _looked_up(read, brought, block.titles_kept_out(), rules, counts)
    examples = _usable(read, keys, ids, counts)
    rows = _chosen(examples, block.seed, rules, counts)
    named = np.unique(np.concatenate([rows["query"].to_numpy(), *(_flat(rows[name]) for name in LISTS)]))
    return Sampled(rows=rows, omissions=dict(counts), texts=_texts_of(brought, keys, ids, named))


@dataclass(frozen=True, kw_only=True)
class _Read:
    """Examples by the keys of their texts."""

    queries: Ids
    splits: NDArray[np.int8]
    """Places in SPLITS."""
    near: Ids
    """The positives of all examples, one example after the other."""
    near_of: Ids
    """The example of each."""
    far: Ids
    far_of: Ids

    @staticmethod
    def of(examples: Iterator[Example]) -> "_Read":
        queries, splits = array("q"), array("b")
        lists, sizes = (array("q"), array("q")), (array("q"), array("q"))
        for example in progress(examples, of="Brought examples", unit="example"):
            queries.append(example.query)
            splits.append(SPLITS.index(example.split))
            for found, size, keys in zip(lists, sizes, (example.positives, example.negatives), strict=True):
                found.extend(keys)
                size.append(len(keys))
        owners = (np.repeat(np.arange(len(queries)), np.array(size, dtype=np.int64)) for size in sizes)
        (near, far), (near_of, far_of) = (np.array(found, dtype=np.int64) for found in lists), owners
        return _Read(
            queries=np.array(queries, dtype=np.int64),
            splits=np.array(splits, dtype=np.int8),
            near=near,
            near_of=near_of,
            far=far,
            far_of=far_of,
        )


def _looked_up(read: _Read, brought: Brought, kept_out: Titles, rules: Rules, counts: Counter[str]) -> tuple[Ids, Ids]:
    """The keys that examples name, rising, and the id of each; where its text is not used, the reason for it."""
    keys = np.unique(np.concatenate([read.queries, read.near, read.far]))
    ids = np.full(len(keys), UNKNOWN, dtype=np.int64)
    counts[REPEATED] += 0
    for some in brought.texts():
        place, is_named = look_up(keys, some.keys)
        rows = np.flatnonzero(is_named)
        # The key of a text that stands in an example is negative, and that of no other one.
        for row in rows[(ids[place[rows]] == UNKNOWN) | (some.keys[rows] >= 0)].tolist():
            found = _id_or_reason(some, row, kept_out, rules)
            counts[REPEATED] += ids[place[row]] not in (UNKNOWN, found)
            if ids[place[row]] == UNKNOWN:
                ids[place[row]] = found
    of_queries = np.isin(keys, read.queries)
    for reason, said in (
        (UNKNOWN, "names of {} that no text has"),
        (EMPTY, "{} without a text"),
        (LONG, f"short queries of more than {rules.longest_query:,} words"),
        (KEPT_OUT, "{} with the title of a paper that is kept out"),
    ):
        for what, is_one in (("queries", of_queries), ("documents", ~of_queries)):
            counts[said.format(what)] += int(np.count_nonzero(is_one & (ids == reason)))
    return keys, ids


def _id_or_reason(some: Texts, row: int, kept_out: Titles, rules: Rules) -> int:
    title, abstract = some.titles[row], some.abstracts[row]
    if not title and not abstract:
        return EMPTY
    if (title or abstract) in kept_out:
        return KEPT_OUT
    if some.are_queries and title and len(title) > rules.longest_query and len(title.split()) > rules.longest_query:
        return LONG
    return text_id(title, abstract, is_query=some.are_queries)


def _usable(read: _Read, keys: Ids, ids: Ids, counts: Counter[str]) -> pa.Table:
    """The examples whose query and some positive have a text, by the ids of their texts, each once."""
    queries, near, far = (ids[np.searchsorted(keys, some)] for some in (read.queries, read.near, read.far))
    is_near = (near < 0) & (near != queries[read.near_of])
    is_far = (far < 0) & (far != queries[read.far_of])
    is_positive = np.isin(_pairs(queries[read.far_of], far), _pairs(queries[read.near_of], near))
    counts["negatives that are positives of the same query"] += int(np.count_nonzero(is_far & is_positive))
    is_far &= ~is_positive
    has_positive = np.bincount(read.near_of[is_near], minlength=len(queries)) > 0
    counts["examples of a query that is not used"] += int(np.count_nonzero(queries >= 0))
    counts["examples without a positive"] += int(np.count_nonzero((queries < 0) & ~has_positive))
    is_whole = (queries < 0) & has_positive
    validating = np.unique(queries[is_whole & (read.splits == SPLITS.index(VALIDATION))])
    validates = is_whole & (read.splits != SPLITS.index(VALIDATION)) & np.isin(queries, validating)
    counts["training examples of a query that validates"] += int(np.count_nonzero(validates))
    is_whole &= ~validates
    lists = (
        _lists(some, owner, is_used, is_whole)
        for some, owner, is_used in ((near, read.near_of, is_near), (far, read.far_of, is_far))
    )
    columns = {"query": queries[is_whole], "number": np.zeros(int(is_whole.sum()), dtype=np.int32)}
    splits = pa.array(SPLITS).take(pa.array(read.splits[is_whole]))
    return each_once(pa.table({**columns, "split": splits, **dict(zip(LISTS, lists, strict=True))}))


def _pairs(queries: Ids, documents: Ids) -> NDArray[np.uint64]:
    """One number for each pair of a query and a document."""
    return mix(queries.view(np.uint64)) ^ documents.view(np.uint64)


def _lists(values: Ids, of: Ids, is_used: Flags, is_whole: Flags) -> pa.ListArray:
    """The values that are used of each example that is whole, each once, in the order in which they come."""
    rows = np.flatnonzero(is_used & is_whole[of])
    first = np.sort(np.unique(np.stack([of[rows], values[rows]]), axis=1, return_index=True)[1])
    rows = rows[first]
    sizes = np.bincount(of[rows], minlength=len(is_whole))[is_whole]
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(sizes)), pa.int32()), pa.array(values[rows]))


def _chosen(examples: pa.Table, seed: int, rules: Rules, counts: Counter[str]) -> pa.Table:
    """The examples as they are asked for: in pairs, so many a query, and each with its split."""
    rows = each_once(_paired(examples)) if rules.paired else examples
    if rules.per_query is not None or rules.blocks_of is not None:
        rows = _of_each_query(rows, seed, rules, counts)
    told = rows["split"].to_numpy(zero_copy_only=False)
    drawn = priorities(seed, "validation of brought queries", rows["query"].to_numpy())
    validates = drawn < np.uint64(min(rules.validation * 2.0**64, 2.0**64 - 2**12))
    splits = np.where(told == UNTOLD, np.where(validates, VALIDATION, TRAINING), told)
    return rows.set_column(rows.column_names.index("split"), "split", pa.array(splits, pa.string()))


def _of_each_query(rows: pa.Table, seed: int, rules: Rules, counts: Counter[str]) -> pa.Table:
    """At most so many examples of each query, and these in whole blocks, at random."""
    queries, numbers = (rows[name].to_numpy().astype(np.int64) for name in ("query", "number"))
    order = np.lexsort((priorities(seed, "brought examples", queries, numbers), queries))
    starts = np.searchsorted(queries, queries)
    allowed = np.searchsorted(queries, queries, "right") - starts
    if rules.per_query is not None:
        allowed = np.minimum(allowed, rules.per_query)
        counts["examples beyond per_query"] += len(rows) - _sum_of_each(allowed, starts)
    if rules.blocks_of is not None:
        before = _sum_of_each(allowed, starts)
        allowed -= allowed % rules.blocks_of
        counts["examples beyond the last whole block of a query"] += before - _sum_of_each(allowed, starts)
    is_taken = np.arange(len(order)) - starts < allowed
    return rows.take(pa.array(np.sort(order[is_taken])))


def _sum_of_each(of_queries: Ids, starts: Ids) -> int:
    """The sum of a number that all examples of a query have, each query counted once."""
    return int(of_queries[np.unique(starts)].sum())


def _paired(examples: pa.Table) -> pa.Table:
    """Examples of one positive and one negative: as many as there are of the more numerous, the others in turn.

    An example without negatives makes one of each positive.
    """
    (near, near_starts), (far, far_starts) = (_flat_and_starts(examples[name]) for name in LISTS)
    near_sizes, far_sizes = np.diff(near_starts), np.diff(far_starts)
    sizes = np.maximum(near_sizes, far_sizes)
    owner = np.repeat(np.arange(len(examples)), sizes)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    has_far = far_sizes[owner] > 0
    positives = near[near_starts[owner] + nth % near_sizes[owner]]
    negatives = far[(far_starts[owner] + nth % np.maximum(far_sizes[owner], 1))[has_far]]
    starts = np.append(0, np.cumsum(has_far))
    rows = examples.select(["query", "number", "split"]).take(pa.array(owner))
    lists = (
        pa.ListArray.from_arrays(pa.array(np.arange(len(owner) + 1), pa.int32()), pa.array(positives)),
        pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(negatives)),
    )
    for name, column in zip(LISTS, lists, strict=True):
        rows = rows.append_column(name, column)
    return rows


def _flat(lists: pa.ChunkedArray) -> Ids:
    flat: Ids = lists.combine_chunks().flatten().to_numpy()
    return flat


def _flat_and_starts(lists: pa.ChunkedArray) -> tuple[Ids, Ids]:
    """All values, and where those of each list start and, at the end, where those of the last one end."""
    sizes = lists.combine_chunks().value_lengths().to_numpy().astype(np.int64)
    return _flat(lists), np.append(0, np.cumsum(sizes))


def _texts_of(brought: Brought, keys: Ids, ids: Ids, named: Ids) -> Iterator[pa.RecordBatch]:
    """The texts that rows name, of those with these keys and ids."""
    wanted = keys[np.isin(ids, named)]
    if len(wanted) == 0:
        return
    for some in brought.texts():
        rows = np.flatnonzero(look_up(wanted, some.keys)[1]).tolist()
        titles, abstracts = ([column[row] for row in rows] for column in (some.titles, some.abstracts))
        table = texts_table(titles, abstracts, is_query=some.are_queries)
        yield from table.filter(pa.array(np.isin(table["text"].to_numpy(), named))).to_batches()
