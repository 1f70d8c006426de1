"""The texts of a benchmark under names that are unique over its tasks.

The same paper comes up in several tasks, often with the same text; it shall be embedded once. Where one id stands for
different texts (a query numbered like a document; the task search, which adds venue and year), each of them gets the
name `<namespace>:<id>`. Whether an id clashes is known only when all texts are: hence first `add`, then `name`.
"""

from cocite.evaluation.layout import Row
from cocite.evaluation.tasks import Task

Text = tuple[str | None, str | None, tuple[str, ...]]
"""Title, abstract, and what a task adds to them."""

FIELDS_AFTER_ABSTRACT = {"search": ("venue", "year")}
"""What a task adds to title and abstract."""


def query_namespace(task: Task) -> str:
    """The namespace of a task's queries: their own for queries of words, that of the documents for papers."""
    return f"{task.texts_folder}-query" if task.kind == "search" else task.texts_folder


class Texts:
    """The texts of all configs, by namespace and id."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], Text] = {}
        self._first: dict[str, Text] = {}
        self._clashing: set[str] = set()
        self.changed = 0
        """Rows that gave a known id of their namespace another text; the first text counts."""

    def add_row(self, task: Task, row: Row) -> None:
        """Take in one row of a config: a document, or a query and its candidates."""
        query = row.values.get("query")
        if query is None:
            self._add(task.texts_folder, row.identifier("doc_id"), _text_of(row, task))
            return
        if isinstance(query, str):
            self._add(query_namespace(task), row.identifier("doc_id"), (query.strip() or None, None, ()))
        else:
            nested = row.nested("query")
            self._add(query_namespace(task), nested.identifier("doc_id"), _text_of(nested, task))
        for candidate in row.nested_rows("candidates"):
            self._add(task.texts_folder, candidate.identifier("doc_id"), _text_of(candidate, task))

    def name(self, namespace: str, identifier: str) -> str | None:
        """The document's name in the tables; None where it has no text."""
        if (namespace, identifier) not in self._texts:
            return None
        return f"{namespace}:{identifier}" if identifier in self._clashing else identifier

    def named(self) -> dict[str, Text]:
        """Every text by its name."""
        return {str(self.name(namespace, identifier)): text for (namespace, identifier), text in self._texts.items()}

    def _add(self, namespace: str, identifier: str, text: Text) -> None:
        known = self._texts.setdefault((namespace, identifier), text)
        self.changed += known != text
        if self._first.setdefault(identifier, known) != known:
            self._clashing.add(identifier)


def _text_of(row: Row, task: Task) -> Text:
    more = tuple(str(row.values[name]) for name in FIELDS_AFTER_ABSTRACT.get(task.name, ()) if row.values.get(name))
    return row.text("title"), row.text("abstract"), more
