"""Generates a benchmark folder in SciRepEval's layout with a vector for each document.

Classification and regression have as many documents as the published splits, rankings fewer. The vectors are as those
of encoders are: they share a mean, few of their axes are long, documents of a class lie together, and labels, numbers
and neighbours follow them in part, so that scores are about as high as published ones. Ids are numbers of eight
digits, so that every document has its own and they sort alike.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cocite.config.benchmarks import TASKS
from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.config.tasks import Task
from cocite.core.tables.files import vector_column, write_table

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
Latents = NDArray[np.float32]


@dataclass(frozen=True)
class Part:
    """The documents of one task: their first id and a draw of their own."""

    name: str
    first: int
    count: int

    def ids(self) -> list[str]:
        return [f"{number:08}" for number in range(self.first, self.first + self.count)]

    @property
    def has_classes(self) -> bool:
        """Whether each document is of one of several classes."""
        return SUPERVISED.get(self.name, (0, 0, 0))[2] > 2 and self.name != "fos"

    def classes(self) -> NDArray[np.int64]:
        """The class of each document; classes are of unequal sizes."""
        classes = SUPERVISED[self.name][2]
        shares = np.geomspace(1, 0.1, classes)
        return np.random.default_rng([2, self.first]).choice(classes, self.count, p=shares / shares.sum())

    def latents(self) -> Latents:
        """What the documents are about, in axes of falling length; those of a ranking resemble their query."""
        draw = np.random.default_rng([1, self.first])
        latents = draw.standard_normal((self.count, DIMENSION), dtype=np.float32)
        if self.name in RANKED:
            _, candidates, relevant = RANKED[self.name]
            groups = latents.reshape(-1, candidates + 1, DIMENSION)
            alike = np.where(np.arange(candidates) < relevant, 0.35, 0.2)[None, :, None].astype(np.float32)
            groups[:, 1:] = alike * groups[:, :1] + np.sqrt(1 - alike**2) * groups[:, 1:]
        if self.has_classes:
            classes = SUPERVISED[self.name][2]
            centres = draw.standard_normal((classes, DIMENSION), dtype=np.float32) * np.float32(SEPARATION)
            latents += centres[self.classes()]
        return latents * np.sqrt(_lengths()).astype(np.float32)


def write_folder(folder: Path, names: Iterable[str], largest: Mapping[str, int]) -> list[Part]:
    """Write the folder with these tasks; return its parts, ascending. `largest` cuts training documents of some."""
    parts, first = [], 0
    for name in names:
        if name in SUPERVISED:
            count = _train_size(name, largest) + SUPERVISED[name][1]
        else:
            queries, candidates, _ = RANKED[name]
            count = queries * (candidates + 1)
        part = Part(name, first, count)
        parts.append(part)
        first += part.count
        write_part(folder, part, largest)
    write_texts(folder, parts)
    return parts


def write_vectors(path: Path, parts: list[Part]) -> None:
    write_table(path, "document_embeddings", _vectors(parts))


def _vectors(parts: list[Part]) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(0)
    turn = np.linalg.qr(draw.normal(size=(DIMENSION, DIMENSION)))[0].astype(np.float32)
    mean = draw.normal(size=DIMENSION).astype(np.float32) * np.sqrt(_lengths().sum() / DIMENSION).astype(np.float32)
    scale = NORM / np.sqrt(2 * _lengths().sum())
    for part in parts:
        vectors = (part.latents() @ turn + mean) * np.float32(scale)
        columns = {"adapter": [""] * part.count, "document": part.ids()}
        yield pa.record_batch({**columns, "vector": vector_column(vectors)})


def _lengths() -> NDArray[np.float64]:
    return 1 / np.arange(1, DIMENSION + 1)


def _train_size(name: str, largest: Mapping[str, int]) -> int:
    train = SUPERVISED[name][0]
    return min(train, largest.get(name, train))


def write_part(folder: Path, part: Part, largest: Mapping[str, int]) -> None:
    if part.name in RANKED:
        rows = _judgements(part)
        splits = ["test_hard", "test_soft"] if part.name == "paper_reviewer_matching" else ["test"]
        for split in splits:
            _write(folder / "test" / part.name / f"{split}.parquet", rows)
        return
    train = _train_size(part.name, largest)
    rows = [{"paper_id": name, "label": label} for name, label in zip(part.ids(), _labels(part), strict=True)]
    _write(folder / "test" / part.name / "train.parquet", rows[:train])
    _write(folder / "test" / part.name / "test.parquet", rows[train:])


def _labels(part: Part) -> list[Any]:
    """Labels that follow the vectors in part."""
    classes, kind = SUPERVISED[part.name][2], TASKS[part.name].kind
    draw = np.random.default_rng([3, part.first])
    if part.has_classes:
        strays = draw.integers(classes, size=part.count)
        return [str(name) for name in np.where(draw.random(part.count) < STRAYS, strays, part.classes())]
    weights = draw.normal(size=(DIMENSION, max(classes, 1))) * _lengths()[:, None] ** 0.25
    scores = part.latents() @ weights
    scores = scores / scores.std(axis=0) + NOISE[kind] * draw.normal(size=scores.shape)
    if kind == "regression":
        return [float(2005 + 8 * value if part.name == "pub_year" else value) for value in scores[:, 0]]
    if kind == "binary":
        return (scores[:, 0] > 0.8).astype(int).tolist()
    return [[str(column) for column in np.flatnonzero(row > 1.5)] for row in scores]


def _judgements(part: Part) -> list[dict[str, Any]]:
    _, candidates, relevant = RANKED[part.name]
    ids = part.ids()
    is_reviewed = part.name == "paper_reviewer_matching"
    return [
        {
            "query_id": ids[start],
            "cand_id": f"r{start + place}" if is_reviewed else ids[start + place],
            "score": int(place <= relevant),
        }
        for start in range(0, part.count, candidates + 1)
        for place in range(1, candidates + 1)
    ]


def write_texts(folder: Path, parts: list[Part]) -> None:
    """Write the texts, short ones, of every config."""
    tasks: dict[str, Task] = {task.labels_folder: task for task in SCIREPEVAL}
    configs: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        documents = [{"doc_id": name, "title": f"title {name}", "abstract": "abstract"} for name in part.ids()]
        configs.setdefault(tasks[part.name].texts_folder, []).extend(_as_searched(tasks[part.name], part, documents))
        if part.name == "paper_reviewer_matching":
            reviewed = [row["cand_id"] for row in _judgements(part)]
            papers = [name for place, name in enumerate(part.ids()) if place % (RANKED[part.name][1] + 1)]
            rows = [{"r_id": name, "papers": [paper]} for name, paper in zip(reviewed, papers, strict=True)]
            _write(folder / "metadata" / "reviewers" / "metadata.parquet", rows)
    for config, rows in configs.items():
        _write(folder / "metadata" / config / "evaluation.parquet", rows)


def _as_searched(task: Task, part: Part, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a config: documents, or queries of words with their candidates."""
    if task.kind != "search":
        return documents
    width = RANKED[part.name][1] + 1
    groups = [documents[start : start + width] for start in range(0, len(documents), width)]
    return [{"query": query["title"], "doc_id": query["doc_id"], "candidates": others} for query, *others in groups]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
