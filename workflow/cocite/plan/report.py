"""The figures of the page, and its maps."""

import shlex
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake.io import report

from cocite.config.map import MapSettings
from cocite.config.runs import mapped_runs
from cocite.config.sampler import graphs_of_aspects
from cocite.plan.stage import StagePlan, as_text


class ReportPlan(StagePlan):
    """The page, its figures and maps."""

    def figures(self) -> list[Any]:
        """The figures of the page, which Snakemake's own report shows as well."""
        evaluation = self.plan.evaluation
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
            **({"aspects": "intents and aspects"} if graphs_of_aspects(self.config) else {}),
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

    def mapped_tables(self, wildcards: Any) -> list[str]:
        """The tables of the benchmark whose documents are on a map."""
        folder = f"<results>/evaluation/{self._map(wildcards).benchmark}"
        return [f"{folder}/{table}.parquet" for table in ("documents", "judgements", "labels")]

    def option_of_corpus(self, wildcards: Any, input: Any) -> str:
        """The option that names the folder of these papers, if there are some."""
        return f"--corpus {shlex.quote(str(Path(input.corpus[0]).parent))}" if input.corpus else ""

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

    def _map(self, wildcards: Any) -> MapSettings:
        return self.config.maps[wildcards.map]
