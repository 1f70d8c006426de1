"""A benchmark folder that a test fills, and the tables that are prepared from it."""

import json
from pathlib import Path
from typing import Any

from tests.evaluation.prepared import prepared_files, read_benchmark

from cocite.evaluation.benchmark import Benchmark
from cocite.tables.files import read_table


class BenchmarkFolder:
    """The folder `root`, and the tables that `prepare` makes of it."""

    def __init__(self, folder: Path, prepare: Any) -> None:
        self.root, self.tables, self._prepare = folder / "benchmark", folder / "tables", prepare
        self.root.mkdir()

    def write_text(self, path: str, text: str) -> None:
        """Write a file of text."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def write_lines(self, path: str, *rows: Any) -> None:
        """Write a file of JSON lines."""
        self.write_text(path, "".join(json.dumps(row) + "\n" for row in rows))

    def prepare(self, *tasks: str) -> Benchmark:
        """Prepare these tasks, or all that there are; return what they ask."""
        files = prepared_files(self.tables)
        self._prepare(self.root, tasks=tasks, files=files)
        return read_benchmark(self.tables)

    def documents(self) -> dict[str, tuple[str | None, str | None]]:
        """Title and abstract of each document."""
        rows = read_table(self.tables / "documents.parquet", "documents").to_pylist()
        return {row["document"]: (row["title"], row["abstract"]) for row in rows}

    def omitted(self) -> dict[str, int]:
        """What was left out and occurred."""
        rows = read_table(self.tables / "omissions.parquet", "omissions").to_pylist()
        return {row["reason"]: row["count"] for row in rows if row["count"]}
