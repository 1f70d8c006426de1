"""The section `walks`: the papers around each query, ranked by random walks on a graph, without an embedding."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from cocite.config.entries import Count, Entry, Refers, Whole


class Links(Entry):
    """What walks go along."""

    weighted: bool = False
    """Whether a walk takes heavier edges more often, in proportion to their weights. Left out, every edge of a paper
    is as likely as any other."""


class WalkSettings(Entry):
    """How papers are ranked by random walks."""

    restart: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Chance that a walk returns to the query instead of taking a further step. A larger one stays nearer to it."""
    score: Literal["symmetric", "walk"] = "symmetric"
    """What ranks a paper. walk is the chance that a walk from the query stops there, which is high for papers with many
    edges; symmetric multiplies it by √(degree of the query / degree of the paper), and so is the same either way."""
    tolerance: Annotated[float, Field(ge=1e-12, le=1e-2)] = 1e-6
    """Largest error of the chance that a walk stops at a paper, for each edge of the paper. A smaller one reaches more
    papers and takes longer: a query looks at 1 / (restart · tolerance) edges at most."""
    k: Count = 1000
    """Neighbours of each query, fewer where walks reach fewer; k_negative of the triplets drawn from them may not
    exceed it."""


class Walks(Links, WalkSettings):
    """Ranks papers by random walks with restart from each query, and stands for a graph embedding in a sampler."""

    graph: Annotated[str, Refers("graphs")]
    """Name of the graph. Walks go along an edge in either direction."""
    among: Literal["edges", "texts"] = "edges"
    """edges ranks all papers that have an edge; texts only those among them with text, so that no rank
    falls to a paper that cannot become a sample. Walks go through the others in either case."""
    shards: Count = 1
    """Jobs that share the queries."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """More neighbours than the release can have papers."""
        yield from more_than_papers(f"{key}.k", self.k, config)


def more_than_papers(key: str, k: int, config: Whole) -> Iterator[str]:
    """A sentence where the release has too few papers for k neighbours of each query."""
    largest = config.corpus.largest_index
    if largest is not None and k >= largest - 1:
        yield f"{key} ({k}) must be smaller than {largest - 1}: the release has at most {largest} papers."
