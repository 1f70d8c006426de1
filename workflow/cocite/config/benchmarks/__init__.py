"""The benchmarks, a module with one class each: its fields say what an entry may hold, `declared` has its tasks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cocite.config.benchmark import Benchmark, Fetched
from cocite.config.benchmarks.beir import task_named
from cocite.config.id_spaces import DocumentIds
from cocite.config.plugins import check_choice, one_of, plugins
from cocite.config.tasks import Task, without_unions

PACKAGE = "cocite.config.benchmarks"

KINDS: Mapping[str, Any] = plugins(PACKAGE, "kind")
if TYPE_CHECKING:
    AnyBenchmark = Benchmark
else:
    AnyBenchmark = one_of(PACKAGE, "kind")
BENCHMARKS: dict[str, tuple[Task, ...]] = {name: kind.declared for name, kind in KINDS.items()}
"""The tasks of each kind of benchmark."""
LAYOUTS: dict[str, str] = {name: kind.layout or name for name, kind in KINDS.items()}
"""The layout that the files of each kind of benchmark lie in: the name of the benchmark that brought it up."""
TASKS = {task.name: task for tasks in BENCHMARKS.values() for task in tasks}
"""The tasks that are declared; datasets in BEIR's layout have further ones."""
SMALL = "small"
"""The suite that has all tasks of a benchmark but the large ones."""


def names(text: str) -> list[str]:
    """Names from a text with commas between them; none from an empty one."""
    return text.split(",") if text else []


def declared(name: str) -> Task:
    """The task of that name. Raises `InputError` where there is none."""
    task = TASKS.get(name) or task_named(name)
    if task is None:
        check_choice(name, TASKS, "The task")
    return task or TASKS[name]


def tasks_of(entry: Mapping[str, Any]) -> Sequence[Task]:
    """The tasks of a benchmark, from its entry in the configuration: those that it lists, or all of its kind."""
    tasks: Sequence[Task] = KINDS[entry["kind"]].tasks_in(entry)
    return tasks


def metrics_asked(entry: Mapping[str, Any]) -> str:
    """The metrics that an entry has its tasks scored by instead of the declared ones, with commas between; or none.

    They are the same for all tasks of an entry that asks for any.
    """
    [asked] = {task.metrics for task in tasks_of(entry) if task.metrics != declared(task.name).metrics} or {()}
    return ",".join(asked)


def is_held_out(entry: Mapping[str, Any]) -> bool:
    """Whether a benchmark is made of papers of the corpus that are held out, from its entry in the configuration."""
    return KINDS[entry["kind"]].made_by is not None


def tells_spaces_apart(entry: Mapping[str, Any]) -> bool:
    """Whether models are scored in their spaces on tasks of one aspect each, from a benchmark's entry."""
    return bool(KINDS[entry["kind"]].by_aspect and entry.get("spaces", True))


def is_generated(entry: Mapping[str, Any]) -> bool:
    """Whether a benchmark is generated about the corpus of the run, from its entry in the configuration."""
    return entry["kind"] == "scirepeval" and entry.get("folder") == "demo"


def ids_of_documents(entry: Mapping[str, Any]) -> DocumentIds:
    """Whose ids the documents of a benchmark have, from its entry in the configuration."""
    if is_held_out(entry) or is_generated(entry):
        return "corpus"
    ids: DocumentIds = entry["id_space"]
    return ids


def has_hashes(entry: Mapping[str, Any]) -> bool:
    """Whether documents of a benchmark may have Semantic Scholar's hashes for ids, from its entry."""
    return bool(KINDS[entry["kind"]].has_hashes)


def suites_of(entry: Mapping[str, Any]) -> dict[str, list[Task]]:
    """The tasks of a benchmark in suites, each scored in one job: the small ones together, each large one alone."""
    suites: dict[str, list[Task]] = {}
    for task in tasks_of(entry):
        is_alone = task.large and not is_generated(entry)
        suites.setdefault(task.name if is_alone else SMALL, []).append(task)
    return suites


Side = dict[tuple[str, str], str]
"""The first metric of each task, by the names of its benchmark and of the task."""


def sides_of(config: Mapping[str, Any]) -> tuple[Side, Side]:
    """The tasks of a configuration that ask with short queries, and those that rank documents for a document."""
    short: Side = {}
    documents: Side = {}
    for name, entry in config["benchmarks"].items():
        asks_shortly = entry.get("queries") != "documents"
        for task in without_unions(tasks_of(entry)):
            if task.format in ("search", "proximity"):
                side = short if task.format == "search" and asks_shortly else documents
                side[name, task.name] = task.main_metric
    return short, documents


def on_hub(entry: Mapping[str, Any]) -> dict[str, Fetched]:
    """What is fetched of a benchmark, from its entry in the configuration, by folder; nothing where it is there."""
    found: dict[str, Fetched] = KINDS[entry["kind"]].on_hub(entry) if "hub" in entry else {}
    return found
