"""What baselines are trained on and embed with, and what that costs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snakemake.io import expand

from cocite.config.folders import files_in
from cocite.config.runs import (
    UNTRAINED,
    baseline_of,
    baselines_on,
    baselines_with_vectors,
    seed_under,
    seeds_of,
    trained_entries,
)
from cocite.plan.stage import Request, StagePlan, as_text, size_mb, whole


class BaselinePlan(StagePlan):
    """Baselines, and the points of their grids."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.trained = trained_entries(self.config.baselines)  # what is trained: each point in place of its grid
        self.entries: dict[str, Any] = {**self.config.baselines, **self.trained}  # all baselines, and points of grids
        self.with_grids = [name for name, entry in self.config.baselines.items() if entry.points]
        self.with_vectors = baselines_with_vectors(self.config)

    def settings(self, wildcards: Any) -> str:
        """A baseline as JSON for `--settings`, without its seeds."""
        return as_text(self.entries[wildcards.baseline], "seeds")

    def points(self, path: str) -> Callable[[Any], list[str]]:
        """A file of each point of a grid."""

        def files(wildcards: Any) -> list[str]:
            names = [name for name in self.trained if baseline_of(name) == wildcards.baseline]
            return expand(path, baseline=names, seed=wildcards.seed)

        return files

    def embeddings(self) -> list[str]:
        """The vectors of all benchmarks' documents by all baselines that have some."""
        path = "<results>/baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet"
        return [
            file
            for benchmark in self.config.benchmarks
            for name in baselines_on(self.config, benchmark)
            if name in self.with_vectors
            for file in expand(path, baseline=name, seed=seeds_of(name, self.config.baselines), benchmark=benchmark)
        ]

    def sources(self, step: str, source: str) -> Callable[[Any], Any]:
        """The files of a source, if the baseline's training (`trained_on`) or embedding (`embeds_with`) reads it: a
        list, or a path if it is one file or folder."""

        def files(wildcards: Any) -> Any:
            entry = self.entries[wildcards.baseline]
            if ("examples" if source == "texts" else source) not in getattr(entry, step):
                return []
            match source:
                case "papers" | "citations":
                    return self.buckets(f"<results>/corpus/{source}/{{bucket}}.parquet")
                case "baseline":
                    return f"{self._vectors_under(wildcards)}/model"
                case "paper_vectors":
                    return self.buckets(f"{self._vectors_under(wildcards)}/papers/{{bucket}}.parquet")
                case "document_vectors":
                    return f"{self._vectors_under(wildcards)}/{_table_of_vectors(wildcards)}.parquet"
                case "joined_vectors":
                    table, models = _table_of_vectors(wildcards), self.config.models
                    folders = (
                        f"{name}/seed-{wildcards.seed}" if name in models else f"{UNTRAINED}{name}/seed-0"
                        for name in entry.models
                    )
                    return [f"<results>/encoder/{folder}/{table}.parquet" for folder in folders]
                case "document_papers":
                    benchmarks = [wildcards.benchmark] if hasattr(wildcards, "benchmark") else []
                    return next(iter(self.plan.corpus.papers_of_documents(benchmarks)), [])
                case "edges":
                    return self.plan.graph.edges(entry.graph)
                case "examples":
                    return f"<results>/triplets/{entry.triplets}/examples.parquet"
                case _:
                    return f"<results>/triplets/{entry.triplets}/documents"

        return files

    def _vectors_under(self, wildcards: Any) -> str:
        """The folder of the vectors that a baseline is derived from: those of another one, or of an encoder."""
        entry = self.entries[wildcards.baseline]
        if entry.under is None:
            return f"<results>/encoder/{UNTRAINED}{entry.encoder}/seed-0"
        seed = seed_under(wildcards.baseline, int(wildcards.seed), self.config.baselines)
        return f"<results>/baselines/{entry.under}/seed-{seed}"

    def sources_as_json(self, *names: str) -> Callable[[Any, Any], str]:
        """The sources that a job has among these, by name, as JSON for `--sources`."""
        return lambda wildcards, input: json.dumps({name: input[name] for name in names if input[name]}, default=list)

    def files(self, wildcards: Any) -> list[str]:
        """The user-supplied files of vectors or scores; none for other baselines."""
        paths = self.entries[wildcards.baseline].files
        return [file for path in paths for file in (files_in(path) if Path(path).is_dir() else [path])]

    def model(self, wildcards: Any) -> str | list[str]:
        """The model of a baseline; nothing if it is not trained."""
        is_trained = self.entries[wildcards.baseline].trained_on
        return "<results>/baselines/{baseline}/seed-{seed}/model" if is_trained else []

    def grid(self, wildcards: Any) -> str | list[str]:
        """The scores of the points of a baseline's grid; empty if it has none. A model trained before there was a grid
        is retrained only if the grid is evaluated."""
        has_grid = wildcards.baseline in self.with_grids
        return "<results>/baselines/{baseline}/seed-{seed}/grid.parquet" if has_grid else []

    def by_inputs(self, amount: str) -> Request:
        """The resources of a job, by the size of its inputs, as a method of the baseline estimates them."""

        def asked(wildcards: Any, input: Any, attempt: int) -> int:
            return whole(getattr(self.entries[wildcards.baseline], amount)(size_mb(input))) * attempt

        return asked


def _table_of_vectors(wildcards: Any) -> str:
    """What the vectors of a job are of: a benchmark's documents, a bucket of papers, or validation queries."""
    if hasattr(wildcards, "bucket"):
        return f"papers/{wildcards.bucket}"
    return f"embeddings/{wildcards.benchmark}" if hasattr(wildcards, "benchmark") else "validation"
