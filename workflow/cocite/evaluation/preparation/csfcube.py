"""A folder with the files of CSFCube.

abstracts-csfcube-preds.jsonl           texts: a paper a line, its id under paper_id; an abstract is a list of sentences
test-pid2anns-csfcube-<facet>.json      query → candidates (cands) and, aligned with them, their grades (relevance_adju)
evaluation_splits.json                  facet → fold1_test and fold2_test, queries named <id>_<facet>; read only where
                                        a metric is a mean over folds, and may be missing

The pool of a query may hold the query itself, which the released rankings leave out, and so do we. In the task of all
facets, a query is named <id>_<facet> as well, since a paper asks for other papers in each facet.

The layout is that of github.com/iesl/CSFCube.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cocite.config.benchmarks.csfcube import ALL, FACETS, FOLDS, JUDGED, TEXTS
from cocite.config.tasks import OVER_FOLDS, Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.rows import Row, read_lines, read_objects, shown
from cocite.evaluation.preparation.builder import Builder, References, Texts
from cocite.evaluation.preparation.files import as_number, relevance

NAMESPACE = "csfcube"
TEST_FOLDS = ("fold1_test", "fold2_test")


def read_csfcube(
    folder: Path, declared: Sequence[Task], names: Sequence[str], *, keeps_fields: bool = False
) -> Builder:
    """Read the tasks of these names from the benchmark in `folder`, or all facets in it where none are named.

    Raises `InputError` where a facet is asked for whose file is missing, there is none, or something in one is wrong.
    """
    texts = Texts(keeps_fields=keeps_fields)
    for row in progress(read_lines(folder / TEXTS), of="Texts", unit="paper"):
        texts.add(NAMESPACE, row.identifier("paper_id"), (row.text("title"), _abstract(row), ()))
    builder = Builder(texts, {})
    asked = [task for task in declared if (task.name in names if names else task.test != ALL)]
    for task in progress(asked, of="Tasks", unit="task"):
        files = {facet: folder / JUDGED.format(facet) for facet in (FACETS if task.test == ALL else [task.test])}
        is_there = all(path.is_file() for path in files.values())
        builder.omitted[f"task {task.name} absent"] = int(not is_there)
        if is_there or names:
            with builder.documents_of(task) as references:
                for facet, path in files.items():
                    _read_facet(path, facet, task, references, builder)
            if any(metric.endswith(OVER_FOLDS) for metric in task.metrics):
                _read_folds(folder / FOLDS, task, builder)
    if not builder.benchmark.judgements:
        raise InputError(f"{folder}: holds no facet; there must be files such as {JUDGED.format('background')}.")
    return builder


def _abstract(row: Row) -> str | None:
    """The sentences of an abstract as one text."""
    sentences = row.values.get("abstract")
    if sentences is None:
        return None
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise InputError(f"{row.place}: abstract must be a list of sentences, not {shown(sentences)}.")
    return " ".join(row.as_text(sentence, "abstract") or "" for sentence in sentences).strip() or None


def _read_facet(path: Path, facet: str, task: Task, references: References, builder: Builder) -> None:
    """Add the judgements of one facet."""
    builder.benchmark.judgements.setdefault(task.name, {})
    own = f"task {task.name}: query among its own candidates (left out)"
    for query_id, judged in read_objects(path):
        query = references.find(judged.place, NAMESPACE, query_id)
        name = query
        if query is not None and task.test == ALL:
            name = f"{query_id}_{facet}"
            builder.further_names[name] = query
        for identifier, grade in zip(judged.identifiers("cands"), _grades(judged), strict=True):
            if identifier == query_id:
                builder.omitted[own] += 1
                continue
            candidate = references.find(judged.place, NAMESPACE, identifier)
            builder.judge(task, name, candidate, grade)


def _read_folds(path: Path, task: Task, builder: Builder) -> None:
    """Add the test fold of each query of a task, where the folder has them.

    Raises `InputError` where a query is in no fold, or in both.
    """
    if not path.is_file():
        return
    folds = dict(_folds(path, dict(read_objects(path)), task.test))
    for name in builder.benchmark.judgements[task.name]:
        released = name if task.test == ALL else f"{name}_{task.test}"
        if released not in folds:
            raise InputError(f"{path}, {task.test}: no test fold has the query {released!r}.")
        builder.benchmark.folds.setdefault(task.name, {})[name] = folds[released]


def _folds(path: Path, facets: Mapping[str, Row], facet: str) -> Iterator[tuple[str, int]]:
    """Each query of a facet with its test fold, from 1."""
    if facet not in facets:
        raise InputError(f"{path}: the key {facet!r}, of the folds of this facet, is missing.")
    seen = set[str]()
    for number, fold in enumerate(TEST_FOLDS, start=1):
        for query in facets[facet].identifiers(fold):
            if query in seen:
                raise InputError(f"{path}, {facet}: the query {query!r} is in a test fold twice.")
            seen.add(query)
            yield query, number


def _grades(judged: Row) -> list[int]:
    """A grade for each candidate of a query."""
    grades, candidates = judged.require("relevance_adju"), judged.identifiers("cands")
    if not isinstance(grades, list) or any(as_number(grade) is None for grade in grades):
        raise InputError(f"{judged.place}: relevance_adju must be a list of grades, not {shown(grades)}.")
    if len(grades) != len(candidates):
        raise InputError(f"{judged.place}: has {len(candidates)} cands and {len(grades)} grades in relevance_adju.")
    return [relevance(grade, judged.place) for grade in grades]
