"""The common form of all layouts of user-supplied queries and documents: examples that name texts by keys, and texts.

Examples come first, and of a collection only the texts that they name are kept, however large it is. Each may be read
several times. The key of a text within an example is its id (`text_ids`); that of a named text is derived from its
name, and is not negative. Each part of a layout (pairs, collection, scores or judgements) has its own folder.
"""

import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.hub import fetch_files
from cocite.core.options import Output, State
from cocite.core.progress import report
from cocite.core.rows import Row, is_json_lines, read_fields, read_rows
from cocite.core.written_ids import Ids
from cocite.triplets.sampled import TRAINING, VALIDATION

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
TOO_CLOSE = "negatives that the scores do not tell from positives, or that have no score"
"""The reason for omitted negatives."""
SPLIT_NAMES = {
    TRAINING: re.compile("train(ing)?(?![a-z])"),
    VALIDATION: re.compile("(val(id(ation)?)?|dev|eval(uation)?)(?![a-z])"),
    None: re.compile("test(?![a-z])"),
}
"""How the names of files and folders of each split begin."""


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


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Which negatives are kept."""

    margin: float | None = None  # so much less than the lowest score of a positive of the query, or still less
    most: float | None = None  # a score of at most so much

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self.margin is not None or self.most is not None

    def kept(self, positives: Sequence[float], negatives: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each of a query's negatives is kept; without a score, which is not a number, it is not."""
        most = np.inf if self.most is None else self.most
        if self.margin is not None:
            most = min(most, min(positives, default=-np.inf) - self.margin)
        kept: NDArray[np.bool_] = negatives <= most
        return kept


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
