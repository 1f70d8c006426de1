"""The section `graphs`: graphs over papers, by the signal that joins two of them."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cocite.config.citation_choice import BuiltOnCitations
from cocite.config.entries import Count, Entry, Refers, Whole, all_parts, inconsistent
from cocite.config.source import lack_of_contexts

Strength = Literal["count", "cosine", "jaccard", "association", "pmi", "fractional"]
Largest = Annotated[int, Field(ge=2)]
Factor = Annotated[float, Field(ge=1e-9, le=1e9)]
PAIRS = {"cocitation": "cocitations", "sentence-cocitation": "cocitations", "coupling": "couplings"}
"""Signal → the table of the pairs that it counts."""


class PairCounting(Entry):
    """How the pairs of a graph are counted."""

    pairs: Literal["query", "all"] = "query"
    """query counts pairs in which at least one paper is a query. all counts every pair of references of the papers, or
    of the sentences, that cite a query (for coupling: every pair of papers that cite a reference of a query)."""
    strength: Strength = "count"
    """Weight of an edge: the number of papers that cite both (sentence-cocitation: of sentences; coupling: of papers
    that both cite), or a measure of docs/graphs.md that corrects for how often each of the two occurs, or for the
    length of the lists that they occur in."""

    @property
    def largest(self) -> int | None:
        """Members of the largest group that counts; None without a limit."""
        limits = ("max_references", "max_papers", "max_citations")
        return next((getattr(self, key) for key in limits if hasattr(self, key)), None)


class CocitationCounting(PairCounting):
    """Joins papers that are cited together."""

    signal: Literal["cocitation"]
    """What joins two papers."""
    max_references: Largest | None = None
    """A paper with more references makes no pair. Default: no limit."""


class SentenceCounting(PairCounting):
    """Joins papers that are cited in one sentence."""

    signal: Literal["sentence-cocitation"]
    """What joins two papers."""
    max_papers: Largest | None = None
    """A sentence that cites more papers makes no pair. Default: no limit."""


class CouplingCounting(PairCounting):
    """Joins papers that cite the same papers."""

    signal: Literal["coupling"]
    """What joins two papers."""
    max_citations: Largest | None = None
    """A paper with more citations makes no pair. Default: no limit."""


class PairGraph(BuiltOnCitations):
    """The keys of graphs of pairs, except how the pairs are counted."""

    min_count: Count = 1
    """Smallest count of a pair that becomes an edge."""


class CocitationGraph(CocitationCounting, PairGraph):
    """Joins papers that are cited together."""

    @model_validator(mode="after")
    def _limits_differ(self) -> "CocitationGraph":
        most = self.citations and self.citations.max_references
        if most and self.max_references and self.max_references >= most:
            raise inconsistent(f".max_references has no effect: citations.max_references ({most}) is not larger.")
        return self


class SentenceGraph(SentenceCounting, PairGraph):
    """Joins papers that are cited in one sentence."""

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Sentences that are not ingested, and a choice of citations by what the corpus does not have."""
        yield from lack_of_contexts(f"{key}.signal", self.signal, config)
        yield from super().check_environment(key, config)


class CouplingGraph(CouplingCounting, PairGraph):
    """Joins papers that cite the same papers."""


class CitationGraph(BuiltOnCitations):
    """Joins the citing and the cited paper."""

    signal: Literal["citation"]
    """What joins two papers."""
    directed: bool = True
    """Whether an edge leads from the citing to the cited paper only, or joins the two either way. SPECTER's sampling
    needs a directed graph, a combination undirected ones."""


class Combination(Entry):
    """How graphs are added up."""

    of: Annotated[dict[str, Factor], Field(min_length=1), Refers("graphs")]
    """Names of undirected graphs, each with the factor of its weights; those of an edge are added up."""
    rescale: Literal["none", "max"] = "none"
    """none uses the weights unchanged; max first divides the weights of each graph by its largest."""


class CombinationGraph(Combination):
    """Adds up the edges of other graphs."""

    signal: Literal["combination"]
    """What joins two papers."""

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """Parts that are directed, or that the combination is a part of."""
        for part in self.of:
            if getattr(config.graphs[part], "directed", False):
                yield f"{key}.of names {part!r}, which is directed; a combination takes undirected graphs."
        name = key.removeprefix("graphs.")
        if name in all_parts(name, lambda part: getattr(config.graphs[part], "of", ())):
            yield f"{key}.of: a combination must not be a part of itself."


Counting = Annotated[CocitationCounting | SentenceCounting | CouplingCounting, Field(discriminator="signal")]
Graph = Annotated[
    CocitationGraph | SentenceGraph | CouplingGraph | CitationGraph | CombinationGraph, Field(discriminator="signal")
]
