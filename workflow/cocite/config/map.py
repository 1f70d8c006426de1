"""What a map is to the configuration: an entry of its settings, one class each.

The methods that lay papers out are in `report/map_methods.py`.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from cocite.config.benchmark import Benchmark
from cocite.config.entries import Count, Entry, Names, Positive, Refers, SomeNames, Whole
from cocite.config.runs import with_vectors

FIELD = "field"  # the label that is no task: the field of study in the table `documents`
OF_CLASSES = ("binary", "multiclass", "multilabel")  # the kinds of tasks whose labels are classes


class Clustering(Entry):
    """How DBSCAN (Ester et al., 1996) finds clusters on a map."""

    eps: Positive | None = None
    """Distance within which points are neighbours, in the units of the map. Default: the knee of the sorted distances
    to the `min_samples`-th neighbour, which is the point farthest from the line between the ends of the curve."""
    min_samples: Count | None = None
    """Points within that distance, including the point itself, that make it a core point of a cluster. Default: the
    natural logarithm of the number of papers (Birant & Kut, 2007), but at least 4, twice the number of dimensions."""


class MapSettings(Entry):
    """What every map has; a map has a field `method` as well, the name of a module."""

    method: str
    """How papers are laid out."""
    called: ClassVar[str]  # what the method is called in the report
    benchmark: Annotated[str, Refers("benchmarks")]
    """The benchmark whose documents are on the map."""
    models: SomeNames | None = None
    """Sources of the vectors: models (by their first seed), models in a space (`<model>_in_<space>`), encoders before
    fine-tuning (`untrained_<encoder>`) and baselines with vectors. Default: up to eight, at most four encoders and then
    models."""
    documents: Literal["auto", "queries", "all"] = "auto"
    """The documents to show: the queries of its rankings, or all but short queries. auto means queries for a benchmark
    about held-out papers, in which all others are candidates, and all elsewhere."""
    papers: Annotated[int, Field(ge=2, le=50_000)] = 10_000
    """Largest number of papers on the map. Beyond it, papers are sampled with the run's seed, labelled ones first."""
    labels: Names | None = None
    """What papers are coloured by, and clusters are judged by: `field`, the field of study, and tasks of the benchmark
    that are classifications. Of several classes of a paper the first counts. Left out, all that the benchmark has."""
    metric: Literal["euclidean", "cosine"] = "euclidean"
    """Distance between the vectors."""
    clusters: Clustering = Clustering()
    """How clusters are found on the map."""

    def shows_queries(self, config: Whole) -> bool:
        """Whether it shows only the queries of rankings."""
        is_held_out = config.benchmarks[self.benchmark].made_by is not None
        return is_held_out if self.documents == "auto" else self.documents == "queries"

    @abstractmethod
    def neighbours_among(self, papers: int) -> int:
        """The number of neighbours that it needs per paper, for this number of papers. Raises `InputError`, one
        sentence, if a setting needs more papers than there are."""

    @abstractmethod
    def lay_out(self, vectors: Any, neighbours: Any, distances: Any, *, seed: int) -> Any:
        """The positions of papers (papers × 2) from their vectors (papers × dimension). `neighbours` and `distances`
        (papers × k) give the nearest other papers of each, nearest first."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Models that have no vectors, and labels that the benchmark does not have."""
        known = with_vectors(config, self.benchmark)
        for name in self.models or ():
            if name not in known:
                yield f"{key}.models names {name!r}, which has no vectors (those that have some: {', '.join(known)})."
        known = labels_of(config.benchmarks[self.benchmark])
        for name in self.labels or ():
            if name not in known:
                of = f"the benchmark {self.benchmark} (it has: {', '.join(known)})"
                yield f"{key}.labels names {name!r}, which is no label of {of}."


def labels_of(benchmark: Benchmark) -> list[str]:
    """What the documents of a benchmark can be labelled with."""
    return [FIELD, *(task.name for task in benchmark.scored_tasks if task.kind in OF_CLASSES)]
