"""The texts of a benchmark under names that are unique over its tasks.

The same paper occurs in several tasks, often with the same text, and is embedded only once. Where one id stands for
different texts (a query numbered like a document; the task search, which adds venue and year), each of them gets the
name `<namespace>:<id>`. Whether an id clashes is known only when all texts are: hence first `add`, then `name`.
"""

from collections import Counter
from collections.abc import Container, Iterable

from cocite.config.tasks import LARGEST_MISSING_SHARE, Task
from cocite.evaluation.benchmark import Document
from cocite.evaluation.preparation.files import Row
from cocite.ground.errors import InputError

Text = tuple[str | None, str | None, tuple[str, ...]]
"""Title, abstract, and what a task adds to them."""

FIELDS_AFTER_ABSTRACT = {"search": ("venue", "year")}
"""What a task adds to title and abstract."""


class Texts:
    """The texts of all configs, by namespace and id: those that are `asked` for, or all where that is None."""

    def __init__(self, asked: Container[tuple[str, str]] | None = None) -> None:
        self._asked = asked
        self._unasked: set[tuple[str, str]] = set()
        self._texts: dict[tuple[str, str], Text] = {}
        self._first: dict[str, Text] = {}
        self._clashing: set[str] = set()
        self.changed = 0
        """Rows that gave a known id of their namespace another text; the first text counts."""

    def add_row(self, task: Task, row: Row) -> None:
        """Take in one row of a config: a document, or a query and its candidates."""
        query = row.values.get("query")
        if query is None:
            self.add(task.texts_folder, row.identifier("doc_id"), _text_of(row, task))
            return
        if isinstance(query, str):
            self.add(task.query_namespace, row.identifier("doc_id"), (query.strip() or None, None, ()))
        else:
            nested = row.nested("query")
            self.add(task.query_namespace, nested.identifier("doc_id"), _text_of(nested, task))
        for candidate in row.nested_rows("candidates"):
            self.add(task.texts_folder, candidate.identifier("doc_id"), _text_of(candidate, task))

    def name(self, namespace: str, identifier: str) -> str | None:
        """The document's name in the tables; None where it has no text."""
        if (namespace, identifier) not in self._texts:
            return None
        return f"{namespace}:{identifier}" if identifier in self._clashing else identifier

    @property
    def unasked(self) -> int:
        """How many texts were not taken in."""
        return len(self._unasked)

    def named(self) -> dict[str, Text]:
        """Every text by its name."""
        return {str(self.name(namespace, identifier)): text for (namespace, identifier), text in self._texts.items()}

    def add(self, namespace: str, identifier: str, text: Text) -> None:
        """Take in the text of an id."""
        if self._asked is not None and (namespace, identifier) not in self._asked:
            self._unasked.add((namespace, identifier))
            return
        known = self._texts.setdefault((namespace, identifier), text)
        self.changed += known != text
        if self._first.setdefault(identifier, known) != known:
            self._clashing.add(identifier)


def _text_of(row: Row, task: Task) -> Text:
    more = tuple(str(row.values[name]) for name in FIELDS_AFTER_ABSTRACT.get(task.name, ()) if row.values.get(name))
    return row.text("title"), row.text("abstract"), more


class References:
    """The documents that one task names, looked up among the texts; those without text are counted."""

    def __init__(self, texts: Texts, owner: str) -> None:
        self._texts = texts
        self._owner = owner
        self._first_unknown = ""
        self.asked = 0
        self.unknown = 0
        self.found: set[str] = set()

    def find(self, place: str, namespace: str, identifier: str) -> str | None:
        """The document's name in the tables, or None where it has no text."""
        name = self._texts.name(namespace, identifier)
        self.asked += 1
        if name is not None:
            self.found.add(name)
            return name
        self.unknown += 1
        self._first_unknown = self._first_unknown or f"{place}: no text for the document {identifier!r}"
        return None

    def check(self) -> None:
        """Raise `InputError` if too many of the documents have no text."""
        if self.unknown > self.asked * LARGEST_MISSING_SHARE:
            raise InputError(
                f"{self._first_unknown}; {self.unknown} of {self.asked} mentions in {self._owner} have none."
            )


def chosen_texts(texts: Texts, used: Iterable[str], omitted: Counter[str]) -> dict[str, Document]:
    """The texts of the documents that some task asks for; count the others, and what is odd about the texts."""
    named, chosen = texts.named(), set(used)
    omitted["document repeated with another text (the first counts)"] = texts.changed
    omitted["document that no task asks for"] = texts.unasked + len(named) - len(chosen)
    omitted["document without title and abstract (kept)"] = sum(not any(named[name]) for name in chosen)
    return {name: (*named[name], None) for name in chosen}
