"""A folder in SciRepEval's layout, that of `allenai/scirepeval` (texts) and `allenai/scirepeval_test` (labels).

Texts are in `metadata/<config>/`, split `evaluation`, reviewers in `metadata/reviewers/` or `test/reviewers/`, split
`metadata`, labels and judgements in `test/<config>/`. And a folder of S2AND datasets, which the paper scores encoders
on as well.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.randomness import generator
from cocite.core.rows import Row, read_objects
from cocite.evaluation.preparation.builder import Builder, References, Texts, read_split

FIELDS_AFTER_ABSTRACT = {"search": ("venue", "year")}
"""What a task adds to title and abstract."""
LARGEST_SCORE = 2**31 - 1
TEST_SHARE = 0.1
SPLIT_SEED = 1111


class _AskedTexts(Texts):
    """Replaces the texts when a benchmark is read first, and records which of them are needed."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: set[tuple[str, str]] = set()

    def name(self, namespace: str, identifier: str) -> str:
        self.noted.add((namespace, identifier))
        return identifier


def read_scirepeval(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """Read the tasks of these names from the benchmark in `folder`, or all of them if none are named. Labels and
    judgements are read twice: first to find the texts that are needed, then to replace ids by the names of these."""
    present = builder.present_tasks(folder, declared, names, lambda task: f"test/{task.labels_folder}")
    asked = _AskedTexts()
    _read_tasks(folder, present, Builder(asked))
    builder.texts.asked = asked.noted
    configs = {task.texts_folder: task for task in present}
    for config, task in progress(configs.items(), of="Texts", unit="config"):
        for row in read_split(folder / "metadata" / config, "evaluation"):
            _add_texts(task, row, builder.texts)
    _read_tasks(folder, progress(present, of="Tasks", unit="task"), builder)


def _add_texts(task: Task, row: Row, texts: Texts) -> None:
    query, papers = row.values.get("query"), [(task.texts_folder, row)]
    if query is not None:
        papers = [(task.texts_folder, candidate) for candidate in row.nested_rows("candidates")]
    if isinstance(query, str):
        texts.add_query(task.query_namespace, row.identifier("doc_id"), row.text("query"))
    elif query is not None:
        papers.insert(0, (task.query_namespace, row.nested("query")))
    for namespace, paper in papers:
        further = (paper.values.get(name) for name in FIELDS_AFTER_ABSTRACT.get(task.name, ()))
        texts.add_paper(namespace, paper.identifier("doc_id"), paper, tuple(str(value) for value in further if value))


def _read_tasks(folder: Path, present: Iterable[Task], builder: Builder) -> None:
    of_reviewers = []
    for task in present:
        with builder.documents_of(task) as references:
            if task.is_supervised:
                for split in task.splits:
                    for row in read_split(folder / "test" / task.labels_folder, split):
                        document = references.find(row.place, task.texts_folder, row.identifier("paper_id"))
                        builder.label(task, split, document, _labels(row, task))
                train, test = (builder.benchmark.labels[task.name, split] for split in task.splits)
                both = f"task {task.name}: document to train on and to test (kept in both)"
                builder.omitted[both] = len(train.keys() & test.keys())
            else:
                _read_judgements(folder, task, references, builder)
        of_reviewers += [task] if task.kind == "reviewers" else []
    if of_reviewers:
        _read_reviewers(folder, of_reviewers, builder)


def _labels(row: Row, task: Task) -> list[str]:
    label = row.require("label")
    if task.kind == "multilabel":
        # Class names, as given or by a list with a 0 or 1 for each class; its classes are named 0, 1, …
        if isinstance(label, list) and all(isinstance(name, str) for name in label):
            return sorted(set(label))
        if isinstance(label, list) and all(flag in (0, 1) for flag in label):
            return [str(number) for number, flag in enumerate(label) if flag]
        raise InputError(f"{row.place}: label must be a list of class names or of 0 and 1, not {label!r}.")
    if isinstance(label, list | dict):
        raise InputError(f"{row.place}: label must be one value in the task {task.name}, not {label!r}.")
    if task.kind != "regression":
        whole = isinstance(label, bool) or (isinstance(label, float) and label.is_integer())
        name = str(int(label) if whole else label)
        if task.kind == "binary" and name not in ("0", "1"):
            raise InputError(f"{row.place}: label must be 0 or 1 in the task {task.name}, not {label!r}.")
        return [name]
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{row.place}: label must be a finite number in the task {task.name}, not {label!r}.")
    return [repr(number)]


def _read_judgements(folder: Path, task: Task, references: References, builder: Builder) -> None:
    queries = set()
    for row in read_split(folder / "test" / task.labels_folder, task.split):
        score = row.require("score")
        if not isinstance(score, int | float) or not 0 <= score <= LARGEST_SCORE or score != int(score):
            raise InputError(f"{row.place}: score must be a whole number from 0, not {score!r}.")
        query_id, candidate_id = row.identifier("query_id"), row.identifier("cand_id")
        queries.add(query_id)
        query = references.find(row.place, task.query_namespace, query_id)
        is_paper = task.kind != "reviewers"
        candidate = references.find(row.place, task.texts_folder, candidate_id) if is_paper else candidate_id
        builder.judge(task, query, candidate, int(score))
    judgements, of_task = builder.benchmark.judgements[task.name], f"task {task.name}: query without"
    builder.omitted[f"{of_task} text, or without a candidate with text"] = len(queries) - len(judgements)
    irrelevant = sum(not any(relevance.values()) for relevance in judgements.values())
    builder.omitted[f"{of_task} a relevant candidate (scored 0)"] = irrelevant


def _read_reviewers(folder: Path, tasks: Sequence[Task], builder: Builder) -> None:
    benchmark = builder.benchmark
    judged = {r for task in tasks for candidates in benchmark.judgements[task.name].values() for r in candidates}
    with builder.references("the reviewers", "reviewers: paper without text") as references:
        beside_texts = folder / "metadata" / "reviewers"
        for row in read_split(beside_texts if beside_texts.is_dir() else folder / "test" / "reviewers", "metadata"):
            reviewer, papers = row.identifier("r_id"), row.identifiers("papers")
            found = [references.find(row.place, tasks[0].texts_folder, paper) for paper in papers if reviewer in judged]
            benchmark.reviewers.setdefault(reviewer, set()).update(name for name in found if name is not None)
    if without := [reviewer for reviewer in sorted(judged) if not benchmark.reviewers.get(reviewer)]:
        raise InputError(f"{beside_texts}: no papers of the reviewer {without[0]!r}, who is judged.")


def read_s2and(folder: Path, declared: Sequence[Task], names: Sequence[str], builder: Builder) -> None:
    """S2AND (Subramanian et al., 2021, "S2AND"): the tasks of these names, or all of them if none are named.

        <dataset>/<dataset>_papers.json        texts of the papers
        <dataset>/<dataset>_signatures.json    names on papers: paper, and block of alike names
        <dataset>/<dataset>_clusters.json      authors: the signatures of each person

    A tenth of the blocks is for the test, as in the package of S2AND, but drawn independently of the order of the file.
    """
    present = builder.present_tasks(folder, declared, names, lambda task: task.labels_folder)
    for task in progress(present, of="Texts", unit="dataset"):
        for identifier, row in read_objects(_file(folder, task, "papers")):
            builder.texts.add_paper(task.texts_folder, identifier, row)
    for task in progress(present, of="Tasks", unit="task"):
        _read_signatures(folder, task, builder)


def _file(folder: Path, task: Task, table: str) -> Path:
    return folder / task.labels_folder / f"{task.labels_folder}_{table}.json"


def _read_signatures(folder: Path, task: Task, builder: Builder) -> None:
    authors: dict[str, str] = {}
    for author, row in read_objects(_file(folder, task, "clusters")):
        for signature in row.identifiers("signature_ids"):
            again = f"task {task.name}: signature of a second author (the first counts)"
            builder.omitted[again] += signature in authors
            authors.setdefault(signature, author)
    found, path = {}, _file(folder, task, "signatures")
    with builder.documents_of(task) as references:
        for signature, row in read_objects(path):
            builder.omitted[f"task {task.name}: signature without an author"] += signature not in authors
            if signature in authors:
                document = references.find(row.place, task.texts_folder, row.identifier("paper_id"))
                block = row.nested("author_info").identifier("block")
                if document is not None:
                    found[signature] = document, block
    blocks = sorted({block for _, block in found.values()})
    if len(blocks) < 2:
        raise InputError(f"{path}: has {len(blocks)} blocks; two are needed, one to choose the distance on.")
    order = generator(SPLIT_SEED, "test blocks", task.name).permutation(len(blocks))
    tested = {blocks[number] for number in order[: max(1, round(TEST_SHARE * len(blocks)))]}
    builder.benchmark.signatures[task.name] = {
        signature: (document, block, authors[signature], "test" if block in tested else "train")
        for signature, (document, block) in found.items()
    }
