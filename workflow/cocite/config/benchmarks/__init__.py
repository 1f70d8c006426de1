"""The benchmarks, one class each: its fields are the keys of an entry, `declared` lists its tasks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cocite.config.benchmark import Benchmark
from cocite.config.benchmarks.beir import task_named
from cocite.config.entries import check_choice, one_of, plugins
from cocite.config.tasks import Task, without_unions

PACKAGE = "cocite.config.benchmarks"

KINDS: Mapping[str, Any] = plugins(PACKAGE, "kind")
if TYPE_CHECKING:
    from cocite.config.configuration import Configuration

    AnyBenchmark = Benchmark
else:
    AnyBenchmark = one_of(PACKAGE, "kind")
BENCHMARKS: dict[str, tuple[Task, ...]] = {name: kind.declared for name, kind in KINDS.items()}  # by kind
LAYOUTS: dict[str, str] = {name: kind.layout or name for name, kind in KINDS.items()}
"""The file layout of each kind of benchmark: the name of the benchmark that introduced it."""
TASKS = {task.name: task for tasks in BENCHMARKS.values() for task in tasks}  # but for other datasets


def names(text: str) -> list[str]:
    """Names from a text with commas between them; none from an empty one."""
    return text.split(",") if text else []


def declared(name: str) -> Task:
    """The task of that name. Raises `InputError` if there is none."""
    task = TASKS.get(name) or task_named(name)
    if task is None:
        check_choice(name, TASKS, "The task")
    return task or TASKS[name]


Side = dict[tuple[str, str], str]  # the first metric of each task, by the names of its benchmark and of the task


def sides_of(config: "Configuration") -> tuple[Side, Side]:
    """The tasks of a configuration that ask with short queries, and those that rank documents for a document."""
    short: Side = {}
    documents: Side = {}
    for name, entry in config.benchmarks.items():
        for task in without_unions(entry.scored_tasks):
            if task.format in ("search", "proximity"):
                side = short if task.format == "search" and entry.asks_shortly else documents
                side[name, task.name] = task.main_metric
    return short, documents
