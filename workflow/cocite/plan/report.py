"""The figures of the page, and its maps."""

import json
import shlex
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake.io import report

from cocite.config.map import MapSettings, labels_of
from cocite.config.runs import mapped_runs
from cocite.plan.stage import StagePlan, as_text, expand, size_mb, whole

MAPPED_TABLES = ("documents", "judgements", "labels")


class ReportPlan(StagePlan):
    """The page, its figures and maps."""

    def figures(self) -> list[Any]:
        """The figures of the page, which Snakemake's own report shows as well."""
        evaluation, triplets = self.plan.evaluation, self.plan.triplets
        labels = {
            "pair_counts": "pairs of papers",
            "validation_curves": "validation curves",
            "link_prediction": "link prediction",
            "band_quality": "neighbours by rank",
            "triplets": "triplets",
            **({"trade": "short queries against documents"} if evaluation.trade else {}),
            **({"screening": "screening of reviews"} if evaluation.reviews else {}),
            **({"probes": "sets and losses of the probes"} if self.config.probes else {}),
            **({"spaces": "spaces by aspects"} if evaluation.by_aspect else {}),
            **({"aspects": "intents and aspects"} if triplets.graphs_of_aspects else {}),
            **{f"map_{name}": "map of papers" for name in self.config.maps},
        }
        return [
            report(
                f"<results>/report/figures/{name}.svg",
                f"../workflow/report/captions/{'map' if name.startswith('map_') else name}.rst",
                category="Figures",
                labels={"figure": label},
            )
            for name, label in labels.items()
        ]

    def intents(self) -> list[str]:
        """The counts of intents in the graphs that sets are sampled from by aspect."""
        return expand("<results>/graph/{graph}/intent_counts.parquet", graph=self.plan.triplets.graphs_of_aspects)

    def mapped_tables(self, wildcards: Any) -> list[str]:
        """The tables of the benchmark whose documents are on a map."""
        path = "<results>/evaluation/{benchmark}/{table}.parquet"
        return expand(path, benchmark=self._map(wildcards).benchmark, table=MAPPED_TABLES)

    def corpus_of_map(self, wildcards: Any) -> list[str]:
        """The papers of the corpus, if the documents of a map are some of them."""
        is_own = self._map(wildcards).benchmark in self.plan.evaluation.holdouts
        return self.plan.corpus.papers() if is_own else []

    def option_of_corpus(self, wildcards: Any, input: Any) -> str:
        """The option that names the folder of these papers, if there are some."""
        return f"--corpus {shlex.quote(str(Path(input.corpus[0]).parent))}" if input.corpus else ""

    def option_of_queries(self, wildcards: Any) -> str:
        """The option that leaves out documents that are not queries, if a map shows only queries."""
        return "--only-queries" if self._map(wildcards).shows_queries(self.config) else ""

    def labelled_tasks(self, wildcards: Any) -> str:
        """The tasks of its benchmark whose labels are classes, with commas between them."""
        return ",".join(labels_of(self.config.benchmarks[self._map(wildcards).benchmark])[1:])

    def settings_of_map(self, wildcards: Any) -> str:
        """What a map is laid out by, as JSON; another model on it changes nothing for the others."""
        return as_text(self._map(wildcards), "models")

    def mapped_vectors(self, wildcards: Any) -> str:
        """The vectors of a map's papers by a model, an encoder before fine-tuning, or a baseline."""
        stage = "baselines" if wildcards.model in self.config.baselines else "encoder"
        folder = f"<results>/{stage}/{wildcards.model}/seed-{wildcards.seed}"
        return f"{folder}/embeddings/{self._map(wildcards).benchmark}.parquet"

    def runs_on_map(self, name: str) -> list[tuple[str, int]]:
        """The name and seed of each run on a map."""
        return mapped_runs(self.config, self.config.maps[name].models)

    @cached_property
    def mapped_models(self) -> list[str]:
        """All that is on any map."""
        return list(dict.fromkeys(model for name in self.config.maps for model, _ in self.runs_on_map(name)))

    def on_maps(self, *tables: str) -> list[str]:
        """Tables of each model on each map: points or scores."""
        return [
            f"<results>/report/maps/{name}/{table}/{model}-{seed}.parquet"
            for table in tables
            for name in self.config.maps
            for model, seed in self.runs_on_map(name)
        ]

    def laying_out_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to lay a map out, MB: by its papers, and by a batch of vectors."""
        return whole(900 + 0.1 * self._map(wildcards).papers) * attempt

    def laying_out_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time to lay a map out: by its papers and the size of the vectors that they are looked for in."""
        return whole(10 + 0.002 * self._map(wildcards).papers + 0.01 * size_mb(input.embeddings)) * attempt

    def _map(self, wildcards: Any) -> MapSettings:
        return self.config.maps[wildcards.map]


def logs_of(workflow: Any) -> Any:
    """A parameter: the logs of each rule, with its wildcards in braces, as JSON."""

    def as_json_text(wildcards: Any) -> str:
        return json.dumps({rule.name: str(rule.log[0]) for rule in workflow.rules if rule.log}, sort_keys=True)

    return as_json_text
