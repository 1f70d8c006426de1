"""A benchmark folder that a test fills, and the tables that are prepared from it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cocite.config.benchmarks import declared
from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table, vector_column, write_table
from cocite.evaluation.benchmark import Benchmark, read_task
from cocite.evaluation.preparation.readers import prepare_folder
from cocite.evaluation.scored import Run, Scored
from cocite.evaluation.scoring import embedded


def write_text(path: Path, content: str) -> None:
    """Write a file of text, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", errors="surrogateescape")


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write a file of JSON lines."""
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def write_parquet(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


RUN = Run(model="m", training_seed=1, benchmark="b", modes=["compat"], evaluation_seeds=[1])


def write_paper_vectors(folder: Path, vectors: Mapping[int, Sequence[float]], buckets: int = 2) -> None:
    """Write the table paper_embeddings of some papers, in buckets by the sum of tens and ones."""
    for bucket in range(buckets):
        ids = sorted(each for each in vectors if sum(divmod(each, 10)) % buckets == bucket)
        matrix = vector_column(np.array([vectors[each] for each in ids], np.float32))
        table = pa.table({"corpusid": pa.array(ids, pa.int64()), "vector": matrix})
        write_table(folder / f"{bucket}.parquet", "paper_embeddings", table)


def write_vectors(folder: Path, vectors: Mapping[str, Sequence[float]]) -> Path:
    """Write the table document_embeddings with a vector for each of some documents."""
    names = sorted(vectors)
    columns = {"adapter": [""] * len(names), "document": names}
    matrix = np.array([vectors[name] for name in names], np.float32)
    write_table(
        folder / "vectors.parquet", "document_embeddings", pa.table({**columns, "vector": vector_column(matrix)})
    )
    return folder / "vectors.parquet"


def scored_by(folder: Path, vectors: Mapping[str, Sequence[float]], task: str | Task, benchmark: Benchmark) -> Scored:
    """What the vectors of some documents score on a task."""
    return embedded(write_vectors(folder, vectors), RUN)(declared(task) if isinstance(task, str) else task, benchmark)


def score_rows(scored: Scored) -> list[dict[str, Any]]:
    """The rows of the table scores, by the names of its columns."""
    names = list(TABLES["scores"].columns)
    return [dict(zip(names, row, strict=True)) for row in scored.scores]


def scores_of(scored: Scored) -> dict[str, float]:
    """The value of each metric."""
    return {row["metric"]: row["value"] for row in score_rows(scored)}


def omitted_in(path: Path) -> dict[str, int]:
    """What a table of omissions counts."""
    return {row["reason"]: row["count"] for row in read_table(path, "omissions").to_pylist()}


def read_benchmark(tables: Path) -> Benchmark:
    """The judgements and labels of every task that there are any of, and the reviewers."""
    benchmark = Benchmark()
    names = json.loads((tables / "sizes.json").read_text())["tasks"]
    for task in map(declared, names):
        of_task = read_task(task, tables)
        for whole, part in zip(vars(benchmark).values(), vars(of_task).values(), strict=True):
            whole.update(part)
    return benchmark


class BenchmarkFolder:
    """The folder `root` of a benchmark of some kind, and the tables that are made of it."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.root, self.tables, self.kind = folder / "benchmark", folder / "tables", kind
        self.root.mkdir()

    def write_text(self, path: str, text: str) -> None:
        """Write a file of text."""
        write_text(self.root / path, text)

    def write_lines(self, path: str, *rows: Any) -> None:
        """Write a file of JSON lines."""
        write_lines(self.root / path, rows)

    def write_parquet(self, path: str, *rows: Any) -> None:
        """Write a Parquet file."""
        write_parquet(self.root / path, rows)

    def prepare(self, *tasks: str, metrics: Sequence[str] = ()) -> Benchmark:
        """Prepare these tasks, or all that there are; return what they ask."""
        omissions = self.tables / "omissions.parquet"
        asked = {"kind": self.kind, "tasks": ",".join(tasks), "metrics": ",".join(metrics)}
        prepare_folder(self.root, **asked, tables=self.tables, omissions=omissions)
        return read_benchmark(self.tables)

    def refuses(self, message: str, *tasks: str, **settings: Any) -> None:
        """Check that these tasks, or all, cannot be prepared, and that nothing is written then."""
        with pytest.raises(InputError, match=re.escape(message)):
            self.prepare(*tasks, **settings)
        assert not self.tables.exists()

    def documents(self) -> dict[str, tuple[str | None, str | None]]:
        """Title and abstract of each document."""
        rows = read_table(self.tables / "documents.parquet", "documents").to_pylist()
        return {row["document"]: (row["title"], row["abstract"]) for row in rows}

    def omitted(self) -> dict[str, int]:
        """What was left out and occurred."""
        return {reason: count for reason, count in omitted_in(self.tables / "omissions.parquet").items() if count}
