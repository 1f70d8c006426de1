"""From a folder in SciDocs' own layout to the tables of a benchmark (Cohan et al., 2020, "SPECTER").

    paper_metadata_{mag_mesh,view_cite_read,recomm}.json    texts: an object with a member for each paper
    {mag,mesh}/{train,test}.csv                             labels: paper, class
    {cite,cocite,coview,coread}/test.qrel                   judgements: query, 0, candidate, relevance
    recomm/test.csv, recomm/propensity_scores.json          clicks: query, clicked paper, papers in the order shown

The recommendation task was published with a ranker that is trained on clicks and on more than embeddings. Here it is a
ranking of the papers that were shown by the embeddings alone, measured as published: a click at a place that is often
looked at says less than one further down, so each counts by the inverse of its place's propensity.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cocite.config.benchmarks.scidocs import TASKS
from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, Document, Prepared, write_benchmark
from cocite.evaluation.preparation.files import present_tasks, read_delimited, read_members, read_objects, relevance
from cocite.evaluation.preparation.texts import References, Texts, chosen_texts
from cocite.ground.errors import InputError
from cocite.ground.progress import progress

RECOMMENDATION = "recomm"
FOLDERS = {
    "mag": "mag",
    "mesh": "mesh",
    "scidocs_cite": "cite",
    "scidocs_cocite": "cocite",
    "scidocs_view": "coview",
    "scidocs_read": "coread",
    RECOMMENDATION: "recomm",
}
"""The folder of each task."""
METADATA = {"mag": "mag_mesh", "mesh": "mag_mesh", RECOMMENDATION: "recomm"}
"""The file with the texts of a task; the other tasks share view_cite_read."""
AGAIN = "again"
"""The beginning of the name of a query that has been clicked for before; how often follows."""


def prepare_scidocs(
    folder: Path, *, tasks: Sequence[str] = (), files: Prepared, declared: Sequence[Task] = TASKS
) -> None:
    """Write the tables of these tasks of the benchmark in `folder`; where none are named, of all that it holds.

    Raises `InputError` where a task is named that the folder does not hold, a file is missing or a row is wrong.
    """
    folders = {task: folder / FOLDERS[task.name] for task in declared if not tasks or task.name in tasks}
    present, omitted = present_tasks(folders, must_all=bool(tasks))
    texts = Texts()
    for name in progress(sorted({_metadata(task) for task in present}), of="Texts", unit="file"):
        _read_texts(folder / f"paper_metadata_{name}.json", name, texts)
    benchmark, used, again = Benchmark(), set[str](), dict[str, str]()
    for task in progress(present, of="Tasks", unit="task"):
        references = References(texts, f"the task {task.name}")
        if task.name == RECOMMENDATION:
            again = _read_clicks(folders[task], references, benchmark, omitted)
        elif task.is_supervised:
            _read_labels(folders[task], task, references, benchmark, omitted)
        else:
            _read_judgements(folders[task], task, references, benchmark, omitted)
        references.check()
        omitted[f"task {task.name}: document without text"] = references.unknown
        used |= references.found
    chosen: dict[str, Document] = chosen_texts(texts, used, omitted)
    write_benchmark(benchmark, chosen | {name: chosen[query] for name, query in again.items()}, dict(omitted), files)


def _metadata(task: Task) -> str:
    return METADATA.get(task.name, "view_cite_read")


def _read_texts(path: Path, namespace: str, texts: Texts) -> None:
    for identifier, row in read_objects(path):
        texts.add(namespace, identifier, (row.text("title"), row.text("abstract"), ()))


def _read_labels(folder: Path, task: Task, references: References, benchmark: Benchmark, omitted: Counter[str]) -> None:
    for split in task.splits:
        labels = benchmark.labels.setdefault((task.name, split), {})
        for place, (identifier, label) in read_delimited(folder / f"{split}.csv", 2, ",", header=True):
            document = references.find(place, _metadata(task), identifier)
            if document is not None:
                omitted[f"task {task.name}: repeated row (the first counts)"] += document in labels
                labels.setdefault(document, [label])


def _read_judgements(
    folder: Path, task: Task, references: References, benchmark: Benchmark, omitted: Counter[str]
) -> None:
    judgements = benchmark.judgements.setdefault(task.name, {})
    for place, (query_id, _, candidate_id, score) in read_delimited(folder / "test.qrel", 4, " ", header=False):
        query = references.find(place, _metadata(task), query_id)
        candidate = references.find(place, _metadata(task), candidate_id)
        if query is not None and candidate is not None:
            candidates = judgements.setdefault(query, {})
            omitted[f"task {task.name}: repeated row (the first counts)"] += candidate in candidates
            candidates.setdefault(candidate, relevance(score, place))


def _read_clicks(folder: Path, references: References, benchmark: Benchmark, omitted: Counter[str]) -> dict[str, str]:
    """Add the clicks; return the names of queries that were clicked for before, with the query of each.

    Every click is measured by itself, so each further click of a query needs a name of its own.
    """
    judgements = benchmark.judgements.setdefault(RECOMMENDATION, {})
    weights = benchmark.weights.setdefault(RECOMMENDATION, {})
    propensities = _read_propensities(folder / "propensity_scores.json")
    again, clicks = dict[str, str](), Counter[str]()
    for place, (query_id, clicked_id, listed) in read_delimited(folder / "test.csv", 3, ",", header=True):
        shown = [identifier.strip() for identifier in listed.split(",")]
        if clicked_id not in shown[: len(propensities)]:
            raise InputError(
                f"{place}: {clicked_id!r}, which was clicked, is not among the papers that were shown, or at a place "
                f"beyond the {len(propensities)} of propensity_scores.json."
            )
        query = references.find(place, RECOMMENDATION, query_id)
        found = {identifier: references.find(place, RECOMMENDATION, identifier) for identifier in shown}
        if query is None or found[clicked_id] is None:
            omitted[f"task {RECOMMENDATION}: click whose query or clicked paper has no text"] += 1
            continue
        clicks[query] += 1
        name = query if clicks[query] == 1 else f"{AGAIN}{clicks[query]}:{query}"
        again |= {name: query} if name != query else {}
        judgements[name] = {str(found[i]): int(i == clicked_id) for i in shown if found[i] is not None}
        weights[name] = 1 / propensities[shown.index(clicked_id)]
    return again


def _read_propensities(path: Path) -> list[float]:
    """How likely each place of the list is looked at, the first one's first."""
    members: dict[str, Any] = dict(read_members(path))
    scores = members.get("scores")
    if not isinstance(scores, list) or not scores or not all(isinstance(p, int | float) and p > 0 for p in scores):
        raise InputError(f"{path}: must hold a list of positive numbers under the key scores.")
    return [float(propensity) for propensity in scores]
