"""What a benchmark's tables hold, all tasks of it at once, for tests that prepare one."""

from pathlib import Path

from cocite.config.benchmarks import TASKS
from cocite.evaluation.benchmark import Benchmark, Prepared, read_task


def prepared_files(folder: Path) -> Prepared:
    """Where a benchmark is prepared in a folder."""
    return Prepared(tables=folder, omissions=folder / "omissions.parquet")


def read_benchmark(tables: Path) -> Benchmark:
    """The judgements and labels of every task that there are any of, and the reviewers."""
    benchmark = Benchmark()
    for task in TASKS.values():
        of_task = read_task(task, tables)
        for whole, part in zip(vars(benchmark).values(), vars(of_task).values(), strict=True):
            whole.update(part)
    return benchmark
