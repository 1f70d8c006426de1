"""From a folder with MDCR's files to the tables of a benchmark.

mdcr_test.json          field → query → kind of candidate → papers; those under `true` are cited by the query
mdcr_test_data.jsonl    texts: a paper a line, its id under paper_id
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cocite.config.benchmarks.mdcr import TASKS
from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, Prepared, write_benchmark
from cocite.evaluation.preparation.files import Row, read_lines, read_members
from cocite.evaluation.preparation.texts import References, Texts, chosen_texts
from cocite.ground.errors import InputError
from cocite.ground.progress import progress

JUDGED, TEXTS = "mdcr_test.json", "mdcr_test_data.jsonl"
CITED = "true"
NAMESPACE = "mdcr"


def prepare_mdcr(folder: Path, *, tasks: Sequence[str] = (), files: Prepared, declared: Sequence[Task] = TASKS) -> None:
    """Write the tables of these tasks of the benchmark in `folder`; where none are named, of all fields in it.

    Raises `InputError` where a field is asked for that the file lacks, a file is missing or something in it is wrong.
    """
    asked = {task.labels_folder: task for task in declared if not tasks or task.name in tasks}
    texts = Texts()
    for row in progress(read_lines(folder / TEXTS), of="Texts", unit="paper"):
        texts.add(NAMESPACE, row.identifier("paper_id"), (row.text("title"), row.text("abstract"), ()))
    benchmark, used, omitted = Benchmark(), set[str](), Counter[str]()
    for field, queries in progress(read_members(folder / JUDGED), of="Tasks", unit="task"):
        if field in asked:
            task, references = asked[field], References(texts, f"the task {asked[field].name}")
            _read_field(Row({field: queries}, str(folder / JUDGED)), task, references, benchmark, omitted)
            references.check()
            omitted[f"task {task.name}: document without text"] = references.unknown
            used |= references.found
    absent = [task for task in asked.values() if task.name not in benchmark.judgements]
    if absent and (tasks or not benchmark.judgements):
        raise InputError(f"{folder / JUDGED}: has no field {absent[0].labels_folder!r}.")
    omitted.update({f"task {task.name} absent": 1 for task in absent})
    write_benchmark(benchmark, chosen_texts(texts, used, omitted), dict(omitted), files)


def _read_field(row: Row, task: Task, references: References, benchmark: Benchmark, omitted: Counter[str]) -> None:
    """Add the judgements of one field."""
    judgements = benchmark.judgements.setdefault(task.name, {})
    queries = row.nested(task.labels_folder)
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
                    omitted[f"task {task.name}: repeated candidate (once is enough)"] += candidate in candidates
                    candidates[candidate] = int(kind == CITED)
