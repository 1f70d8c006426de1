"""How fast a benchmark of SciRepEval's size is scored, and how much faster than by the plain reading of the protocol.

Whole: all tasks, few-shot runs included, two jobs of one thread side by side, each with one task. Against the plain
reading: the classification and regression tasks with some of their training documents and all test documents, each
SVM fitted one by one by scikit-learn's GridSearchCV; both on one thread, with the scores beside each other.

The folder is generated in SciRepEval's layout, with a vector for each document. Classification and regression have as
many documents as the published splits, rankings fewer. The vectors are as those of encoders are: they share a mean,
few of their axes are long, documents of a class lie together, and labels, numbers and neighbours follow them in part,
so that scores are about as high as published ones. Ids are numbers of eight digits, so that every document has its own
and they sort alike.
"""

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tests.benchmarks.measuring import Cost, answer, cocite, run, say

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.tasks import Task
from cocite.core.tables.files import read_table, vector_column, write_table

SEED = 1
DIMENSION = 768
NORM = 15.0
NOISE = {"binary": 0.5, "multilabel": 0.9, "regression": 1.5}
"""What labels follow beside the vectors, by what they follow of the vectors."""
SEPARATION = 0.15
"""Deviation of the centres of classes, by that of the documents of a class, along each axis."""
STRAYS = 0.1
"""Share of documents with a label that is not that of their class."""
SUPERVISED = {  # training documents, test documents, classes
    "biomimicry": (8_243, 2_748, 2),
    "drsm": (7_520, 955, 6),
    "mesh_descriptors": (206_949, 51_738, 30),
    "fos": (54_131, 472, 23),
    "scidocs_mag": (17_000, 4_300, 19),
    "scidocs_mesh": (16_000, 4_000, 11),
    "peer_review_score": (8_200, 2_000, 0),
    "hIndex": (8_700, 2_200, 0),
    "tweet_mentions": (20_500, 5_200, 0),
    "cite_count": (24_000, 6_012, 0),
    "pub_year": (24_000, 6_000, 0),
}
RANKED = {  # queries, candidates of each, relevant ones among them
    "same_author": (400, 20, 5),
    "high_influence_cite": (400, 25, 5),
    "relish": (150, 60, 20),
    **{f"scidocs_{name}": (250, 29, 5) for name in ("cite", "cocite", "view", "read")},
    "paper_reviewer_matching": (100, 50, 5),
    "search": (400, 10, 2),
    "nfcorpus": (100, 50, 10),
    "trec_covid": (50, 200, 60),
}
LARGEST = {name: 800 if name == "fos" else 2_000 for name in SUPERVISED}
"""Training documents that the plain reading is given; with all of them it would take days."""
REVIEWERS = "paper_reviewer_matching"
LENGTHS = 1 / np.arange(1, DIMENSION + 1)
"""Variances of the axes."""


def main(folder: Path) -> None:
    _against_plain(folder / "part")
    _whole(folder / "whole")


def _whole(folder: Path) -> None:
    """Print the wall time and memory of scoring every task, and of the longest ones."""
    _prepare(folder, [*SUPERVISED, *RANKED], {})
    names = sorted((task.name for task in SCIREPEVAL), key=lambda name: -SUPERVISED.get(name, (0,))[0])
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as queue:
        costs = dict(zip(names, queue.map(lambda name: _score(folder, name), names), strict=True))
    wall = time.perf_counter() - start
    documents = len(read_table(folder / "documents.parquet", "documents"))
    say(
        f"scoring {len(names)} tasks over {documents:,} documents: {wall / 60:.1f} min of wall time on two threads, "
        f"{sum(cost.cpu for cost in costs.values()) / 60:.1f} min of cpu, "
        f"at most {max(cost.peak_mb for cost in costs.values()):.0f} MB a job"
    )
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].cpu)[:8]:
        say(f"  {name}: {cost.wall:.0f} s, {cost.cpu:.0f} s of cpu, {cost.peak_mb:.0f} MB")


def _against_plain(folder: Path) -> None:
    """Print the ratio of processor times on some of the training documents, and the largest difference of scores."""
    _prepare(folder, SUPERVISED, LARGEST)
    ours, plain, worst = 0.0, 0.0, 0.0
    for name in SUPERVISED:
        mine = _score(folder, name).cpu
        cost, value = answer(score_plainly, folder / "vectors.parquet", folder / f"{name}-labels.parquet")
        [scored] = read_table(folder / f"{name}-scores.parquet", "scores")["value"].to_pylist()
        ours, plain, worst = ours + mine, plain + cost.cpu, max(worst, abs(scored - value))
        say(f"  {name}: {cost.cpu / mine:.1f} × ({mine:.1f} s to {cost.cpu:.1f} s of cpu), {scored:.2f} {value:.2f}")
    say(f"plain reading: {plain / ours:.1f} × our processor time; scores differ by {worst:.2f} at most")


def _prepare(folder: Path, tasks: Iterable[str], largest: Mapping[str, int]) -> None:
    """Write the benchmark's tables and the vectors, and for the plain reading a table of labels for each task."""
    parts = _write_folder(folder / "layout", tasks, largest)
    write_table(folder / "vectors.parquet", "document_embeddings", _vectors(parts))
    options = {"kind": "scirepeval", "tasks": "", "tables": folder, "omissions": folder / "omissions.parquet"}
    run(cocite("evaluation", "prepare-folder", folder / "layout", **options))
    rows = read_table(folder / "labels.parquet", "labels")
    for task in SCIREPEVAL:
        of_task: pa.Table = rows.filter(pc.equal(rows["task"], task.name))
        write_table(folder / f"{task.name}-labels.parquet", "labels", of_task)


def _score(folder: Path, name: str) -> Cost:
    """Score one task in a process of its own, on one thread."""
    files = {table: folder / f"{name}-{table}.parquet" for table in ("scores", "outcomes", "failures")}
    options = {"tables": folder, "tasks": name, "model": "m", "training_seed": 1, "mode": "compat", "threads": 1}
    options |= {"largest_missing": 0.01, "embeddings": folder / "vectors.parquet", **files}
    return run(cocite("evaluation", "score", "1", **options))


def score_plainly(vectors: Path, labels: Path) -> float:
    """The score of a task by scikit-learn's machines, fitted one by one: the plain reading of SciRepEval's protocol."""
    import sklearn.svm  # noqa: F401  # loads what has threads, before these are limited
    from threadpoolctl import threadpool_limits

    from cocite.evaluation.scored import joined, read_blocks
    from cocite.evaluation.supervised import Examples

    warnings.simplefilter("ignore")
    rows = read_table(labels, "labels").to_pylist()
    task = TASKS[rows[0]["task"]]
    found = joined(read_blocks(vectors, task, [], [str(row["document"]) for row in rows]))
    sides: dict[str, Any] = {}
    for split in ("train", "test"):
        of_split = {row["document"]: row["labels"] for row in rows if row["split"] == split}
        sides |= {split: found.of(list(of_split)), f"{split}_labels": list(of_split.values())}
    examples = Examples(**sides).reordered(SEED, task.name)
    with threadpool_limits(1):
        return 100 * (_regression(examples) if task.kind == "regression" else _classification(task, examples))


def _regression(examples: Any) -> float:
    from scipy.stats import kendalltau
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVR

    target, truth = (
        np.array([float(label) for [label] in side]) for side in (examples.train_labels, examples.test_labels)
    )
    machine = LinearSVR(epsilon=0.0, fit_intercept=False, random_state=SEED, max_iter=1000)
    search = GridSearchCV(machine, {"C": np.logspace(-4, 2, 7)}, cv=3).fit(examples.train, target)
    return float(kendalltau(truth, search.predict(examples.test)).statistic)


def _classification(task: Task, examples: Any) -> float:
    from sklearn.metrics import f1_score
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    from cocite.evaluation.supervised import encode_classes, feasible_stages, few_shot_samples

    classes = encode_classes(task, examples)
    grid = {"C": np.logspace(-2, 2, 5)}
    few_shot = LinearSVC(fit_intercept=False, random_state=SEED, max_iter=1000)
    search = GridSearchCV(few_shot, grid, cv=3)
    if task.kind == "multilabel":
        machine = LinearSVC(loss="hinge", fit_intercept=False, random_state=SEED, max_iter=10_000)
        few_shot = search = OneVsRestClassifier(GridSearchCV(machine, grid, cv=3))

    def fitted(model: Any, sample: Any) -> float:
        predicted = model.fit(examples.train[sample], classes.train[sample]).predict(examples.test)
        if task.kind == "binary":
            return float(f1_score(classes.test, predicted, pos_label=classes.names.index("1")))
        return float(f1_score(classes.test, predicted, average="macro", zero_division=0))

    whole = fitted(search, slice(None))
    stages = [
        np.mean([fitted(few_shot, sample) for sample in few_shot_samples(stage, classes.train, SEED, task.name)])
        for stage in feasible_stages(task.few_shot, classes.train)
    ]
    return whole / 2 + float(np.mean(stages)) / 2 if stages else whole


@dataclass(frozen=True)
class Part:
    """The documents of one task: their first id and a draw of their own."""

    name: str
    first: int
    count: int
    train: int
    """Documents to train on, the first ones."""

    @property
    def ids(self) -> list[str]:
        return [f"{number:08}" for number in range(self.first, self.first + self.count)]

    @property
    def classes(self) -> NDArray[np.int64] | None:
        """The class of each document, if it is of one of several; classes are of unequal sizes."""
        classes = SUPERVISED.get(self.name, (0, 0, 0))[2]
        if classes <= 2 or self.name == "fos":
            return None
        shares = np.geomspace(1, 0.1, classes)
        return np.random.default_rng([2, self.first]).choice(classes, self.count, p=shares / shares.sum())

    def latents(self) -> NDArray[np.float32]:
        """What the documents are about, in axes of falling length; those of a ranking resemble their query."""
        draw = np.random.default_rng([1, self.first])
        latents = draw.standard_normal((self.count, DIMENSION), dtype=np.float32)
        if self.name in RANKED:
            _, candidates, relevant = RANKED[self.name]
            groups = latents.reshape(-1, candidates + 1, DIMENSION)
            alike = np.where(np.arange(candidates) < relevant, 0.35, 0.2)[None, :, None].astype(np.float32)
            groups[:, 1:] = alike * groups[:, :1] + np.sqrt(1 - alike**2) * groups[:, 1:]
        if (classes := self.classes) is not None:
            centres = draw.standard_normal((SUPERVISED[self.name][2], DIMENSION), dtype=np.float32)
            latents += (centres * np.float32(SEPARATION))[classes]
        return latents * np.sqrt(LENGTHS).astype(np.float32)


def _write_folder(folder: Path, names: Iterable[str], largest: Mapping[str, int]) -> list[Part]:
    """Write the folder with these tasks; return its parts, ascending. `largest` cuts training documents of some."""
    parts: list[Part] = []
    for name in names:
        if name in SUPERVISED:
            train, test, _ = SUPERVISED[name]
            train = min(train, largest.get(name, train))
        else:
            train, test = 0, RANKED[name][0] * (RANKED[name][1] + 1)
        first = parts[-1].first + parts[-1].count if parts else 0
        parts.append(Part(name, first, train + test, train))
        _write_part(folder / "test" / name, parts[-1])
    _write_texts(folder / "metadata", parts)
    return parts


def _vectors(parts: list[Part]) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(0)
    turn = np.linalg.qr(draw.normal(size=(DIMENSION, DIMENSION)))[0].astype(np.float32)
    mean = draw.normal(size=DIMENSION).astype(np.float32) * np.sqrt(LENGTHS.sum() / DIMENSION).astype(np.float32)
    scale = NORM / np.sqrt(2 * LENGTHS.sum())
    for part in parts:
        vectors = (part.latents() @ turn + mean) * np.float32(scale)
        columns = {"adapter": [""] * part.count, "document": part.ids}
        yield pa.record_batch({**columns, "vector": vector_column(vectors)})


def _write_part(folder: Path, part: Part) -> None:
    if part.name in RANKED:
        for split in ("test_hard", "test_soft") if part.name == REVIEWERS else ("test",):
            _write(folder / f"{split}.parquet", _judgements(part))
    else:
        rows = [{"paper_id": name, "label": label} for name, label in zip(part.ids, _labels(part), strict=True)]
        _write(folder / "train.parquet", rows[: part.train])
        _write(folder / "test.parquet", rows[part.train :])


def _labels(part: Part) -> list[Any]:
    """Labels that follow the vectors in part."""
    number, kind = SUPERVISED[part.name][2], TASKS[part.name].kind
    draw = np.random.default_rng([3, part.first])
    if (classes := part.classes) is not None:
        strays = draw.integers(number, size=part.count)
        return [str(name) for name in np.where(draw.random(part.count) < STRAYS, strays, classes)]
    weights = draw.normal(size=(DIMENSION, max(number, 1))) * LENGTHS[:, None] ** 0.25
    scores = part.latents() @ weights
    scores = scores / scores.std(axis=0) + NOISE[kind] * draw.normal(size=scores.shape)
    if kind == "regression":
        return [float(2005 + 8 * value if part.name == "pub_year" else value) for value in scores[:, 0]]
    if kind == "binary":
        return (scores[:, 0] > 0.8).astype(int).tolist()
    return [[str(column) for column in np.flatnonzero(row > 1.5)] for row in scores]


def _judgements(part: Part) -> list[dict[str, Any]]:
    _, candidates, relevant = RANKED[part.name]
    ids = part.ids
    return [
        {
            "query_id": ids[start],
            "cand_id": f"r{start + place}" if part.name == REVIEWERS else ids[start + place],
            "score": int(place <= relevant),
        }
        for start in range(0, part.count, candidates + 1)
        for place in range(1, candidates + 1)
    ]


def _write_texts(folder: Path, parts: list[Part]) -> None:
    """Write the texts, short ones, of every config: documents, or queries of words with their candidates."""
    tasks: dict[str, Task] = {task.labels_folder: task for task in SCIREPEVAL}
    configs: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        rows = [{"doc_id": name, "title": f"title {name}", "abstract": "abstract"} for name in part.ids]
        width = RANKED[part.name][1] + 1 if part.name in RANKED else 1
        groups = [rows[start : start + width] for start in range(0, len(rows), width)]
        if tasks[part.name].kind == "search":
            rows = [{"query": one["title"], "doc_id": one["doc_id"], "candidates": others} for one, *others in groups]
        configs.setdefault(tasks[part.name].texts_folder, []).extend(rows)
        if part.name == REVIEWERS:
            papers = [paper["doc_id"] for _, *others in groups for paper in others]
            reviewed = [row["cand_id"] for row in _judgements(part)]
            of_reviewers = [{"r_id": name, "papers": [paper]} for name, paper in zip(reviewed, papers, strict=True)]
            _write(folder / "reviewers/metadata.parquet", of_reviewers)
    for config, rows in configs.items():
        _write(folder / config / "evaluation.parquet", rows)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
