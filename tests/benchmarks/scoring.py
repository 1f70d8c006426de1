"""How fast a benchmark of SciRepEval's size is scored, and how much faster than by the plain reading of the protocol.

Whole: all tasks, few-shot runs included, two jobs of one thread side by side, each with one task. Against the plain
reading: the classification and regression tasks with some of their training documents and all test documents, each
SVM fitted one by one by scikit-learn's GridSearchCV; both on one thread, with the scores beside each other.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from tests.benchmarks.measuring import Cost, cocite, python, run, say
from tests.benchmarks.scirepeval_folder import RANKED, SUPERVISED, write_folder, write_vectors

from cocite.config.benchmarks.scirepeval import TASKS as SCIREPEVAL
from cocite.core.tables.files import read_table, write_table

LARGEST = {name: 800 if name == "fos" else 2_000 for name in SUPERVISED}
"""Training documents that the plain reading is given; with all of them it would take days."""


def main(folder: Path) -> None:
    against_plain(folder / "part")
    whole(folder / "whole")


def whole(folder: Path) -> None:
    """Print the wall time and memory of scoring every task, and of the longest ones."""
    prepare(folder, [*SUPERVISED, *RANKED], {})
    names = sorted((task.name for task in SCIREPEVAL), key=lambda name: -SUPERVISED.get(name, (0,))[0])
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as queue:
        costs = dict(zip(names, queue.map(lambda name: score(folder, name), names), strict=True))
    wall = time.perf_counter() - start
    documents = len(read_table(folder / "documents.parquet", "documents"))
    say(
        f"scoring {len(names)} tasks over {documents:,} documents: {wall / 60:.1f} min of wall time on two threads, "
        f"{sum(cost.cpu for cost in costs.values()) / 60:.1f} min of cpu, "
        f"at most {max(cost.peak_mb for cost in costs.values()):.0f} MB a job"
    )
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].cpu)[:8]:
        say(f"  {name}: {cost.wall:.0f} s, {cost.cpu:.0f} s of cpu, {cost.peak_mb:.0f} MB")


def against_plain(folder: Path) -> None:
    """Print the ratio of processor times on some of the training documents, and the largest difference of scores."""
    prepare(folder, SUPERVISED, LARGEST)
    ours, plain, worst = 0.0, 0.0, 0.0
    for name in SUPERVISED:
        mine = score(folder, name).cpu
        files = [folder / f"{name}-{table}.parquet" for table in ("labels", "plain")]
        theirs = run(python("plain_scoring:main", folder / "vectors.parquet", *files)).cpu
        values = [_value(folder / f"{name}-{kind}.parquet") for kind in ("scores", "plain")]
        ours, plain, worst = ours + mine, plain + theirs, max(worst, abs(values[0] - values[1]))
        say(f"  {name}: {theirs / mine:.1f} × ({mine:.1f} s to {theirs:.1f} s of cpu), {values[0]:.2f} {values[1]:.2f}")
    say(f"plain reading: {plain / ours:.1f} × our processor time; scores differ by {worst:.2f} at most")


def prepare(folder: Path, tasks: Iterable[str], largest: Mapping[str, int]) -> None:
    """Write the benchmark's tables and the vectors, and for the plain reading a table of labels for each task."""
    parts = write_folder(folder / "layout", tasks, largest)
    write_vectors(folder / "vectors.parquet", parts)
    options = {"kind": "scirepeval", "tasks": "", "tables": folder, "omissions": folder / "omissions.parquet"}
    run(cocite("evaluation", "prepare-folder", folder / "layout", **options))
    rows = read_table(folder / "labels.parquet", "labels")
    for task in SCIREPEVAL:
        of_task: pa.Table = rows.filter(pc.equal(rows["task"], task.name))
        write_table(folder / f"{task.name}-labels.parquet", "labels", of_task)


def score(folder: Path, name: str) -> Cost:
    """Score one task in a process of its own, on one thread."""
    files = {table: folder / f"{name}-{table}.parquet" for table in ("scores", "outcomes", "failures")}
    options = {"tables": folder, "tasks": name, "model": "m", "training_seed": 1, "mode": "compat", "threads": 1}
    options |= {"largest_missing": 0.01, "embeddings": folder / "vectors.parquet", **files}
    return run(cocite("evaluation", "score", "1", **options))


def _value(path: Path) -> float:
    [value] = read_table(path, "scores").column("value").to_pylist()
    return float(value)
