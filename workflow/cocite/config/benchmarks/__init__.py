"""The benchmarks, a module each: `TASKS` in it are the tasks, one entry each.

A benchmark whose files lie in the layout of another one says so with `LAYOUT`; one whose entry in the configuration
holds other keys than a folder and tasks says so with `SCHEMA`. Names of tasks are known before anything runs, since
jobs are named after them, and no two tasks share one.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from cocite.config.choices import check_choice
from cocite.config.tasks import Task

_MODULES: dict[str, ModuleType] = {name: import_module(f"{__name__}.{name}") for _, name, _ in iter_modules(__path__)}
BENCHMARKS: dict[str, tuple[Task, ...]] = {name: module.TASKS for name, module in _MODULES.items()}
"""The tasks of each kind of benchmark."""
LAYOUTS: dict[str, str] = {name: getattr(module, "LAYOUT", name) for name, module in _MODULES.items()}
"""The layout that the files of each kind of benchmark lie in: the name of the benchmark that brought it up."""
TASKS = {task.name: task for tasks in BENCHMARKS.values() for task in tasks}
SMALL = "small"
"""The suite that has all tasks of a benchmark but the large ones."""


def names(text: str) -> list[str]:
    """Names from a text with commas between them; none from an empty one."""
    return text.split(",") if text else []


def declared(name: str) -> Task:
    """The task of that name. Raises `InputError` where there is none."""
    check_choice(name, TASKS, "The task")
    return TASKS[name]


def tasks_of(entry: Mapping[str, Any]) -> Sequence[Task]:
    """The tasks of a benchmark, from its entry in the configuration: those that it lists, or all of its kind."""
    declared = BENCHMARKS[entry["kind"]]
    asked = entry.get("tasks")
    return declared if asked is None else [task for task in declared if task.name in asked]


def is_generated(entry: Mapping[str, Any]) -> bool:
    """Whether a benchmark is generated about the corpus of the run, from its entry in the configuration."""
    return entry["kind"] == "scirepeval" and entry.get("folder") == "demo"


def suites_of(entry: Mapping[str, Any]) -> dict[str, list[Task]]:
    """The tasks of a benchmark in suites, each scored in one job: the small ones together, each large one alone."""
    suites: dict[str, list[Task]] = {}
    for task in tasks_of(entry):
        is_alone = task.large and not is_generated(entry)
        suites.setdefault(task.name if is_alone else SMALL, []).append(task)
    return suites


def splits_to_fetch(tasks: Sequence[Task]) -> dict[tuple[str, str], list[str]]:
    """What tasks of SciRepEval lie in on the hub: splits of configs with texts (metadata) and with labels (test)."""
    splits: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        splits["metadata", task.texts_folder] = ["evaluation"]
        splits.setdefault(("test", task.labels_folder), []).extend(task.splits)
        if task.kind == "reviewers":
            splits["test", "reviewers"] = ["metadata"]
    return splits
