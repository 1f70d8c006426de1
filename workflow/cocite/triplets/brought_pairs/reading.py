"""What every layout of brought queries and documents is read as: examples that name texts by keys, and the texts.

Examples come first, and only the texts that they name are kept of a collection, however large it is. A layout gives
both, and each may be read several times. The key of a text that stands in the example itself is its id
(`core.text_ids`); that of a text which is named follows from its name, and is not negative.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocite.core.errors import InputError
from cocite.core.id_sets import Ids
from cocite.core.rows import Row, is_json_lines, read_fields, read_rows

TEXTS_AT_ONCE = 10_000
TRAINING, VALIDATION, UNTOLD = "train", "validation", ""
QUERIES, DOCUMENTS = "queries", "documents"
HASHED = 1 << 62
"""The keys of names that are no numbers start here."""
MOST_DIGITS = 18
NAMES = {QUERIES: ("query", "queries"), DOCUMENTS: ("corpus", "collection", "passage")}
"""What the files that hold them, or their folders, are called."""
ID_KEYS = ("_id", "pid", "qid", "doc_id", "docid", "corpus_id", "passage_id", "query_id", "id")
TEXT_KEYS = ("text", "passage", "abstract", "contents", "query")
SPLIT_NAMES = {
    TRAINING: re.compile("train(ing)?(?![a-z])"),
    VALIDATION: re.compile("(val(id(ation)?)?|dev|eval(uation)?)(?![a-z])"),
    None: re.compile("test(?![a-z])"),
}
"""How the names of files and folders of each split begin."""


class Example(NamedTuple):
    """A query with its documents, by their keys."""

    query: int
    positives: Sequence[int]
    negatives: Sequence[int]
    split: str = UNTOLD
    """train or validation; empty where the layout does not say."""


class Texts(NamedTuple):
    """Some texts by their keys."""

    keys: Ids
    titles: Sequence[str | None]
    abstracts: Sequence[str | None]
    are_queries: bool
    """Whether all of them are short queries; none is otherwise."""


@dataclass(frozen=True, kw_only=True)
class Brought:
    """What a layout holds. What is left out while examples are read is counted."""

    examples: Callable[[Counter[str]], Iterator[Example]]
    texts: Callable[[], Iterator[Texts]]


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


def split_of(file: Path, folder: Path) -> str | None:
    """The split that the name of a file, or of a folder that it is in, begins with; None for test data."""
    for part in file.relative_to(folder).parts:
        for split, name in SPLIT_NAMES.items():
            if name.match(part):
                return split
    return UNTOLD


def named_texts(folder: Path, role: str) -> Iterator[Texts]:
    """The queries, or the documents, of a collection, by their names. Raises `InputError` where it holds none."""
    files = collection_files(folder, role)
    if not files:
        what = "corpus.jsonl, collection.tsv or passage/*.parquet"
        what = "queries.jsonl, queries.train.tsv or query/*.parquet" if role == QUERIES else what
        raise InputError(f"{folder}: holds no {role}; there should be {what}.")
    for path in files:
        rows = _of_tabs(path) if path.name.removesuffix(".gz").endswith(".tsv") else _of_rows(path)
        while some := list(islice(rows, TEXTS_AT_ONCE)):
            names, titles, texts = zip(*some, strict=True)
            yield from _by_kind(keys_of(names, role), titles, texts, role)


def all_named(folder: Path) -> Iterator[Texts]:
    """The queries and the documents of a collection, by their names."""
    for role in (QUERIES, DOCUMENTS):
        yield from named_texts(folder, role)


def _by_kind(keys: Ids, titles: Sequence[str | None], texts: Sequence[str | None], role: str) -> Iterator[Texts]:
    """Queries as short ones, but for those with a title, which are documents as all documents are."""
    if role == DOCUMENTS:
        yield Texts(keys, titles, texts, are_queries=False)
        return
    is_short = np.array([title is None for title in titles], dtype=bool)
    if is_short.any():
        rows = np.flatnonzero(is_short).tolist()
        yield Texts(keys[rows], [texts[row] for row in rows], [None] * len(rows), are_queries=True)
    if not is_short.all():
        rows = np.flatnonzero(~is_short).tolist()
        yield Texts(keys[rows], [titles[row] for row in rows], [texts[row] for row in rows], are_queries=False)


def collection_files(folder: Path, role: str) -> list[Path]:
    """The files of a folder that hold its queries or its documents, by their names or those of their folders."""
    found = []
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        is_table = file.name.removesuffix(".gz").endswith((".jsonl", ".tsv", ".parquet"))
        if is_table and not file.is_dir() and not parts[0].startswith(".") and parts[0].startswith(NAMES[role]):
            found.append(file)
    return found


def _of_tabs(path: Path) -> Iterator[tuple[str, None, str | None]]:
    for _, (name, text) in read_fields(path, 2):
        yield name, None, text.strip() or None


def _of_rows(path: Path) -> Iterator[tuple[str, str | None, str | None]]:
    for row in read_rows(path, [*ID_KEYS, "title", *TEXT_KEYS]):
        yield row.identifier(*ID_KEYS), row.text("title"), row.text(*TEXT_KEYS)


def row_files(folder: Path, patterns: Sequence[str] = ()) -> list[tuple[Path, str]]:
    """The files of JSON Lines and Parquet of a folder, or that file alone, and the split of each.

    Raises `InputError` where there are none.
    """
    if folder.is_file():
        return [(folder, UNTOLD)]
    found = []
    for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
        split, inside = split_of(path, folder), path.relative_to(folder)
        # As on the hub, a star stands for folders as well.
        asked_for = any(fnmatch(inside.as_posix(), pattern) for pattern in patterns or ("*",))
        is_hidden = any(part.startswith(".") for part in inside.parts)
        is_table = is_json_lines(path) or path.suffix == ".parquet"
        if asked_for and is_table and not is_hidden and split is not None:
            found.append((path, split))
    if not found:
        asked = f" that fit {', '.join(patterns)}" if patterns else ""
        raise InputError(f"{folder}: holds no files of JSON Lines (.jsonl) or Parquet{asked}, other than test data.")
    validates = any(split == VALIDATION for _, split in found)
    return [(path, (split or TRAINING) if validates else UNTOLD) for path, split in found]


def as_list(row: Row, key: str) -> list[Any]:
    """The value under a key as a list: several values, one, or none."""
    value = row.values.get(key)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
