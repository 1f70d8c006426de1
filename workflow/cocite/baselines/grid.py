"""The choice among the points of a grid: the one that ranks the papers that validation queries cite best.

A cited paper is ranked among random ones by its distance from the query, as rankings of benchmarks are scored; a point
is worth the mean of 1 / rank. A tie counts half a rank. A paper or query without a vector counts 0. Of equal points,
the first is chosen.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.core.options import Output
from cocite.core.progress import report
from cocite.core.tables.files import atomic_path, open_table, read_json, read_table, vectors_of, write_table

Judged = Mapping[str, tuple[list[str], list[str]]]
"""Query → the papers that it cites, and the random ones."""


def choose_point(
    points: Annotated[Sequence[Path], typer.Argument(help="Models of the points of a grid, then the vectors of each.")],
    *,
    judgements: Annotated[Path, typer.Option(help="Table judgements that they are judged by.")],
    grid: Annotated[Path, typer.Option(help="Table grid, written: what each point reached.")],
    output: Output,
) -> None:
    """Take the point of a grid that ranks best, and write down what all of them reached."""
    models, vectors = points[: len(points) // 2], points[len(points) // 2 :]
    judged = read_judged(judgements)
    values = [reciprocal_rank(path, judged) for path in vectors]
    best = int(np.argmax(values))
    settings = [json.dumps(read_json(model / "settings.json")["baseline"], sort_keys=True) for model in models]
    report(
        f"Point {best} of {len(models)} is best, with a mean reciprocal rank of {values[best]:.4f}: {settings[best]}"
    )
    columns = {
        "point": pa.array(range(len(models)), pa.int64()),
        "settings": settings,
        "reciprocal_rank": values,
        "judged": pa.array([sum(len(cited) for cited, _ in judged.values())] * len(models), pa.int64()),
        "chosen": [number == best for number in range(len(models))],
    }
    write_table(grid, "baseline_grid", pa.table(columns))
    with atomic_path(output) as folder:
        shutil.copytree(models[best], folder, ignore=shutil.ignore_patterns(".*"))


def read_judged(path: Path) -> dict[str, tuple[list[str], list[str]]]:
    """The judgements by query."""
    judged: dict[str, tuple[list[str], list[str]]] = {}
    for row in read_table(path, "judgements", ["query", "candidate", "relevance"]).to_pylist():
        cited, others = judged.setdefault(row["query"], ([], []))
        (cited if row["relevance"] else others).append(row["candidate"])
    return judged


def reciprocal_rank(vectors: Path, judged: Judged) -> float:
    """The mean of 1 / the rank of each cited paper among the random ones, by Euclidean distance."""
    with open_table(vectors, "baseline_embeddings") as file:
        table = file.read(["document", "vector"])
    matrix, rows = vectors_of(table), {name: row for row, name in enumerate(table["document"].to_pylist())}
    found: list[float] = []
    for query, (cited, others) in judged.items():
        if query not in rows:
            found += [0.0] * len(cited)
            continue
        to_others = _distances(matrix, rows, query, others)
        for distance in _distances(matrix, rows, query, cited):
            nearer, as_near = np.count_nonzero(to_others < distance), np.count_nonzero(to_others == distance)
            found.append(1 / (1 + nearer + as_near / 2) if np.isfinite(distance) else 0.0)
    return float(np.mean(found))


def _distances(
    matrix: NDArray[np.float32], rows: Mapping[str, int], query: str, papers: Sequence[str]
) -> NDArray[np.float64]:
    """From a query to papers; infinite where a paper has no vector."""
    there = np.array([rows.get(paper, -1) for paper in papers])
    distances = np.linalg.norm(matrix[there].astype(np.float64) - matrix[rows[query]], axis=1)
    return np.where(there >= 0, distances, np.inf)
