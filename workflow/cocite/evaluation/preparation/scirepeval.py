"""From a folder in SciRepEval's layout to the tables documents, judgements, labels and reviewers.

Labels and judgements are read first, so that of the texts only those that some task asks for are kept, each once. What
a task names and the folder has no text of is counted; more than one in a hundred of a task's documents is an error,
because a benchmark that is half there gives scores that look like scores.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cocite.config.benchmarks.scirepeval import TASKS
from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, Prepared, write_benchmark
from cocite.evaluation.preparation.files import Row
from cocite.evaluation.preparation.layout import has_task, read_judgements, read_labels, read_reviewers, read_texts
from cocite.evaluation.preparation.texts import References, Texts, chosen_texts
from cocite.ground.errors import InputError
from cocite.ground.progress import progress


def prepare_scirepeval(
    folder: Path, *, tasks: Sequence[str] = (), files: Prepared, declared: Sequence[Task] = TASKS
) -> None:
    """Write the tables of these tasks of the benchmark in `folder`; where none are named, of all that it holds.

    Raises `InputError` where a task is named that the folder does not hold, where it has no task at all, a file is
    missing or a row is wrong, and where more than a hundredth of the mentions of documents in a task have no text.
    """
    asked = [task for task in declared if not tasks or task.name in tasks]
    present = [task for task in asked if has_task(folder, task)]
    if not present:
        named, first = ", ".join(task.name for task in asked), asked[0].labels_folder
        raise InputError(f"{folder}: holds none of the tasks {named}; there must be folders such as test/{first}.")
    absent = [task for task in asked if task not in present]
    if tasks and absent:
        raise InputError(
            f"{folder}: has no folder test/{absent[0].labels_folder}, but the task {absent[0].name} is asked for; it "
            f"holds {', '.join(task.name for task in declared if has_task(folder, task))}."
        )
    omitted = Counter({f"task {task.name} absent": int(task in absent) for task in asked})
    texts = _read_all_texts(folder, present)
    benchmark, used = Benchmark(), set[str]()
    for task in progress(present, of="Tasks", unit="task"):
        used |= _read_task(folder, task, texts, benchmark, omitted)
    of_reviewers = [task for task in present if task.kind == "reviewers"]
    if of_reviewers:
        used |= _read_all_reviewers(folder, of_reviewers, texts, benchmark, omitted)
    write_benchmark(benchmark, chosen_texts(texts, used, omitted), dict(omitted), files)


def _read_all_texts(folder: Path, present: list[Task]) -> Texts:
    texts = Texts(_asked_texts(folder, present))
    configs = {task.texts_folder: task for task in present}
    for config, task in progress(configs.items(), of="Texts", unit="config"):
        for row in read_texts(folder, config):
            texts.add_row(task, row)
    return texts


def _asked_texts(folder: Path, present: list[Task]) -> set[tuple[str, str]]:
    """Namespace and id of every document that a task needs the text of."""
    asked = {text for task in present for text in _named_texts(folder, task)}
    reviewed = [task for task in present if task.kind == "reviewers"]
    if reviewed:
        judged = {reviewer for task in reviewed for _, _, reviewer, _ in read_judgements(folder, task)}
        known = (papers for _, reviewer, papers in read_reviewers(folder) if reviewer in judged)
        asked.update((reviewed[0].texts_folder, paper) for papers in known for paper in papers)
    return asked


def _named_texts(folder: Path, task: Task) -> Iterator[tuple[str, str]]:
    """Namespace and id of the documents in the labels or judgements of a task; candidates may be reviewers instead."""
    if task.is_supervised:
        for split in task.splits:
            yield from ((task.texts_folder, identifier) for _, identifier, _ in read_labels(folder, task, split))
        return
    for _, query, candidate, _ in read_judgements(folder, task):
        yield task.query_namespace, query
        if task.kind != "reviewers":
            yield task.texts_folder, candidate


def _read_task(folder: Path, task: Task, texts: Texts, benchmark: Benchmark, omitted: Counter[str]) -> set[str]:
    """Add a task to the benchmark; return its documents."""
    references = References(texts, f"the task {task.name}")
    if task.is_supervised:
        repeated = sum(_read_split(folder, task, split, references, benchmark) for split in ("train", "test"))
        both = benchmark.labels[task.name, "train"].keys() & benchmark.labels[task.name, "test"].keys()
        omitted[f"task {task.name}: document to train on and to test (kept in both)"] = len(both)
    else:
        repeated, without = _read_ranking(folder, task, references, benchmark)
        judgements = benchmark.judgements[task.name].values()
        omitted[f"task {task.name}: query without text, or without a candidate with text"] = without
        omitted[f"task {task.name}: query without a relevant candidate (scored 0)"] = sum(
            not any(relevance.values()) for relevance in judgements
        )
    references.check()
    omitted[f"task {task.name}: document without text"] = references.unknown
    omitted[f"task {task.name}: repeated row (the first counts)"] = repeated
    return references.found


def _read_split(folder: Path, task: Task, split: str, references: References, benchmark: Benchmark) -> int:
    """Add the labels of one split; return how many rows label a document again."""
    labels_of = benchmark.labels.setdefault((task.name, split), {})
    repeated = 0
    for row, identifier, labels in read_labels(folder, task, split):
        document = references.find(row.place, task.texts_folder, identifier)
        if document is not None:
            repeated += document in labels_of
            labels_of.setdefault(document, labels)
    return repeated


def _read_ranking(folder: Path, task: Task, references: References, benchmark: Benchmark) -> tuple[int, int]:
    """Add the judgements of a task; return how many rows judge a pair again, and how many queries are left out."""
    judgements = benchmark.judgements.setdefault(task.name, {})
    repeated, asked = 0, set[str]()
    for row, query_id, candidate_id, relevance in read_judgements(folder, task):
        asked.add(query_id)
        query = references.find(row.place, task.query_namespace, query_id)
        candidate = _find_candidate(row, task, references, candidate_id)
        if query is not None and candidate is not None:
            candidates = judgements.setdefault(query, {})
            repeated += candidate in candidates
            candidates.setdefault(candidate, relevance)
    return repeated, len(asked) - len(judgements)


def _find_candidate(row: Row, task: Task, references: References, candidate: str) -> str | None:
    return candidate if task.kind == "reviewers" else references.find(row.place, task.texts_folder, candidate)


def _read_all_reviewers(
    folder: Path, tasks: Sequence[Task], texts: Texts, benchmark: Benchmark, omitted: Counter[str]
) -> set[str]:
    """Add the papers of the reviewers who are judged; return those papers."""
    judged = {r for task in tasks for candidates in benchmark.judgements[task.name].values() for r in candidates}
    references = References(texts, "the reviewers")
    for row, reviewer, papers in read_reviewers(folder):
        found = [references.find(row.place, tasks[0].texts_folder, paper) for paper in papers if reviewer in judged]
        benchmark.reviewers.setdefault(reviewer, set()).update(name for name in found if name is not None)
    references.check()
    omitted["reviewers: paper without text"] = references.unknown
    without = {reviewer for reviewer in judged if not benchmark.reviewers.get(reviewer)}
    if without:
        raise InputError(
            f"{folder / 'metadata' / 'reviewers'}: no papers of the reviewer {min(without)!r}, who is judged."
        )
    return references.found
