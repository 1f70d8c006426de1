"""What can be chosen of a search, and the search that does it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from cocite.neighbours.distances import Metric

MetricName = Literal["cosine", "l2", "inner_product"]


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """What an approximate index is built with."""

    metric: MetricName
    """How far two vectors are from each other."""
    index: Literal["ivf", "hnsw"]
    """Its kind."""
    lists: PositiveInt = 1024
    """Lists that an IVF index sorts the papers into."""
    links: Annotated[int, Field(ge=2)] = 32
    """Links of each paper in an HNSW index."""
    ef_construction: PositiveInt = 100
    """Breadth of the candidate lists while an HNSW index is built."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How neighbours are searched."""

    metric: MetricName
    """How far two vectors are from each other."""
    k: PositiveInt
    """Neighbours of each query."""
    index: Literal["flat", "ivf", "hnsw"] = "flat"
    """flat is exact; ivf and hnsw search in an index that was built."""
    probes: PositiveInt = 32
    """Lists that a search in an IVF index reads for each query."""
    ef_search: PositiveInt = 100
    """Breadth of the candidate list of a search in an HNSW index; at least k."""


def metric_of(settings: IndexSettings | SearchSettings) -> Metric:
    """The metric by its name."""
    return Metric[settings.metric.upper()]
