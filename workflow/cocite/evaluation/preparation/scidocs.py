"""A folder in SciDocs' own layout (Cohan et al., 2020, "SPECTER").

    paper_metadata_{mag_mesh,view_cite_read,recomm}.json    texts: an object with a member for each paper
    {mag,mesh}/{train,test}.csv                             labels: paper, class
    {cite,cocite,coview,coread}/test.qrel                   judgements: query, 0, candidate, relevance
    recomm/{train,test}.csv, recomm/propensity_scores.json  clicks: query, clicked paper, papers in the order shown

A recommendation is measured as published: a click at a place that is often looked at says less than one further down,
so each counts by the inverse of its place's propensity.
"""

from collections.abc import Sequence
from pathlib import Path

from cocite.config.tasks import Task
from cocite.core.progress import progress
from cocite.core.rows import read_objects
from cocite.evaluation.preparation.builder import Builder, References, Texts
from cocite.evaluation.preparation.clicks import Paper, paper_of, read_clicks
from cocite.evaluation.preparation.files import present_tasks, read_delimited, relevance

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


def read_scidocs(
    folder: Path, declared: Sequence[Task], names: Sequence[str], *, keeps_fields: bool = False
) -> Builder:
    """Read the tasks of these names from the benchmark in `folder`, or all that it holds where none are named.

    Raises `InputError` where a task is named that the folder does not hold, a file is missing or a row is wrong.
    """
    present, omitted = present_tasks(folder, declared, names, lambda task: FOLDERS[task.name])
    texts = Texts(keeps_fields=keeps_fields)
    papers: dict[str, Paper] = {}
    for name in progress(sorted({_metadata(task) for task in present}), of="Texts", unit="file"):
        for identifier, row in read_objects(folder / f"paper_metadata_{name}.json"):
            texts.add_paper(name, identifier, row)
            if name == RECOMMENDATION:
                papers[identifier] = paper_of(identifier, row)
    builder = Builder(texts, omitted)
    for task in progress(present, of="Tasks", unit="task"):
        at = folder / FOLDERS[task.name]
        with builder.documents_of(task) as references:
            if task.name == RECOMMENDATION:
                read_clicks(at, task, papers, references, builder)
            elif task.is_supervised:
                _read_labels(at, task, references, builder)
            else:
                _read_judgements(at, task, references, builder)
    return builder


def _metadata(task: Task) -> str:
    return METADATA.get(task.name, "view_cite_read")


def _read_labels(folder: Path, task: Task, references: References, builder: Builder) -> None:
    for split in task.splits:
        for place, (identifier, label) in read_delimited(folder / f"{split}.csv", 2, ",", header=True):
            builder.label(task, split, references.find(place, _metadata(task), identifier), [label])


def _read_judgements(folder: Path, task: Task, references: References, builder: Builder) -> None:
    for place, (query_id, _, candidate_id, score) in read_delimited(folder / "test.qrel", 4, " ", header=False):
        query = references.find(place, _metadata(task), query_id)
        candidate = references.find(place, _metadata(task), candidate_id)
        builder.judge(task, query, candidate, relevance(score, place))
