"""A benchmark during its preparation: files in the form of the hub, texts under unique names, tasks, and omissions.

The same paper occurs in several tasks, often with the same text, and is embedded only once. If one id has different
texts (a query numbered like a document; the task search, which adds venue and year), each of them is named
`<namespace>:<id>`. Clashes of ids are known only after all texts are added: hence first `add`, then `name`.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from cocite.config.benchmarks import declared
from cocite.config.tasks import LARGEST_MISSING_SHARE, Task
from cocite.core.errors import InputError
from cocite.core.rows import HALF_PAIRS, Row, read_rows
from cocite.evaluation.benchmark import Benchmark, write_benchmark

YEARS = range(1, 1 << 15)
PATTERNS = ("{}.jsonl", "{}.parquet", "{}-*-of-*.parquet", "{}/*.parquet")
"""The files of a split in the folder of a config of a dataset, as on the Hugging Face hub as well; never a script."""
LARGEST_GRADE = 1000
"""No scale of relevance has more grades, and trec_eval takes memory for each."""

Text = tuple[str | None, str | None, tuple[str, ...]]
"""Title, abstract, and what a task adds to them."""
Fields = tuple[str | None, list[str] | None, int | None]
"""Venue, names of the authors, and year."""


def fields_of(row: Row) -> Fields:
    """Venue, authors and year in a row; values of the wrong type count as unknown, as do ids of authors."""
    known = row.values
    venue = _text(known.get("venue")) or _text(known.get("journal_name"))
    authors = _names(known.get("author_names")) or _names(known.get("authors"))
    year = str(known.get("year")).strip()
    is_year = year.isascii() and year.isdecimal() and int(year) in YEARS
    return venue, authors, int(year) if is_year else None


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) and not HALF_PAIRS.search(value) else None


def _names(value: Any) -> list[str] | None:
    """The names in a list of names, or of objects with a name; ids are none."""
    listed = value if isinstance(value, list) else []
    found = [_text(each.get("name") or each.get("author_name") if isinstance(each, dict) else each) for each in listed]
    return [name for name in found if name and not name.isdecimal()] or None


class Texts:
    """The texts of all configs, by namespace and id, if it `keeps_fields` with venue, authors and year of papers."""

    def __init__(self, *, keeps_fields: bool = False) -> None:
        self._keeps_fields = keeps_fields
        self.asked: Container[tuple[str, str]] | None = None
        """Texts that are taken in; None for all."""
        self.fields: dict[tuple[str, str], Fields] = {}
        self._texts: dict[tuple[str, str], Text] = {}
        self.first: dict[str, tuple[Text, bool]] = {}
        """The first text of each id, and whether it is a short query."""
        self._clashing: set[str] = set()
        self._queries: set[tuple[str, str]] = set()
        self.unasked: set[tuple[str, str]] = set()
        """Texts that were not taken in."""
        self.changed = 0
        """Rows that gave a known id of their namespace another text; the first text counts."""

    def add_paper(self, namespace: str, identifier: str, row: Row, more: tuple[str, ...] = ()) -> None:
        """Take in the title and abstract of a paper."""
        self.add(namespace, identifier, (row.text("title"), row.text("abstract"), more))
        if self._keeps_fields and any(found := fields_of(row)):
            self.fields.setdefault((namespace, identifier), found)

    def add_query(self, namespace: str, identifier: str, text: str | None) -> None:
        """Add a short query, which is not a document even if a document has the same text."""
        self._queries.add((namespace, identifier))
        self.add(namespace, identifier, (text, None, ()))

    def add(self, namespace: str, identifier: str, text: Text) -> None:
        """Take in the text of an id."""
        if self.asked is not None and (namespace, identifier) not in self.asked:
            self.unasked.add((namespace, identifier))
            return
        known = self._texts.setdefault((namespace, identifier), text)
        self.changed += known != text
        kept = known, (namespace, identifier) in self._queries
        if self.first.setdefault(identifier, kept) != kept:
            self._clashing.add(identifier)

    def name(self, namespace: str, identifier: str) -> str | None:
        """The document's name in the tables; None if it has no text."""
        if (namespace, identifier) not in self._texts:
            return None
        return f"{namespace}:{identifier}" if identifier in self._clashing else identifier

    def of(self, namespace: str, identifier: str) -> Text | None:
        """The text of an id, if it has one."""
        return self._texts.get((namespace, identifier))

    def named(self) -> dict[str, Text]:
        """Every text by its name."""
        return {str(self.name(*key)): text for key, text in self._texts.items()}

    def short_queries(self) -> set[str]:
        """The names of the short queries."""
        return {str(self.name(*query)) for query in self._queries if query in self._texts}


class References:
    """The documents that one task names, looked up among the texts; those without text are counted."""

    def __init__(self, texts: Texts) -> None:
        self._texts, self._first_unknown = texts, ""
        self.asked = self.unknown = 0
        self.found: set[str] = set()

    def find(self, place: str, namespace: str, identifier: str) -> str | None:
        """The document's name in the tables, or None if it has no text."""
        name = self._texts.name(namespace, identifier)
        self.asked += 1
        if name is None:
            self.unknown += 1
            self._first_unknown = self._first_unknown or f"{place}: no text for the document {identifier!r}"
        else:
            self.found.add(name)
        return name

    def judged(self, place: str, namespace: str, identifier: str) -> str:
        """The name of a document that a search may find, or one that no document has: it counts as not found."""
        if (name := self.find(place, namespace, identifier)) is None:
            name = f"not in {namespace}: {identifier}"
            while name in self._texts.first:
                name = f"not {name}"
        return name

    def check(self, owner: str, largest_missing: float) -> None:
        """Raise `InputError` if too large a share of the documents has no text."""
        if self.unknown > self.asked * largest_missing:
            raise InputError(f"{self._first_unknown}; {self.unknown} of {self.asked} mentions in {owner} have none.")


class Builder:
    """Takes in what the tasks of a benchmark ask, and writes its tables."""

    def __init__(self, texts: Texts) -> None:
        self.texts, self.benchmark = texts, Benchmark()
        self.omitted = Counter[str]()
        self.used: set[str] = set()
        """Names of the documents of all tasks."""
        self.further_names: dict[str, str] = {}
        """Further names of documents, with the name of the document whose text they have."""

    def present_tasks(
        self, folder: Path, declared: Sequence[Task], names: Sequence[str], place_of: Callable[[Task], str]
    ) -> list[Task]:
        """Of the tasks of these names, or all if none are named, those whose path is in the folder; count the others.
        Raises `InputError` if none is present, or if a named one is absent."""
        held = [task for task in declared if (folder / place_of(task)).is_dir()]
        asked = [task for task in declared if not names or task.name in names]
        absent = [task for task in asked if task not in held]
        if len(absent) == len(asked) and not (names and held):
            tasks = ", ".join(task.name for task in asked)
            raise InputError(
                f"{folder}: contains none of the tasks {tasks}; it needs folders like {place_of(asked[0])}."
            )
        if names and absent:
            place, name, known = place_of(absent[0]), absent[0].name, ", ".join(task.name for task in held)
            raise InputError(f"{folder}: has no folder {place} for the requested task {name}; it contains {known}.")
        self.omitted.update({f"task {task.name} absent": int(task in absent) for task in asked})
        return [task for task in asked if task in held]

    @contextmanager
    def references(self, owner: str, reason: str) -> Iterator[References]:
        """Look up the documents that an owner names; count those without text under a reason, or refuse too many."""
        references = References(self.texts)
        yield references
        references.check(owner, LARGEST_MISSING_SHARE)
        self.omitted[reason] = references.unknown
        self.used |= references.found

    def documents_of(self, task: Task) -> AbstractContextManager[References]:
        """Look up the documents that a task names."""
        return self.references(f"the task {task.name}", f"task {task.name}: document without text")

    def label(self, task: Task, split: str, document: str | None, labels: list[str]) -> None:
        """Take in the labels of a document, if it has a text; of repeated ones, the first count."""
        of_split = self.benchmark.labels.setdefault((task.name, split), {})
        if document is not None:
            self.omitted[f"task {task.name}: repeated row (the first counts)"] += document in of_split
            of_split.setdefault(document, labels)

    def judge(self, task: Task, query: str | None, candidate: str | None, relevance: int) -> None:
        """Take in a judgement, if query and candidate have a text; of repeated ones, the first counts."""
        judgements = self.benchmark.judgements.setdefault(task.name, {})
        if query is not None and candidate is not None:
            candidates = judgements.setdefault(query, {})
            self.omitted[f"task {task.name}: repeated row (the first counts)"] += candidate in candidates
            candidates.setdefault(candidate, relevance)

    def search_in(self, task: Task, collection: Iterable[str]) -> None:
        """Take in the ids of the documents that the queries of a task are searched in, all of which have a text."""
        found = {str(self.texts.name(task.texts_folder, identifier)) for identifier in collection}
        self.benchmark.collections[task.name] = found
        self.used |= found

    def fields(self) -> dict[str, Fields]:
        """The further fields of every document that has any, by its name; of a shared text, the first ones known."""
        found = {name: fields for key, fields in reversed(self.texts.fields.items()) if (name := self.texts.name(*key))}
        return found | {name: found[original] for name, original in self.further_names.items() if original in found}

    def write(self, folders: Mapping[str, Path], *, tables: Path, omissions: Path) -> None:
        """Write the tables; count the texts that no task uses, and irregularities of the others. Raises `InputError`
        where none of the documents of a task has a title or an abstract; each task has a folder."""
        named, short = self.texts.named(), self.texts.short_queries()
        for task_name, folder in sorted(folders.items()):
            documents = self.benchmark.documents_of(declared(task_name)) - short
            if documents and not any(any(named[each]) for each in documents if each in named):
                of_task = f"{len(documents)} documents of the task {task_name}"
                raise InputError(f"{folder}: none of the {of_task} has a title or an abstract.")
        self.omitted["document repeated with another text (the first counts)"] = self.texts.changed
        self.omitted["document that no task asks for"] = len(self.texts.unasked) + len(named) - len(self.used)
        self.omitted["document without title and abstract (kept)"] = sum(not any(named[name]) for name in self.used)
        for task, collection in self.benchmark.collections.items():
            # Documents without a text are no copies: they are not ranked.
            with_text, first = sorted(name for name in collection if any(named[name])), dict[Text, str]()
            found = {name: first.setdefault(named[name], name) for name in with_text}
            self.benchmark.copies[task] = {name: original for name, original in found.items() if name != original}
        texts = {name: named[name] for name in self.used}
        texts |= {name: named[document] for name, document in self.further_names.items()}
        write_benchmark(
            self.benchmark,
            {name: (*text, None) for name, text in texts.items()},
            dict(self.omitted),
            short_queries=short & texts.keys(),
            tables=tables,
            omissions=omissions,
        )


def read_split(folder: Path, split: str, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of a split of a config's folder; of Parquet, only these columns. Raises `InputError` without rows."""
    files = files_of_split(folder, split)
    if not files:
        raise InputError(f"{folder}: contains neither {split}.jsonl nor {split}.parquet, nor shards of it.")
    rows = chain.from_iterable(read_rows(file, columns) for file in files)
    if (first := next(rows, None)) is None:
        raise InputError(f"{files[0]}: has no rows.")
    return chain([first], rows)


def files_of_split(folder: Path, split: str) -> list[Path]:
    """The files of a split, in the first of the layouts that has any."""
    return next(filter(None, (sorted(folder.glob(pattern.format(split))) for pattern in PATTERNS)), [])


def grade(value: object, place: str) -> int:
    """A whole number, also written as 2.0; below 0 means not relevant. Raises `InputError` if it is not one."""
    number = as_number(value)
    if number is None or not number.is_integer():
        raise InputError(f"{place}: relevance must be a whole number, not {value!r:.80}.")
    if abs(number) > LARGEST_GRADE:
        raise InputError(f"{place}: relevance must be at most {LARGEST_GRADE}, not {value!r:.80}.")
    return int(number)


def as_number(value: object) -> float | None:
    """A number, or a text that is one; else None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "_" in str(value):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
