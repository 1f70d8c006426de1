"""From a folder in SciRepEval's layout to the tables documents, judgements, labels and reviewers.

Only documents that some task asks for are kept, each once. What a task names and the folder has no text of is counted;
more than one in a hundred of a task's documents is an error, because a benchmark that is half there gives scores that
look like scores.
"""

from collections import Counter
from pathlib import Path

from cocite.errors import InputError
from cocite.evaluation.benchmark import Benchmark, BenchmarkFiles, write_benchmark, write_documents
from cocite.evaluation.layout import Row, has_task, read_judgements, read_labels, read_reviewers, read_texts
from cocite.evaluation.tasks import LARGEST_MISSING_SHARE, SCIREPEVAL, Task
from cocite.evaluation.texts import Texts, query_namespace
from cocite.files import write_omissions
from cocite.progress import progress


class References:
    """The documents that one task names, looked up among the texts; those without text are counted."""

    def __init__(self, texts: Texts, owner: str) -> None:
        self._texts = texts
        self._owner = owner
        self._first_unknown = ""
        self.asked = 0
        self.unknown = 0
        self.found: set[str] = set()

    def find(self, row: Row, namespace: str, identifier: str) -> str | None:
        """The document's name in the tables, or None where it has no text."""
        name = self._texts.name(namespace, identifier)
        self.asked += 1
        if name is not None:
            self.found.add(name)
            return name
        self.unknown += 1
        self._first_unknown = self._first_unknown or f"{row.place}: no text for the document {identifier!r}"
        return None

    def check(self) -> None:
        """Raise `InputError` if too many of the documents have no text."""
        if self.unknown > self.asked * LARGEST_MISSING_SHARE:
            raise InputError(
                f"{self._first_unknown}; {self.unknown} of {self.asked} mentions in {self._owner} have none."
            )


def prepare_scirepeval(folder: Path, *, documents: Path, files: BenchmarkFiles, omissions: Path) -> None:
    """Write the tables of the benchmark in `folder`.

    Raises `InputError` where the folder has no task, a file is missing or a row is wrong, and where more than a
    hundredth of the mentions of documents in a task have no text.
    """
    present = [task for task in SCIREPEVAL if has_task(folder, task)]
    if not present:
        raise InputError(f"{folder}: holds no task of SciRepEval; there must be folders such as test/fos.")
    omitted = Counter({f"task {task.name} absent": int(task not in present) for task in SCIREPEVAL})
    texts = _read_all_texts(folder, present)
    benchmark, used = Benchmark(), set[str]()
    for task in progress(present, of="Tasks", unit="task"):
        used |= _read_task(folder, task, texts, benchmark, omitted)
    if any(task.kind == "reviewers" for task in present):
        used |= _read_all_reviewers(folder, texts, benchmark, omitted)
    named = texts.named()
    omitted["document repeated with another text (the first counts)"] = texts.changed
    omitted["document that no task asks for"] = len(named) - len(used)
    omitted["document without title and abstract (kept)"] = sum(not any(named[name]) for name in used)
    write_documents(documents, {name: (*named[name], None) for name in used})
    write_benchmark(benchmark, files)
    write_omissions(omissions, dict(omitted))


def _read_all_texts(folder: Path, present: list[Task]) -> Texts:
    texts = Texts()
    configs = {task.texts_folder: task for task in present}
    for config, task in progress(configs.items(), of="Texts", unit="config"):
        for row in read_texts(folder, config):
            texts.add_row(task, row)
    return texts


def _read_task(folder: Path, task: Task, texts: Texts, benchmark: Benchmark, omitted: Counter[str]) -> set[str]:
    """Add a task to the benchmark; return its documents."""
    references = References(texts, f"the task {task.name}")
    if task.is_supervised:
        repeated = sum(_read_split(folder, task, split, references, benchmark) for split in ("train", "test"))
    else:
        repeated = _read_ranking(folder, task, references, benchmark)
    references.check()
    omitted[f"task {task.name}: document without text"] = references.unknown
    omitted[f"task {task.name}: repeated row (the first counts)"] = repeated
    return references.found


def _read_split(folder: Path, task: Task, split: str, references: References, benchmark: Benchmark) -> int:
    """Add the labels of one split; return how many rows label a document again."""
    labels_of = benchmark.labels.setdefault((task.name, split), {})
    repeated = 0
    for row, identifier, labels in read_labels(folder, task, split):
        document = references.find(row, task.texts_folder, identifier)
        if document is not None:
            repeated += document in labels_of
            labels_of.setdefault(document, labels)
    return repeated


def _read_ranking(folder: Path, task: Task, references: References, benchmark: Benchmark) -> int:
    """Add the judgements of a task; return how many rows judge a pair again."""
    judgements = benchmark.judgements.setdefault(task.name, {})
    repeated = 0
    for row, query_id, candidate_id, relevance in read_judgements(folder, task):
        query = references.find(row, query_namespace(task), query_id)
        candidate = _find_candidate(row, task, references, candidate_id)
        if query is not None and candidate is not None:
            candidates = judgements.setdefault(query, {})
            repeated += candidate in candidates
            candidates.setdefault(candidate, relevance)
    return repeated


def _find_candidate(row: Row, task: Task, references: References, candidate: str) -> str | None:
    return candidate if task.kind == "reviewers" else references.find(row, task.texts_folder, candidate)


def _read_all_reviewers(folder: Path, texts: Texts, benchmark: Benchmark, omitted: Counter[str]) -> set[str]:
    """Add the papers of the reviewers who are judged; return those papers."""
    tasks = [task for task in SCIREPEVAL if task.kind == "reviewers" and task.name in benchmark.judgements]
    judged = {r for task in tasks for candidates in benchmark.judgements[task.name].values() for r in candidates}
    references = References(texts, "the reviewers")
    for row, reviewer, papers in read_reviewers(folder):
        found = [references.find(row, tasks[0].texts_folder, paper) for paper in papers if reviewer in judged]
        benchmark.reviewers.setdefault(reviewer, set()).update(name for name in found if name is not None)
    references.check()
    omitted["reviewers: paper without text"] = references.unknown
    without = {reviewer for reviewer in judged if not benchmark.reviewers.get(reviewer)}
    if without:
        raise InputError(
            f"{folder / 'metadata' / 'reviewers'}: no papers of the reviewer {min(without)!r}, who is judged."
        )
    return references.found
