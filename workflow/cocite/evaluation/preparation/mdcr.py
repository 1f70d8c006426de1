"""A folder with MDCR's files.

mdcr_test.json          field → query → kind of candidate → papers; those under `true` are cited by the query
mdcr_test_data.jsonl    texts: a paper a line, its id under paper_id
"""

from collections.abc import Sequence
from pathlib import Path

from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.rows import Row, read_lines, read_objects
from cocite.evaluation.preparation.builder import Builder, References, Texts

JUDGED, TEXTS = "mdcr_test.json", "mdcr_test_data.jsonl"
CITED = "true"
NAMESPACE = "mdcr"


def read_mdcr(folder: Path, declared: Sequence[Task], names: Sequence[str], *, keeps_fields: bool = False) -> Builder:
    """Read the tasks of these names from the benchmark in `folder`, or all fields in it where none are named.

    Raises `InputError` where a field is asked for that the file lacks, a file is missing or something in it is wrong.
    """
    asked = {task.labels_folder: task for task in declared if not names or task.name in names}
    texts = Texts(keeps_fields=keeps_fields)
    for row in progress(read_lines(folder / TEXTS), of="Texts", unit="paper"):
        texts.add_paper(NAMESPACE, row.identifier("paper_id"), row)
    builder = Builder(texts, {})
    for field, queries in progress(read_objects(folder / JUDGED), of="Tasks", unit="task"):
        if field in asked:
            with builder.documents_of(asked[field]) as references:
                _read_field(queries, asked[field], references, builder)
    absent = [task for task in asked.values() if task.name not in builder.benchmark.judgements]
    if absent and (names or not builder.benchmark.judgements):
        raise InputError(f"{folder / JUDGED}: has no field {absent[0].labels_folder!r}.")
    builder.omitted.update({f"task {task.name} absent": 1 for task in absent})
    return builder


def _read_field(queries: Row, task: Task, references: References, builder: Builder) -> None:
    """Add the judgements of one field."""
    judgements = builder.benchmark.judgements.setdefault(task.name, {})
    for query_id in queries.values:
        kinds = queries.nested(query_id)
        query = references.find(kinds.place, NAMESPACE, query_id)
        if CITED not in kinds.values:
            raise InputError(f"{kinds.place}: the key {CITED!r}, of the papers that the query cites, is missing.")
        # Cited papers come last: one that was drawn as a negative as well is relevant.
        for kind in sorted(kinds.values, key=lambda name: name == CITED):
            for identifier in kinds.identifiers(kind):
                candidate = references.find(kinds.place, NAMESPACE, identifier)
                if query is not None and candidate is not None:
                    candidates = judgements.setdefault(query, {})
                    builder.omitted[f"task {task.name}: repeated candidate (once is enough)"] += candidate in candidates
                    candidates[candidate] = int(kind == CITED)
