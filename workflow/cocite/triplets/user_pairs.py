"""User-supplied queries and documents: what is common to all layouts, and their usable contents as a sampled set.

A layout has examples, which name texts by keys, and texts; each may be read several times. The key of a text within an
example is its id (`text_ids`); that of a named text is derived from its name, and is not negative. Texts are read once
for their ids and once more for those that the remaining examples name: memory is needed for examples by number only.
"""

import hashlib
import re
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.hub import fetch_files
from cocite.core.options import Output, State
from cocite.core.progress import progress, report
from cocite.core.randomness import priorities
from cocite.core.rows import Row, is_json_lines, read_fields, read_rows
from cocite.core.written_ids import Ids, distinct, look_up, text_id
from cocite.triplets import sampled
from cocite.triplets.sampled import TRAINING, VALIDATION
from cocite.triplets.samplers.pairs import Scored, UserSuppliedPairs
from cocite.triplets.texts import texts_table

TEXTS_AT_ONCE = 10_000
UNTOLD = ""
QUERIES, DOCUMENTS = "queries", "documents"
HASHED = 1 << 62  # the keys of names that are no numbers start here
MOST_DIGITS = 18
NAMES = {QUERIES: ("query", "queries"), DOCUMENTS: ("corpus", "collection", "passage")}
"""Names of the files, or of their folders."""
EXPECTED = {
    QUERIES: "queries.jsonl, queries.train.tsv or query/*.parquet",
    DOCUMENTS: "corpus.jsonl, collection.tsv or passage/*.parquet",
}
ID_KEYS = ("_id", "pid", "qid", "doc_id", "docid", "corpus_id", "passage_id", "query_id", "id")
TEXT_KEYS = ("text", "passage", "abstract", "contents", "query")
TOO_CLOSE = "negatives that the scores do not tell from positives, or that have no score"  # why negatives are omitted
SPLIT_NAMES = {
    TRAINING: re.compile("train(ing)?(?![a-z])"),
    VALIDATION: re.compile("(val(id(ation)?)?|dev|eval(uation)?)(?![a-z])"),
    None: re.compile("test(?![a-z])"),
}
"""How the names of files and folders of each split begin."""
UNKNOWN, EMPTY, LONG, KEPT_OUT = range(4)
SPLITS = (UNTOLD, TRAINING, VALIDATION)
REPEATED = "names that come again with another text (the first counts)"

Flags = NDArray[np.bool_]


def fetch_parts(
    *,
    parts: Annotated[
        GivenAsJson[Mapping[str, tuple[str, str, Sequence[str]]]],
        typer.Option(
            help="The parts to fetch, as JSON: for each part, such as pairs, its dataset on the Hugging Face hub, the "
            "revision and patterns of its files."
        ),
    ],
    state: State,
    output: Output,
) -> None:
    """Fetch data of trainings from the Hugging Face hub, pinned by commit; a killed fetch resumes.

    Each part is a folder in the output. Raises `InputError` if a part is not available, or has no matching file.
    """
    for part, (dataset, revision, patterns) in parts.items():
        fetched = state / part / revision
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
        if not any(path.is_file() for path in fetched.rglob("*") if ".cache" not in path.relative_to(fetched).parts):
            raise InputError(f"{dataset} at {revision} contains no files that match {', '.join(patterns)}.")
    with atomic_path(output) as folder:
        folder.mkdir()
        for part, (_, revision, _) in parts.items():
            shutil.rmtree(state / part / revision / ".cache", ignore_errors=True)  # what the hub's client notes
            shutil.move(state / part / revision, folder / part)
    shutil.rmtree(state)
    report(f"Fetched {', '.join(parts)}.")


class Example(NamedTuple):
    """A query with its documents, by their keys."""

    query: int
    positives: Sequence[int]
    negatives: Sequence[int]
    split: str = UNTOLD  # train or validation; empty if the layout does not specify it


class Texts(NamedTuple):
    """Some texts by their keys; all of them are short queries, or none is."""

    keys: Ids
    titles: Sequence[str | None]
    abstracts: Sequence[str | None]
    are_queries: bool


@dataclass(frozen=True, kw_only=True)
class UserPairs:
    """The contents of a layout. Omissions are counted while examples are read."""

    examples: Callable[[Counter[str]], Iterator[Example]]
    texts: Callable[[], Iterator[Texts]]


def kept(bounds: Scored, positives: Sequence[float], negatives: NDArray[np.float64]) -> Flags:
    """Whether each of a query's negatives is kept by the scores; without a score, which is not a number, it is not."""
    most = np.inf if bounds.max_score is None else bounds.max_score
    if bounds.margin is not None:
        most = min(most, min(positives, default=-np.inf) - bounds.margin)
    is_kept: Flags = negatives <= most
    return is_kept


def key_of(name: str, role: str) -> int:
    """The key of a query or a document that is named: twice its number, or a hash of another name."""
    if name.isdecimal() and name.isascii() and len(name) <= MOST_DIGITS and (name[0] != "0" or name == "0"):
        return 2 * int(name) + (role == QUERIES)
    digest = hashlib.md5(f"{role}\0{name}".encode(), usedforsecurity=False).digest()
    return HASHED | int.from_bytes(digest[:8]) >> 2


def keys_of(names: Sequence[Any] | Ids, role: str) -> Ids:
    """The keys of several names, which are texts or whole numbers."""
    if len(names) and (isinstance(names, np.ndarray) or type(names[0]) is int):
        numbers = np.asarray(names)
        if numbers.dtype == np.int64 and numbers.min() >= 0 and numbers.max() < 10**MOST_DIGITS:
            keys: Ids = 2 * numbers + (role == QUERIES)
            return keys
    return np.array([key_of(str(name), role) for name in names], dtype=np.int64)


def named_texts(folder: Path, role: str) -> Iterator[Texts]:
    """The queries, or the documents, of a collection, by name. Raises `InputError` if it has none."""
    files = collection_files(folder, role)
    if not files:
        raise InputError(f"{folder}: contains no {role}; there should be {EXPECTED[role]}.")
    for path in files:
        rows: Iterator[tuple[str, str | None, str | None]]
        if path.name.removesuffix(".gz").endswith(".tsv"):
            rows = ((name, None, text.strip() or None) for _, (name, text) in read_fields(path, 2))
        else:
            found = read_rows(path, [*ID_KEYS, "title", *TEXT_KEYS])
            rows = ((row.identifier(*ID_KEYS), row.text("title"), row.text(*TEXT_KEYS)) for row in found)
        yield from texts_of(rows, role)


def texts_of(rows: Iterator[tuple[str, str | None, str | None]], role: str) -> Iterator[Texts]:
    """Names, titles and texts by their keys, some at a time; queries are short ones, but for those with a title."""
    while some := list(islice(rows, TEXTS_AT_ONCE)):
        for is_short in (True, False):
            of_kind = [row for row in some if (role == QUERIES and row[1] is None) == is_short]
            if of_kind:
                names, titles, texts = zip(*of_kind, strict=True)
                columns = (texts, titles) if is_short else (titles, texts)
                yield Texts(keys_of(names, role), *columns, are_queries=is_short)


def all_named(folder: Path) -> Iterator[Texts]:
    """The queries and the documents of a collection, by their names."""
    for role in (QUERIES, DOCUMENTS):
        yield from named_texts(folder, role)


def collection_files(folder: Path, role: str) -> list[Path]:
    """The files of a folder with its queries or its documents, by their names or those of their folders."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.name.removesuffix(".gz").endswith((".jsonl", ".tsv", ".parquet"))
        and file.relative_to(folder).parts[0].startswith(NAMES[role])
        and not file.is_dir()
    ]


def row_files(folder: Path, patterns: Sequence[str] = ()) -> list[tuple[Path, str]]:
    """The JSON Lines and Parquet of a folder, or that file, and the split of each. Raises `InputError` without any."""
    if folder.is_file():
        return [(folder, UNTOLD)]
    found = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        # As on the hub, a star also matches folders.
        is_asked = any(fnmatch(inside.as_posix(), pattern) for pattern in patterns or ("*",))
        is_hidden = path.is_dir() or any(part.startswith(".") for part in inside.parts)
        # The split that the name of the file, or of a folder that it is in, begins with; None for test data.
        splits = (split for part in inside.parts for split, name in SPLIT_NAMES.items() if name.match(part))
        split = next(splits, UNTOLD)
        if is_asked and not is_hidden and (is_json_lines(path) or path.suffix == ".parquet") and split is not None:
            found.append((path, split))
    if not found:
        asked = f" that match {', '.join(patterns)}" if patterns else ""
        raise InputError(f"{folder}: contains no files of JSON Lines (.jsonl) or Parquet{asked}, other than test data.")
    validates = any(split == VALIDATION for _, split in found)
    return [(path, (split or TRAINING) if validates else UNTOLD) for path, split in found]


def as_list(row: Row, key: str) -> list[Any]:
    """The value under a key as a list: several values, one, or none."""
    value = row.values.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def sample_pairs(block: sampled.Block, pairs: UserPairs, settings: UserSuppliedPairs) -> sampled.Sampled:
    """The examples of a layout, and their texts, as the sampler's settings have them. Left out are texts that are empty
    or not there, short queries of too many words, and texts with the title of a paper that is kept out; negatives that
    are positives of the same query; and examples without a query or a positive."""
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
    trains = read.splits != SPLITS.index(VALIDATION)
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
