"""What a benchmark is to the configuration: an entry of its settings and the tasks that it declares, one class each.

The benchmarks are classes in `config/benchmarks`; how to add one is in docs/how-to/new-task.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from cocite.config.entries import Count, Entry, GivenPath, Natural, Seeds, SomeNames, Whole, inconsistent
from cocite.config.graphs import CitationMarks
from cocite.config.source import DocumentIds
from cocite.config.tasks import LARGEST_MISSING_SHARE, Task

SMALL = "small"  # the suite that has all tasks of a benchmark but the large ones and the searches of the corpus
SEARCH = "search"  # the suite of the tasks that search the whole corpus


class Benchmark(Entry):
    """What is scored; a benchmark has a field `kind` as well, its name."""

    kind: str
    """What is scored, and the layout of its files (docs/benchmarks.md says more)."""
    declared: ClassVar[tuple[Task, ...]]  # its tasks; jobs are named after them, so no two share a name
    made_by: ClassVar[type[Entry] | None] = None  # settings by which it is made of held-out papers, if it is
    layout: ClassVar[str | None] = None  # the benchmark whose file layout it uses, if not its own
    reads: ClassVar[tuple[str, ...]] = ("",)  # the subfolders that are read; an empty name means the whole folder
    memory_of_byte: ClassVar[float] = 8  # bytes of memory that its reader may take for each byte of its files
    has_hashes: ClassVar[bool] = False  # documents may have Semantic Scholar's hashes in place of corpus ids
    screens: ClassVar[bool] = False  # whether it simulates the screening of reviews
    by_aspect: ClassVar[bool] = False  # whether each task is about one aspect, which tells spaces apart
    seeds: Seeds = (1,)
    """Seeds of the evaluation's random choices; each task is scored once with each."""
    largest_missing: Annotated[float, Field(ge=0, le=1)] = LARGEST_MISSING_SHARE
    """Largest share of a task's documents that may lack a vector. Missing documents are counted with each score; if
    more are missing, the task has no score and the report says why."""
    spaces: bool = True
    """Whether models are scored in the spaces of their aspects as well, those that `models.<name>.spaces` names."""
    resamples: Annotated[int, Field(ge=100)] = 1000
    """Bootstrap samples of a task's queries or documents, in the tests whether two models differ."""

    @property
    def scored_tasks(self) -> Sequence[Task]:
        """The tasks that it lists, or all that are declared."""
        listed: Sequence[str] | None = getattr(self, "tasks", None)
        return self.declared if listed is None else [task for task in self.declared if task.name in listed]

    @property
    def suites(self) -> dict[str, list[Task]]:
        """Its tasks in groups, each scored in one job: small tasks, corpus searches, and each large task separately."""
        suites: dict[str, list[Task]] = {}
        for task in self.scored_tasks:
            together = SEARCH if task.kind == "corpus" else SMALL
            suites.setdefault(task.name if task.large and not self.is_generated else together, []).append(task)
        return suites

    @property
    def asked_metrics(self) -> tuple[str, ...]:
        """The metrics of all its tasks if they replace the declared ones, else none."""
        return ()

    @property
    def tells_spaces_apart(self) -> bool:
        """Whether models are scored in their spaces, on tasks of one aspect each."""
        return self.by_aspect and self.spaces

    @property
    def asks_shortly(self) -> bool:
        """Whether its searches ask with short queries."""
        return True

    @property
    def is_generated(self) -> bool:
        """Whether it is generated about the corpus of the run."""
        return False

    @property
    def document_ids(self) -> DocumentIds:
        """Whose ids its documents have."""
        return "corpus"

    @property
    def from_hub(self) -> Mapping[str, "Fetched"]:
        """What is fetched of the Hugging Face hub, by its folder: a name in metadata, test or data; else nothing."""
        return {}

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """No held-out papers to make it of."""
        if self.made_by is not None and config.queries.holdout == 0:
            yield f"{key} needs held-out papers; queries.holdout is 0."


class UserSuppliedBenchmark(Benchmark):
    """What benchmarks have that others made."""

    tasks: SomeNames | None = None
    """Names of the tasks to score (docs/benchmarks.md lists them); each must exist. Default: all tasks in the folder;
    missing ones are counted."""
    id_space: DocumentIds = "s2"
    """The id space of its documents: s2 for Semantic Scholar's corpus ids, openalex for OpenAlex's work numbers, corpus
    for the ids of this run's corpus, own for others. Documents are matched to papers by id only if both use the same id
    space; with corpus.match, papers of other corpora are also found by Semantic Scholar's ids."""
    mode: Literal["compat", "correct", "both", "sklearn"] = "compat"
    """compat follows the published protocol. correct uses an intercept and standardised inputs. both gives both scores.
    sklearn fits scikit-learn's LinearSVC and LinearSVR with their defaults, as SciRepEval's code does since January
    2026 if lightning is not installed."""

    @property
    def document_ids(self) -> DocumentIds:
        """Whose ids its documents have; a generated benchmark is about the corpus."""
        return "corpus" if self.is_generated else self.id_space

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Tasks that the benchmark does not have, or a folder that is not there."""
        known = [task.name for task in self.declared]
        for task in self.tasks or ():
            if task not in known:
                tasks = ", ".join(known)
                yield f"{key}.tasks names {task!r}, which is no task of the kind {self.kind} (they are {tasks})."
        folder = getattr(self, "folder", None)
        if folder is not None and not self.is_generated and not Path(folder).is_dir():
            yield f"{key}.folder: the folder {folder} does not exist."


class FolderBenchmark(UserSuppliedBenchmark):
    """Settings of benchmarks that are read from a folder."""

    folder: GivenPath
    """Folder of the benchmark. Environment variables are expanded."""


class Fetched(NamedTuple):
    """What is fetched of the Hugging Face hub into one folder: splits of a config, which has the folder's name."""

    dataset: str
    revision: str
    splits: list[str]


class HubBenchmark(UserSuppliedBenchmark):
    """Settings of benchmarks that are read from a folder or from the Hugging Face hub (see the `hub` of each class)."""

    folder: GivenPath | None = None
    """Folder of the benchmark. Environment variables are expanded."""
    hub: Entry | None = None
    """Source on the Hugging Face hub, in place of a folder. Each config is downloaded once, by its own job."""

    @model_validator(mode="after")
    def _has_one_origin(self) -> "HubBenchmark":
        if (self.folder is None) == (self.hub is None):
            raise inconsistent(" needs exactly one of folder and hub.")
        return self


class TitleSearch(Entry):
    """A search task made of held-out papers: their titles as queries for their abstracts."""

    documents: Count = 1000
    """Largest number of abstracts to search, each of a held-out paper whose title is a query. They are sampled with the
    run's seed."""


class HoldoutSettings(Entry):
    """Settings of a benchmark about held-out papers."""

    linked: ClassVar[int] = 0  # candidates linked by another aspect: these benchmarks tell none apart
    positives: Count = 5
    """Relevant candidates of each query; queries with fewer are left out and counted."""
    negatives: Count = 25
    """Random candidates of each query."""
    min_cocitations: Count = 2
    """Times a paper must be cited with the query to be relevant in the task cocite."""
    selection: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the held-out papers that are selection queries: probes (`probes`) and indexes select their settings on
    them. All scores of the benchmark come from the other papers, the test queries. Default: none."""
    search: bool = False
    """Whether held-out papers also search the whole corpus: the tasks cite_search and cocite_search, in which the text
    of each has to find all papers that it cites, or is cited with, among all papers with a text. Every model embeds
    the whole corpus for it."""
    graded: CitationMarks | None = None
    """The citations whose cited papers have grade 2, such as {influential: true}; others have grade 1. In the tasks
    cite, cite_matched and cite_search, nDCG gains the grade; MAP, MRR and recall take all of them alike."""
    by_time: bool = False
    """Whether the queries are papers from `queries.holdout_from` on, and not those held out by chance."""
    title_search: TitleSearch | None = None
    """Settings of the task title_search, in which the title of a held-out paper has to find its abstract among those of
    others. Left out, there is no such task."""
    kind: Literal["holdout"] = "holdout"
    """What is scored: what the papers cite, and what they are cited with."""


class AspectSettings(Entry):
    """Settings of a benchmark about the aspects by which held-out papers are linked with others."""

    positives: Count = 5
    """Relevant candidates of each query, linked with it by the aspect; queries with fewer are left out and counted."""
    linked: Count = 5
    """Largest number of candidates per query that are linked with it by another aspect but not by this one. Queries
    without any are left out and counted."""
    negatives: Natural = 20
    """Random candidates of each query."""
    kind: Literal["aspects"] = "aspects"
    """What is scored: what the papers are linked with by each aspect."""


MadeOfHeldOut = Annotated[HoldoutSettings | AspectSettings, Field(discriminator="kind")]
