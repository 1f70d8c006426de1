"""Benchmarks whose tasks are about one aspect each: `aspects`, made of held-out papers, and `csfcube`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from cocite.config.benchmark import AspectSettings, Benchmark, FolderBenchmark
from cocite.config.entries import Whole
from cocite.config.graphs import INTENTS
from cocite.config.tasks import OVER_FOLDS, Task

FACETS = ("background", "method", "result")
ALL = "all"  # what the released evaluation calls the queries of all facets together
TEXTS, JUDGED, FOLDS = "abstracts-csfcube-preds.jsonl", "test-pid2anns-csfcube-{}.json", "evaluation_splits.json"
"""The files of the release."""
METRICS = ("map", "Rprec", "P_20", "recall_20", "ndcg", "Rprec_csfcube", "ndcg_csfcube", "ndcg_20%_csfcube")
IN_CSFCUBE: dict[str, Any] = {"kind": "ranking", "group": "csfcube", "metrics": METRICS, "relevant_from": 2}
RELEASED = ("map", "Rprec_csfcube", "P_20", "recall_20", "ndcg_csfcube", "ndcg_20_csfcube", "ndcg_20%_csfcube")
"""The metrics that the released evaluation averages over folds."""


class Aspects(Benchmark, AspectSettings):
    """Papers linked with held-out papers of this run's corpus, by each aspect of citations."""

    kind: Literal["aspects"]
    by_aspect = True
    declared = tuple(Task(name=name, kind="ranking", group="aspects", metrics=("map", "ndcg")) for name in INTENTS)
    made_by = AspectSettings


class CsfCube(FolderBenchmark):
    """CSFCube, papers that are similar to a query paper in one facet, with graded relevance (Mysore et al., 2021).

    "CSFCube - A Test Collection of Computer Science Research Articles for Faceted Query by Example". Candidates of the
    grades 2 and 3 are relevant to the metrics that know no grades. The task csfcube_all, which has the queries of all
    facets, is scored only where `tasks` lists it.
    """

    kind: Literal["csfcube"]
    by_aspect = True
    declared = tuple(
        Task(name=f"csfcube_{facet}", test=facet, is_union=facet == ALL, **IN_CSFCUBE) for facet in (*FACETS, ALL)
    )
    folds: bool = False
    """Whether values are those that the released evaluation prints, the mean of the means over the two test folds of
    evaluation_splits.json. Otherwise each query counts alike."""

    @property
    def scored_tasks(self) -> Sequence[Task]:
        """The facets, or the tasks that it lists."""
        listed = self.tasks
        tasks = [task for task in self.declared if (task.test != ALL if listed is None else task.name in listed)]
        return [replace(task, metrics=self.asked_metrics) for task in tasks] if self.folds else tasks

    @property
    def asked_metrics(self) -> tuple[str, ...]:
        """The metrics of all its tasks if they are means over folds; else none."""
        return tuple(f"{metric}{OVER_FOLDS}" for metric in RELEASED) if self.folds else ()

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Files that are not there: the texts, the folds if they are used, and the facets that are scored."""
        yield from super().check_environment(key, config)
        folder, judged = Path(self.folder), {facet: JUDGED.format(facet) for facet in FACETS}
        if not folder.is_dir():
            return
        listed = {task.removeprefix("csfcube_") for task in self.tasks or ()}
        needed = [TEXTS, *([FOLDS] if self.folds else [])]
        needed += [judged[facet] for facet in FACETS if {facet, ALL} & listed]
        if not listed and not any((folder / file).is_file() for file in judged.values()):
            needed.append(judged[FACETS[0]])
        for file in needed:
            if not (folder / file).is_file():
                yield f"{key}.folder: the folder {self.folder} has no file {file}."
