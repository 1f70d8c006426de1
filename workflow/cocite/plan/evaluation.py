"""The tasks of benchmarks, what scoring them costs, and where benchmarks come from."""

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake.io import expand

from cocite.config.benchmark import SEARCH, Fetched
from cocite.config.benchmarks import sides_of
from cocite.config.benchmarks.beir import files_of
from cocite.config.benchmarks.holdout import MATCHED
from cocite.config.entries import as_json
from cocite.config.folders import files_in
from cocite.config.runs import encoders_of_index, reported_on, scored_models, scored_runs
from cocite.config.tasks import Task
from cocite.plan.stage import PAPER_MB, PLANNED, Request, StagePlan, size_mb, whole

SCORED_FROM = ("judgements", "labels", "reviewers", "clicks", "collections", "signatures")  # tables of a benchmark


class EvaluationPlan(StagePlan):
    """Benchmarks, and all that is scored on them."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        benchmarks = self.config.benchmarks
        self.holdouts = [name for name, entry in benchmarks.items() if entry.made_by is not None]  # of held-out papers
        self.by_time = [name for name, entry in benchmarks.items() if getattr(entry, "by_time", False)]
        """Those whose queries are from a year on."""
        self.reviews = [name for name, entry in benchmarks.items() if entry.screens]  # of screened reviews
        others = {*self.holdouts, *self.reviews, *(name for name, entry in benchmarks.items() if entry.kind == "beir")}
        self.in_folders = [name for name in benchmarks if name not in others]  # all others, but not in BEIR's layout
        self.searching = [name for name in self.holdouts if SEARCH in benchmarks[name].suites]
        """The hold-outs that also search the whole corpus, for which all papers are embedded."""
        owned = [name for name, entry in benchmarks.items() if entry.made_by is not None or entry.is_generated]
        self.own = [name for name in owned if name not in self.searching]
        """The other benchmarks about the corpus itself, which are small and embedded in one job."""
        self.scored = [*scored_models(self.config), *plan.encoder.untrained]  # models and untrained encoders
        suites = dict.fromkeys(suite for entry in benchmarks.values() for suite in entry.suites)
        self.suite_names = [suite for suite in suites if suite != SEARCH]
        """The names of the suites of all benchmarks, but for searches of the whole corpus."""
        has_spaces = any(model.spaces for model in self.config.models.values())
        self.by_aspect = [name for name, entry in benchmarks.items() if has_spaces and entry.tells_spaces_apart]
        """The benchmarks that tell the spaces of models apart, if a model has some."""

    def holdout_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of preparing a hold-out, MB: it holds texts of some hundred candidates of each paper, 3.7 kB each."""
        documents = min(110 * self.config.queries.holdout, size_mb(input.papers) / PAPER_MB)
        return whole(1900 + 2 * 3.7e-3 * documents) * attempt

    def sentences_for_grades(self, wildcards: Any) -> list[str]:
        """The sentences that cite if the grades of a hold-out go by mentions; else nothing."""
        graded = getattr(self._entry(wildcards), "graded", None)
        by_mentions = graded is not None and graded.min_mentions
        return self.buckets("<results>/corpus/contexts/{bucket}.parquet") if by_mentions else []

    def vectors_of_index(self, wildcards: Any) -> list[str]:
        """The vectors of a benchmark's documents by all models of an index."""
        runs = encoders_of_index(self.config, wildcards.system, int(wildcards.seed)).values()
        return [f"<results>/encoder/{name}/seed-{seed}/embeddings/{wildcards.benchmark}.parquet" for name, seed in runs]

    def by_vectors_and_words(self, wildcards: Any, input: Any) -> list[str]:
        """The options with these vectors, and with words if an index finds papers by them."""
        words = ["--words", "{}"] if self.config.indexes[wildcards.system].words else []
        return [*words, *(word for path in input.embeddings for word in ("--embeddings", str(path)))]

    def prepared(self, *texts: str) -> list[str]:
        """The tables that a benchmark is scored from, with the named tables of texts."""
        return expand("<results>/evaluation/{{benchmark}}/{table}.parquet", table=[*texts, *SCORED_FROM])

    def _suite(self, wildcards: Any) -> list[Task]:
        """The tasks of a benchmark that are scored in one job."""
        return self._entry(wildcards).suites[getattr(wildcards, "suite", SEARCH)]

    def tasks_of_suite(self, wildcards: Any) -> str:
        """The names of these tasks, with commas between them; without a suite, of those that search the corpus."""
        return ",".join(task.name for task in self._suite(wildcards))

    def listed_tasks(self, wildcards: Any) -> str:
        """The names of the tasks that a benchmark's entry lists; empty for all."""
        return ",".join(getattr(self._entry(wildcards), "tasks", None) or ())

    def seeds(self, wildcards: Any) -> list[int]:
        """The evaluation seeds of a suite: rankings have no random choice, and are scored once."""
        seeds = list(self._entry(wildcards).seeds)
        return seeds if any(not task.is_ranking for task in self._suite(wildcards)) else seeds[:1]

    def _entry(self, wildcards: Any) -> Any:
        return self.config.benchmarks[wildcards.benchmark]

    def suites_as_json(self, wildcards: Any) -> str:
        """The tasks of each suite of a benchmark and the runs that are scored on them, as JSON."""
        suites, runs = self._entry(wildcards).suites, scored_runs(self.config, wildcards.benchmark)
        return json.dumps(
            {suite: {"tasks": [task.name for task in tasks], "runs": runs[suite]} for suite, tasks in suites.items()}
        )

    def _sizes(self, wildcards: Any, input: Any, table: str) -> dict[Task, float]:
        """For each task of a suite, the size of its share of a table, MB, by its documents."""
        if PLANNED:  # their numbers are in a file that may not exist yet
            return dict.fromkeys(self._suite(wildcards), size_mb(input[table]))
        sizes = json.loads(Path(input.sizes).read_text())
        share = size_mb(input[table]) / max(sizes["documents"], 1)
        return {task: sizes["tasks"].get(task.name, 0) * share for task in self._suite(wildcards)}

    def scoring_memory(self, table: str, least: float, ranked: float, fitted: float = 0) -> Request:
        """Memory to score a suite, MB: a multiple of its largest task's share of a table, more if models are fitted."""

        def memory(wildcards: Any, input: Any, attempt: int) -> int:
            sizes = self._sizes(wildcards, input, table)
            needed = [size * (ranked if task.is_ranking else fitted) for task, size in sizes.items()]
            return whole(least + max(needed)) * attempt

        return memory

    def scoring_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time to score a suite: by its tasks' shares of the vectors, for supervised tasks times seeds and modes."""
        # scikit-learn's own solver took 5.5 times the processor time (docs/evaluation.md, Speed).
        fits = {"both": 2, "sklearn": 6}.get(getattr(self._entry(wildcards), "mode", ""), 1)
        fits *= len(self.seeds(wildcards))
        sizes = self._sizes(wildcards, input, "embeddings")
        of_tasks = (0.1 * size * (fits if task.is_supervised else 1) for task, size in sizes.items())
        return whole(30 + sum(of_tasks)) * attempt

    def word_scoring_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time to rank by words: only searches cost time, which compare every query with every document."""
        sizes = self._sizes(wildcards, input, "tables")
        searched = sum(size for task, size in sizes.items() if task.kind == "retrieval")
        return whole(30 + searched * size_mb(input.tables)) * attempt

    def of_runs(self, table: str, *benchmarks: str) -> list[str]:
        """A table of every model and baseline on every suite of some benchmarks: scores, outcomes or failures."""
        return [
            f"<results>/evaluation/{benchmark}/{table}/{suite}/{run}.parquet"
            for benchmark in benchmarks
            for suite, runs in scored_runs(self.config, benchmark).items()
            for run in runs
        ]

    def by_citations(self) -> list[str]:
        """What every run finds in the whole corpus by how often papers are cited, on each benchmark that searches."""
        return [
            f"<results>/evaluation/{benchmark}/by_citations/{run}.parquet"
            for benchmark in self.config.benchmarks
            for run in scored_runs(self.config, benchmark).get(SEARCH, ())
        ]

    @cached_property
    def trade(self) -> list[str]:
        """The scores on benchmarks that ask with short queries or with documents, if there are both."""
        sides = sides_of(self.config)
        benchmarks = dict.fromkeys(benchmark for side in sides for benchmark, _ in side)
        return self.of_runs("scores", *benchmarks) if all(sides) else []

    def summaries(self) -> list[str]:
        """The averages of every benchmark, and the comparisons of all models on it."""
        path = "<results>/evaluation/{benchmark}/{table}.parquet"
        return expand(path, benchmark=self.config.benchmarks, table=["averages", "comparisons"])

    def all_reported(self) -> list[str]:
        """The scores that others reported, on every benchmark that has tasks of mteb."""
        return [
            f"<results>/evaluation/{benchmark}/reported/{name}.parquet"
            for benchmark in self.config.benchmarks
            for name in reported_on(self.config, benchmark)
        ]

    def fetched(self, wildcards: Any) -> Fetched:
        """The dataset on the hub with its revision, and the splits that the tasks of a benchmark need, for a folder."""
        return self._entry(wildcards).from_hub[f"{wildcards.half}/{wildcards.name}"]

    def sources(self, wildcards: Any) -> str | list[str]:
        """The sources of a published benchmark: the files of its folder, or folders fetched from the hub."""
        entry = self._entry(wildcards)
        if entry.from_hub:
            return [f"<results>/evaluation/{wildcards.benchmark}/hub/{folder}" for folder in sorted(entry.from_hub)]
        if entry.is_generated:
            return "<results>/demo/benchmark"
        return [file for read in entry.reads for file in files_in(Path(entry.folder, read))]

    def folder(self, wildcards: Any, input: Any) -> Any:
        """The folder of an external benchmark; a fetched one has the halves metadata and test, or is in data."""
        entry = self._entry(wildcards)
        if entry.from_hub:
            return Path(input[0]).parents[1] / os.path.commonpath(entry.from_hub)
        return input[0] if entry.is_generated else entry.folder

    def dataset_files(self, wildcards: Any) -> list[str]:
        """The files of the datasets that a benchmark searches."""
        entry = self._entry(wildcards)
        folders = [Path(entry.datasets[task.test]) for task in entry.scored_tasks]
        return [str(file) for folder in folders for file in files_of(folder, entry.split)]

    def dataset_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to read datasets, MB: eight times their contents; packed files contain four times their size."""
        packed = [file for file in input.files if file.endswith((".gz", ".parquet"))]
        return whole(1000 + 8 * size_mb(input.files) + 24 * size_mb(packed)) * attempt

    def options_of_fields(self, wildcards: Any, input: Any) -> list[str]:
        """The options that name sources of fields: the benchmark's folder, and the papers that its documents are."""
        folder = self.folder(wildcards, input) if wildcards.benchmark in self.in_folders else None
        papers = Path(input.papers[0]).parent if input.papers else None
        named = {"--folder": folder, "--papers": papers, "--document-papers": input.document_papers}
        return [word for name, path in named.items() if path for word in (name, str(path))]

    def with_fields(self) -> list[str]:
        """The benchmarks whose documents have further fields looked up: all, if an encoder reads such."""
        models = [*self.config.models, *self.plan.encoder.untrained]
        return list(self.config.benchmarks) if any(map(self.plan.encoder.reads_further_fields, models)) else []

    def probed_tasks(self, wildcards: Any) -> str:
        """The tasks of its benchmark that a probe ranks by, with commas: those that rank given candidates."""
        tasks = self.config.benchmarks[self.config.probes[wildcards.probe].benchmark].scored_tasks
        return ",".join(task.name for task in tasks if task.kind == "ranking" and not task.name.endswith(MATCHED))

    def entries_of_probe(self, wildcards: Any) -> str:
        """A probe with the entries of its sets, as JSON: the best ones become entries for a training."""
        probe = self.config.probes[wildcards.probe]
        sets = {name: as_json(self.config.triplets[name]) for name in probe.sets}
        return json.dumps({"probe": as_json(probe), "triplets": sets}, sort_keys=True)
