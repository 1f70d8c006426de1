"""Input and output of a sampler: a block of queries with all it may draw from, and their triplets or examples.

User-supplied texts must not reintroduce excluded papers under another name. Titles are compared by their words, without
case, accents and punctuation; only their hashes are stored, eight bytes per paper.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.core.id_sets import NO_IDS, GrowingIdSet, IdSet, check_ids, size
from cocite.core.randomness import priorities
from cocite.core.tables.files import checked_files, open_table, table_in
from cocite.core.tables.papers import NO_TWINS, QUERIES, Twins, read_kept_out, read_twins
from cocite.core.written_ids import Ids, distinct, look_up, normalised

ROWS_AT_ONCE = 1 << 18
ROLES = ("query", "positive", "negative")
LISTS = ("positives", "negatives")
ENDS = {"edges": ("source", "target"), "cocitations": ("paper", "other"), "couplings": ("paper", "other")}
"""The tables of graphs, and the columns of the papers that they link."""
WEIGHTS = ("count", "strength", "weight")
TRAINING, VALIDATION = QUERIES
WORDS = {"triplets": ("triplets", "a triplet"), "sampled_examples": ("examples", "an example")}
"""What the rows of each table that a sampler gives are called, all of them and one."""
UNSERVED = {table: f"queries without {one}" for table, (_, one) in WORDS.items()}  # queries that have no row


@dataclass(frozen=True, kw_only=True)
class Titles:
    """The titles of some papers."""

    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))  # rising
    longest: int = 0  # characters of the longest one, as it is compared

    def __contains__(self, title: str | None) -> bool:
        """Whether a text is one of them."""
        # Few texts are so short: of the others, none is normalised.
        if not title or len(title) > 2 * self.longest + 100:
            return False
        return bool(look_up(self.hashes, np.array([_hash(normalised(title))], dtype=np.uint64))[1].any())


@dataclass(frozen=True, kw_only=True)
class Block:
    """Queries that are sampled for at once."""

    queries: Ids
    """Their ids, rising. Those that are negative are texts, for sets that are made of other sets."""
    splits: pa.ChunkedArray
    """The split of each: train or validation."""
    papers: IdSet
    """The papers with a text; only these may occur in a triplet."""
    sources: Sequence[Path]
    """The files that the sampler draws from."""
    seed: int
    """The run's seed."""
    kept_out: Ids = field(default_factory=lambda: NO_IDS)
    """The papers that are held out or excluded."""
    twins: Twins = NO_TWINS
    """The papers that another record of the same work represents; it has their links."""
    validation: Ids = field(default_factory=lambda: NO_IDS)
    """All papers that are queries to validate on, rising."""
    threads: int = 1
    """Threads that may read the sources."""
    is_first: bool = True
    """Whether no queries were sampled for before."""
    titles_kept_out: Callable[[], Titles] = Titles
    """Reads the titles of papers that are kept out, from all papers."""
    spill_to: Path | None = None
    """Where a sampler may write temporary files, next to this path."""

    def files(self, table: str) -> list[Path]:
        """The sources with this table, in the order given. Raises `InputError` if there are none."""
        found = [path for path in self.sources if table_in(path) == table]
        if not found:
            given = ", ".join(map(str, self.sources)) or "none"
            raise InputError(f"The sampler draws from the table {table}; none of its sources is one (given: {given}).")
        return found

    def read(self, table: str, columns: Sequence[str], *, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a table in batches; links are those of works. No batch is empty or has rows of two files, except
        for links of works that queries have: they are buffered and come last, each once."""
        ends = ENDS.get(table, ()) if len(self.twins.papers) else ()
        members, held = self.twins.members(), []
        for path in self.files(table):
            batches = open_table(path, table).iter_batches(
                rows or ROWS_AT_ONCE, columns=list(columns), use_threads=self.threads > 1
            )
            for batch in filter(len, batches):
                if not ends:
                    yield batch
                    continue
                links, of_twins = _of_works(batch, members, ends)
                of_queries = [look_up(self.queries, of_twins[name].to_numpy())[1] for name in ends]
                is_held = np.logical_or(*of_queries) | ("intents" in columns)
                held.append(of_twins.filter(pa.array(is_held)))
                yield from filter(len, (links, _united(of_twins.filter(pa.array(~is_held)), ends)))
        yield from filter(len, [_united(pa.concat_batches(held), ends)] if held else [])

    def read_by_query(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a table, all of a query together; the first column is that of queries, by which files are sorted.
        Row groups without queries of this block are not read."""
        held = list[pa.RecordBatch]()
        for file in (open_table(path, table) for path in self.files(table)):
            groups, place = list[int](), file.metadata.schema.names.index(columns[0])
            for number in range(file.num_row_groups):
                bounds = file.metadata.row_group(number).column(place).statistics
                if (
                    bounds is None
                    or not bounds.has_min_max
                    or (bounds.min <= self.queries[-1] and bounds.max >= self.queries[0])
                ):
                    groups.append(number)
            batches = file.iter_batches(ROWS_AT_ONCE, groups, columns=list(columns), use_threads=self.threads > 1)
            for batch in filter(len, batches):
                queries = batch[columns[0]].to_numpy()
                if held and held[-1][columns[0]][-1].as_py() != queries[0]:
                    yield pa.Table.from_batches(held)
                    held = []
                if last := int(np.searchsorted(queries, queries[-1])):
                    yield pa.Table.from_batches([*held, batch.slice(0, last)])
                    held = []
                held.append(batch.slice(last))
        if held:
            yield pa.Table.from_batches(held)


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Triplets or examples, and what was left out."""

    rows: pa.Table
    """Columns of the table that the sampler gives, in the order of its key."""
    texts: pa.Table | Iterable[pa.RecordBatch] | None = None
    """Texts that are not papers, if the sampler supplies some: columns of `sampled_texts`, in any order, perhaps with
    repetitions. They are read after the rows are written."""
    omissions: dict[str, int] = field(default_factory=dict)
    """How many of what were left out, and why; a reason that never occurred counts 0."""


def as_triplets(
    block: Block, places: Ids, positives: Ids, negatives: Ids, **columns: np.ndarray | pa.Array
) -> pa.Table:
    """A table of triplets, in order and each once, from the places of their queries; ranks are null unless given."""
    ids = {"query": block.queries[places], "positive": positives, "negative": negatives}
    ranks = dict.fromkeys(("positive_rank", "negative_rank"), pa.nulls(len(places), pa.int32()))
    return in_order(pa.table({**ids, "split": block.splits.take(pa.array(places)), **ranks, **columns}))


def in_order(triplets: pa.Table) -> pa.Table:
    """The triplets in the order of their ids; of those that come twice, the first is taken."""
    ordered = triplets.take(pc.sort_indices(triplets, sort_keys=[(role, "ascending") for role in ROLES]))
    keys = np.stack([ordered[role].to_numpy() for role in ROLES])
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return ordered if is_new.all() else ordered.filter(pa.array(is_new))


def as_lists(values: Any, sizes: Any) -> pa.ListArray:
    """Values as lists of these sizes."""
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(sizes)), pa.int32()), pa.array(values))


def numbered(sizes: Ids) -> tuple[Ids, Ids]:
    """Of groups of these sizes, one after the other: the group of each member, and its number there from 0."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return groups, np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def first_of_groups(groups: Ids, keys: NDArray[Any], count: int | Ids) -> Ids:
    """The places, rising, of the members of each group with the smallest keys, so many of each; `groups` rise."""
    order = np.lexsort((keys, groups))
    return np.sort(order[np.arange(len(order)) - np.searchsorted(groups, groups) < count])


def as_examples(triplets: pa.Table) -> pa.Table:
    """Triplets as examples: lists of one positive and of one negative."""
    lists = {name: as_lists(triplets[name[:-1]].to_numpy(), np.ones(len(triplets), int)) for name in LISTS}
    return pa.table({"query": triplets["query"], "split": triplets["split"], **lists})


def each_once(examples: pa.Table) -> pa.Table:
    """The examples of each query, in the order in which they come, numbered; of those that say the same, the first."""
    chosen = np.sort(first_of_each(examples))
    queries = examples["query"].to_numpy()[chosen]
    order = np.argsort(queries, kind="stable")
    rows, queries = examples.take(pa.array(chosen[order])), queries[order]
    numbers = 1 + np.arange(len(rows)) - np.searchsorted(queries, queries)
    return rows.set_column(rows.column_names.index("number"), "number", pa.array(numbers))


def first_of_each(examples: pa.Table) -> Ids:
    """The place of the first of the examples that say the same, which is known by a hash of the papers in each role."""
    keys = [examples["query"].to_numpy().view(np.uint64)]
    for lists in (examples[name].combine_chunks() for name in LISTS):
        keys.append(np.zeros(len(lists), dtype=np.uint64))  # a sum of hashes, whatever their order
        hashed = priorities(0, "paper of an example", lists.flatten().to_numpy())
        np.add.at(keys[-1], pc.list_parent_indices(lists).to_numpy(), hashed)
    if "aspect" in examples.column_names:
        aspects = examples["aspect"].combine_chunks().dictionary_encode().indices
        keys.append(aspects.fill_null(-1).to_numpy().astype(np.uint64))
    first: Ids = np.unique(np.stack(keys, axis=1), axis=0, return_index=True)[1]
    return first


def documents_of(examples: pa.Table) -> Ids:
    """All queries and documents that examples name, rising, each once."""
    lists = (pc.list_flatten(examples[name]).to_numpy() for name in LISTS)
    return distinct(examples["query"].to_numpy(), *lists)


def drawn_splits(seed: int, name: str, queries: Ids, validation: float) -> pa.Array:
    """The split of each query, of which a share is drawn to validate; `name` distinguishes this use of randomness."""
    bound = np.uint64(min(validation * 2.0**64, 2.0**64 - 2**12))
    return pa.array(np.where(priorities(seed, name, queries) < bound, VALIDATION, TRAINING), pa.string())


def among(queries: Ids, documents: Ids, pairs: Iterator[tuple[Ids, Ids]]) -> NDArray[np.bool_]:
    """Whether each pair of a query and a document is one of many pairs, which come some at a time."""
    of_queries, of_documents = distinct(queries), distinct(documents)
    wanted = np.searchsorted(of_queries, queries) * len(of_documents) + np.searchsorted(of_documents, documents)
    wanted, of_each = np.unique(wanted, return_inverse=True)
    is_found = np.zeros(len(wanted), dtype=bool)
    for one, other in pairs:
        (rows, is_query), (columns, is_document) = look_up(of_queries, one), look_up(of_documents, other)
        places, is_wanted = look_up(wanted, rows * len(of_documents) + columns)
        is_found[places[is_query & is_document & is_wanted]] = True
    return is_found[of_each]


def table_made_of(sets: Sequence[Path]) -> str:
    """The table of a set that combines these. Raises `InputError` if one of them is not a set."""
    tables = {path: table_in(path) for path in sets}
    for path, table in tables.items():
        if table not in WORDS:
            raise InputError(f"{path}: is neither the table triplets nor sampled_examples.")
    return "sampled_examples" if "sampled_examples" in tables.values() else "triplets"


def read_chosen(path: Path, is_chosen: NDArray[np.bool_]) -> pa.Table:
    """The selected rows of a sampled set; memory has few others, and row groups without any are not read."""
    file = open_table(path, table_in(path))
    chosen, first = [], 0
    for number in range(file.num_row_groups):
        last = first + file.metadata.row_group(number).num_rows
        for batch in file.iter_batches(ROWS_AT_ONCE, [number]) if is_chosen[first:last].any() else ():
            chosen.append(batch.filter(pa.array(is_chosen[first : first + len(batch)])))
            first += len(batch)
        first = last
    return pa.Table.from_batches(filter(len, chosen), file.schema_arrow).replace_schema_metadata()


def read_papers(papers: Path, queries: Path) -> IdSet:
    """The papers that triplets may contain, one of each work. Raises `InputError` if there is none, or an id < 0."""
    kept_out = distinct(read_kept_out(queries)["corpusid"].to_numpy(), read_twins(queries).papers)
    check_ids(kept_out, queries)
    listed = GrowingIdSet()
    for path in checked_files(papers, "papers"):
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "has_text"]):
            ids = batch["corpusid"].filter(batch["has_text"]).to_numpy()
            check_ids(ids, path)
            listed.add(ids)
    listed.remove(kept_out)
    if size(found := listed.finish()) == 0:
        raise InputError(f"{papers}: no paper has a title and an abstract; triplets need some that do.")
    return found


def kept_out_titles(papers: Path, queries: Path) -> Titles:
    """The titles of the papers that are held out or excluded, from the folder of the table papers."""
    ids = read_kept_out(queries)["corpusid"].combine_chunks()
    hashes, longest = array("Q"), 0
    for path in checked_files(papers, "papers") if len(ids) else ():
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "title"]):
            titles = batch["title"].filter(pc.is_in(batch["corpusid"], value_set=ids)).drop_null()
            for text in filter(None, map(normalised, titles.to_pylist())):
                hashes.append(_hash(text))
                longest = max(longest, len(text))
    return Titles(hashes=distinct(np.array(hashes, dtype=np.uint64)), longest=longest)


def _of_works(batch: pa.RecordBatch, members: Twins, ends: Sequence[str]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The links of papers without twins, and the others as links of works. Those within a work are dropped."""
    papers = [batch[name].to_numpy() for name in ends]
    touches = pa.array(np.logical_or(*(look_up(members.papers, some)[1] for some in papers)))
    touched = batch.filter(touches)
    one, other = (members.works_of(touched[name].to_numpy()) for name in ends)
    for name, works in zip(ends, (one, other), strict=True):
        touched = touched.set_column(batch.schema.get_field_index(name), batch.schema.field(name), pa.array(works))
    return batch.filter(pc.invert(touches)), touched.filter(pa.array(one != other))


def _united(links: pa.RecordBatch, ends: Sequence[str]) -> pa.RecordBatch:
    """The links of works, each once, with the sums of the weights of its records, or with all their intents."""
    one, other = (links[name].to_numpy() for name in ends)
    if set(WEIGHTS).intersection(links.schema.names):  # links with a weight have no direction
        one, other = np.minimum(one, other), np.maximum(one, other)
    pairs, places = np.unique(np.stack([one, other], axis=1), axis=0, return_inverse=True)
    united = dict(zip(ends, pairs.T, strict=True))
    for name in [name for name in links.schema.names if name not in ends]:
        if name in WEIGHTS:
            weights = links[name].to_numpy()
            united[name] = np.bincount(places.reshape(-1), weights).astype(weights.dtype)
        else:
            lists = links[name].take(pa.array(np.argsort(places.reshape(-1), kind="stable")))
            sizes = np.bincount(places.reshape(-1), links[name].value_lengths()).astype(np.int64)
            united[name] = as_lists(lists.flatten(), sizes)
    return pa.record_batch(united).select(links.schema.names)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
