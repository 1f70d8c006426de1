"""What an index finds papers by, and what that costs."""

from functools import cached_property
from typing import Any

from snakemake.io import expand

from cocite.config.index import Index, Lists, searches
from cocite.config.runs import encoders_of_index, first_seed, seeds_of_index
from cocite.config.settings import settings_of
from cocite.plan.graph import EDGES
from cocite.plan.stage import StagePlan, as_text


class RetrievalPlan(StagePlan):
    """Indexes, and the hold-outs that they are fitted and scored on."""

    @cached_property
    def benchmarks(self) -> list[str]:
        """The benchmarks that indexes are fitted and scored on."""
        return [name for name, entry in self.config.benchmarks.items() if searches(entry)]

    def _finding(self, wildcards: Any) -> Index:
        entry = self.config.indexes[wildcards.index]
        return entry if entry.of is None else self.config.indexes[entry.of]

    def vectors(self, wildcards: Any) -> list[str]:
        """The vectors of all papers by the models of an index."""
        path = "<results>/encoder/{model}/seed-{seed}/papers/{bucket}.parquet"
        runs = encoders_of_index(self.config, wildcards.index, wildcards.seed).values()
        return [file for model, seed in runs for file in self.buckets(path, model=model, seed=seed)]

    def links(self, wildcards: Any) -> str:
        """The links of papers in the graph of an index."""
        return f"<results>/retrieval/links/{self._finding(wildcards).graph}"

    def all_links(self, wildcards: Any) -> list[str]:
        """The links of an index that is searched: citations, also of held-out papers, or edges of another signal."""
        graph = str(self._finding(wildcards).graph)
        is_of_citations = self.config.graphs[graph].signal == "citation"
        return self.buckets(self.plan.graph.source_of(graph, "citations") if is_of_citations else EDGES, graph=graph)

    def indexes(self) -> list[str]:
        """The folders of all indexes that find papers, of their first seed."""
        finding = [name for name, entry in self.config.indexes.items() if entry.of is None]
        return [f"<results>/retrieval/{name}/seed-{first_seed(self.config, name)}/index" for name in finding]

    def candidates(self, wildcards: Any) -> str:
        """What an index finds, or the index that it is of."""
        name = self.config.indexes[wildcards.index].of or wildcards.index
        return f"<results>/retrieval/{name}/seed-{{seed}}/{{benchmark}}/candidates.parquet"

    def models(self, wildcards: Any) -> str:
        """The names of the models of an index, with commas between them."""
        return ",".join(self._finding(wildcards).models)

    def lists(self, wildcards: Any) -> str:
        """What an index finds papers by, as JSON."""
        return as_text(settings_of(self._finding(wildcards), Lists), "models")

    def tasks(self, wildcards: Any) -> str:
        """The tasks of a benchmark that name candidates, with commas between them."""
        tasks = self.config.benchmarks[wildcards.benchmark].scored_tasks
        return ",".join(task.name for task in tasks if task.kind == "ranking")

    def answers(self) -> list[str]:
        """The answers of all indexes on all hold-outs that search."""
        path = "<results>/retrieval/{index}/seed-{seed}/{benchmark}/answers.parquet"
        return [
            file
            for name in self.config.indexes
            for file in expand(path, index=name, seed=seeds_of_index(self.config, name), benchmark=self.benchmarks)
        ]
