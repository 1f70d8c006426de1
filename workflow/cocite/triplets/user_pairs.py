"""Examples of user-supplied pairs: the usable contents of a layout as rows of `sampled_examples`.

Names in a layout are looked up in its texts, which are read once for their ids and once more for the texts of the
remaining examples. Memory is needed for the examples by number, and for no text.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.progress import progress
from cocite.core.randomness import priorities
from cocite.core.written_ids import Ids, distinct, look_up, text_id
from cocite.triplets import sampled
from cocite.triplets.pair_texts import UNTOLD, Example, Texts, UserPairs
from cocite.triplets.texts import texts_table

if TYPE_CHECKING:
    from cocite.triplets.samplers.pairs import UserSuppliedPairs

UNKNOWN, EMPTY, LONG, KEPT_OUT = range(4)
SPLITS = (UNTOLD, sampled.TRAINING, sampled.VALIDATION)
REPEATED = "names that come again with another text (the first counts)"

Flags = NDArray[np.bool_]


def sample_pairs(block: sampled.Block, pairs: UserPairs, settings: "UserSuppliedPairs") -> sampled.Sampled:
    """The examples of a layout, and their texts, as the sampler's settings have them.

    Left out are texts that are empty or not there, short queries of too many words, and texts with the title of a paper
    that is kept out; negatives that are positives of the same query; and examples without a query or a positive.
    """
    counts: Counter[str] = Counter()
    read = _read(pairs.examples(counts))
    keys, ids = _looked_up(read, pairs, block.titles_kept_out(), settings.longest_query, counts)
    rows = _usable(read, keys, ids, counts)
    if settings.paired:
        rows = sampled.each_once(_paired(rows))
    if settings.per_query is not None or settings.blocks_of is not None:
        rows = _of_each_query(rows, block.seed, settings.per_query, settings.blocks_of, counts)
    told, queries = rows["split"], rows["query"].to_numpy()
    drawn = sampled.drawn_splits(block.seed, "validation of brought queries", queries, settings.validation)
    splits = pc.if_else(pc.equal(told, UNTOLD), drawn, told)
    rows = rows.set_column(rows.column_names.index("split"), "split", splits)
    return sampled.Sampled(
        rows=rows, omissions=dict(counts), texts=_texts_of(pairs, keys, ids, sampled.documents_of(rows))
    )


class _Read(NamedTuple):
    """Examples by the keys of their texts; positives (near) and negatives (far) come one example after the other."""

    queries: Ids
    splits: NDArray[np.int8]  # places in SPLITS
    near: Ids
    near_of: Ids  # the example of each positive
    far: Ids
    far_of: Ids


def _read(examples: Iterator[Example]) -> _Read:
    queries, splits = array("q"), array("b")
    near, near_of, far, far_of = (array("q") for _ in range(4))
    for number, example in enumerate(progress(examples, of="Examples", unit="example")):
        queries.append(example.query)
        splits.append(SPLITS.index(example.split))
        near.extend(example.positives)
        near_of.extend([number] * len(example.positives))
        far.extend(example.negatives)
        far_of.extend([number] * len(example.negatives))
    return _Read(*map(np.array, (queries, splits, near, near_of, far, far_of)))


def _looked_up(
    read: _Read, pairs: UserPairs, kept_out: sampled.Titles, longest_query: int, counts: Counter[str]
) -> tuple[Ids, Ids]:
    """The keys that examples name, rising, and the id of each; where its text is not used, the reason for it."""
    keys = distinct(read.queries, read.near, read.far)
    ids = np.full(len(keys), UNKNOWN, dtype=np.int64)
    counts[REPEATED] += 0
    for some in pairs.texts():
        place, is_named = look_up(keys, some.keys)
        rows = np.flatnonzero(is_named)
        # The key of a text within an example is negative and unique.
        for row in rows[(ids[place[rows]] == UNKNOWN) | (some.keys[rows] >= 0)].tolist():
            found = _id_or_reason(some, row, kept_out, longest_query)
            counts[REPEATED] += ids[place[row]] not in (UNKNOWN, found)
            if ids[place[row]] == UNKNOWN:
                ids[place[row]] = found
    of_queries = np.isin(keys, read.queries)
    for reason, said in (
        (UNKNOWN, "names of {} that no text has"),
        (EMPTY, "{} without a text"),
        (LONG, f"short queries of more than {longest_query:,} words"),
        (KEPT_OUT, "{} with the title of a paper that is kept out"),
    ):
        for what, is_one in (("queries", of_queries), ("documents", ~of_queries)):
            counts[said.format(what)] += int(np.count_nonzero(is_one & (ids == reason)))
    return keys, ids


def _id_or_reason(some: Texts, row: int, kept_out: sampled.Titles, longest_query: int) -> int:
    title, abstract = some.titles[row], some.abstracts[row]
    if not title and not abstract:
        return EMPTY
    if (title or abstract) in kept_out:
        return KEPT_OUT
    if some.are_queries and title and len(title) > longest_query and len(title.split()) > longest_query:
        return LONG
    return text_id(title, abstract, is_query=some.are_queries)


def _usable(read: _Read, keys: Ids, ids: Ids, counts: Counter[str]) -> pa.Table:
    """The examples whose query and some positive have a text, by the ids of their texts, each once."""
    queries, near, far = (ids[np.searchsorted(keys, some)] for some in (read.queries, read.near, read.far))
    is_near = (near < 0) & (near != queries[read.near_of])
    is_far = (far < 0) & (far != queries[read.far_of])
    is_positive = sampled.among(queries[read.far_of], far, iter([(queries[read.near_of], near)]))
    has_positive = np.bincount(read.near_of[is_near], minlength=len(queries)) > 0
    is_whole = (queries < 0) & has_positive
    trains = read.splits != SPLITS.index(sampled.VALIDATION)
    repeats = is_whole & trains & np.isin(queries, np.unique(queries[is_whole & ~trains]))
    for said, which in (
        ("negatives that are positives of the same query", is_far & is_positive),
        ("examples of a query that is not used", queries >= 0),
        ("examples without a positive", (queries < 0) & ~has_positive),
        ("training examples of a query that validates", repeats),
    ):
        counts[said] += int(np.count_nonzero(which))
    is_whole &= ~repeats
    columns = {
        "query": queries[is_whole],
        "number": np.zeros(np.count_nonzero(is_whole), dtype=np.int32),
        "split": pa.array(SPLITS).take(pa.array(read.splits[is_whole])),
        "positives": _lists(near, read.near_of, is_near, is_whole),
        "negatives": _lists(far, read.far_of, is_far & ~is_positive, is_whole),
    }
    return sampled.each_once(pa.table(columns))


def _lists(values: Ids, of: Ids, is_used: Flags, is_whole: Flags) -> pa.ListArray:
    """The values that are used of each example that is whole, each once, in the order in which they come."""
    rows = np.flatnonzero(is_used & is_whole[of])
    first = np.sort(np.unique(np.stack([of[rows], values[rows]]), axis=1, return_index=True)[1])
    rows = rows[first]
    sizes = np.bincount(of[rows], minlength=len(is_whole))[is_whole]
    return sampled.as_lists(values[rows], sizes)


def _of_each_query(
    rows: pa.Table, seed: int, per_query: int | None, blocks_of: int | None, counts: Counter[str]
) -> pa.Table:
    """At most so many examples of each query, and these in whole blocks, at random."""
    queries, numbers = (rows[name].to_numpy().astype(np.int64) for name in ("query", "number"))
    sizes = np.unique(queries, return_counts=True)[1]
    taken = sizes if per_query is None else np.minimum(sizes, per_query)
    whole = taken if blocks_of is None else taken - taken % blocks_of
    if per_query is not None:
        counts["examples beyond per_query"] += int((sizes - taken).sum())
    if blocks_of is not None:
        counts["examples beyond the last whole block of a query"] += int((taken - whole).sum())
    keys = priorities(seed, "brought examples", queries, numbers)
    return rows.take(pa.array(sampled.first_of_groups(queries, keys, np.repeat(whole, sizes))))


def _paired(examples: pa.Table) -> pa.Table:
    """Examples of one positive and one, or no, negative: as many as there are of the more numerous, in turn."""
    near, far = (examples[name].combine_chunks() for name in ("positives", "negatives"))
    near_sizes, far_sizes = (lists.value_lengths().to_numpy().astype(np.int64) for lists in (near, far))
    owner, nth = sampled.numbered(np.maximum(near_sizes, far_sizes))
    has_far = far_sizes[owner] > 0
    near_at = (np.cumsum(near_sizes) - near_sizes)[owner] + nth % near_sizes[owner]
    far_at = (np.cumsum(far_sizes) - far_sizes)[owner] + nth % np.maximum(far_sizes[owner], 1)
    rows = examples.select(["query", "number", "split"]).take(pa.array(owner))
    positives = sampled.as_lists(near.flatten().to_numpy()[near_at], np.ones(len(owner), int))
    negatives = sampled.as_lists(far.flatten().to_numpy()[far_at[has_far]], has_far)
    return rows.append_column("positives", positives).append_column("negatives", negatives)


def _texts_of(pairs: UserPairs, keys: Ids, ids: Ids, named: Ids) -> Iterator[pa.RecordBatch]:
    """The texts that rows name, of those with these keys and ids."""
    wanted = keys[look_up(named, ids)[1]]
    if len(wanted) == 0:
        return
    for some in pairs.texts():
        rows = np.flatnonzero(look_up(wanted, some.keys)[1]).tolist()
        titles, abstracts = ([column[row] for row in rows] for column in (some.titles, some.abstracts))
        yield from texts_table(titles, abstracts, is_query=some.are_queries, among=named).to_batches()
