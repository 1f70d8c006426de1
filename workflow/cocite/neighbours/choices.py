"""What can be chosen of a search, and the search that does it."""

from dataclasses import dataclass
from typing import Literal

from cocite.errors import InputError
from cocite.neighbours.distances import Metric

MetricName = Literal["cosine", "l2", "inner_product"]
IndexName = Literal["flat", "ivf", "hnsw"]


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """What an approximate index is built with."""

    metric: MetricName
    """How far two vectors are from each other."""
    index: IndexName
    """ivf or hnsw; flat is exact and needs no index."""
    lists: int = 0
    """Lists that an IVF index sorts the papers into."""
    links: int = 0
    """Links of each paper in an HNSW index."""
    ef_construction: int = 0
    """Breadth of the candidate lists while an HNSW index is built."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How neighbours are searched."""

    metric: MetricName
    """How far two vectors are from each other."""
    k: int
    """Neighbours of each query."""
    index: IndexName = "flat"
    """flat is exact; ivf and hnsw search in an index that was built."""
    probes: int = 0
    """Lists that a search in an IVF index reads for each query."""
    ef_search: int = 0
    """Breadth of the candidate list of a search in an HNSW index; at least k."""


def metric_of(settings: IndexSettings | SearchSettings) -> Metric:
    """The metric by its name. Raises `InputError` where there is none of that name."""
    try:
        return Metric[settings.metric.upper()]
    except KeyError:
        known = ", ".join(metric.name.lower() for metric in Metric)
        raise InputError(f"metric {settings.metric!r} is not known; it must be one of {known}.") from None
