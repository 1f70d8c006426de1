"""The section `graphs`: the signal that joins two papers, the citations that count, and what each counts for.

Citations have intents, from which the aspects of links follow, and other marks by which some are chosen.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config.entries import Count, Entry, Positive, Refers, Whole, all_parts, distinct, inconsistent
from cocite.config.source import lack_of_contexts

Intent = Literal["background", "methodology", "result"]
INTENTS: tuple[str, ...] = get_args(Intent)  # of Semantic Scholar's classifier (Cohan et al., 2019); bit n is the n-th
MISCELLANEOUS = "miscellaneous"  # the aspect of a link without an intent
ASPECTS = (*INTENTS, MISCELLANEOUS)  # all aspects; a link has that of each of its intents
SEVERAL, WITHOUT = "several", "none"
INTENT_CLASSES = (*INTENTS, SEVERAL, WITHOUT)  # of citations: with one intent, several, none
CONCATENATED = "concatenated"  # the space that concatenates the dimensions of all aspects
SPACES = "aspects"  # the folder of the spaces, within the folder of an encoder
Strength = Literal["count", "cosine", "jaccard", "association", "pmi", "fractional"]
Largest = Annotated[int, Field(ge=2)]
Factor = Annotated[float, Field(ge=1e-9, le=1e9)]
PAIRS = {"cocitation": "cocitations", "sentence-cocitation": "cocitations", "coupling": "couplings"}  # signal → table


class CitationMarks(Entry):
    """What is asked of a citation: all that is set."""

    influential: bool = False
    """Only citations that Semantic Scholar marks as influential (Valenzuela et al., 2015)."""
    intents: Annotated[tuple[Intent, ...], Strict(False), AfterValidator(distinct)] = ()
    """Only citations with one of these intents or more. Empty, any will do, and so will a citation without one."""
    min_mentions: Count | None = None
    """Only citations that at least this many contexts of the citing paper make. Needs corpus.contexts. Left out,
    citations without a context will do."""

    def in_sql(self) -> dict[str, str]:
        """Key → what it asks of a row with the columns influential, intents and mentions."""
        asked = {
            "influential": "influential" if self.influential else "",
            "intents": f"list_has_any(intents, {list(self.intents)})" if self.intents else "",
            "min_mentions": f"coalesce(mentions, 0) >= {self.min_mentions}" if self.min_mentions else "",
        }
        return {key: condition for key, condition in asked.items() if condition}

    def lacking(self, key: str, config: Whole) -> Iterator[str]:
        """A sentence for what the citations of the corpus do not have."""
        for name, is_asked in {"influential": self.influential, "intents": self.intents}.items():
            if is_asked and not config.corpus.marks_citations:
                has_none = f"citations of the source {config.corpus.source} have neither influence nor intents"
                yield f"{key}.{name}: {has_none}; leave it out."
        if self.min_mentions:
            yield from lack_of_contexts(f"{key}.min_mentions", str(self.min_mentions), config)


class CitationWeights(Entry):
    """What a citation counts for: the product of these factors."""

    influential: Positive = 1.0
    """Factor of citations that Semantic Scholar marks as influential."""
    intents: dict[Intent, Positive] = Field(default_factory=dict)
    """Factor of citations with an intent; intents that are not listed count 1. Of several, the largest counts."""
    mentions: Literal["count", "log"] | None = None
    """Factor by the number n of contexts of the citing paper that cite the other: count is n, log is 1 + ln n. It is 1
    for citations without a context. Needs corpus.contexts."""

    @model_validator(mode="after")
    def _weigh_something(self) -> "CitationWeights":
        if self.influential == 1 and not self.intents and self.mentions is None:
            raise inconsistent(" has no effect: every citation counts 1. Set one of its keys, or leave it out.")
        return self


class CitationChoice(CitationMarks):
    """Which citations of the corpus a graph is built from; the others are counted and left out."""

    self_: bool = Field(default=True, alias="self")
    """Take self-citations: the two papers share the name of an author, without case, accents and punctuation."""
    max_references: Count | None = None
    """Leave out the citations of papers with more references than this, such as bibliographies. All references of the
    corpus count, also those that another key leaves out. Default: no limit."""
    weights: CitationWeights | None = None
    """Weights of citations in graphs with signal: citation. Default: each counts 1."""

    @model_validator(mode="after")
    def _has_an_effect(self) -> "CitationChoice":
        limits = self.max_references or self.min_mentions or self.weights
        if not (self.influential or self.intents or limits) and self.self_:
            raise inconsistent(" has no effect: it takes all citations. Set one of its keys, or leave it out.")
        return self

    @property
    def counts_mentions(self) -> bool:
        """Whether the contexts of a citation are counted."""
        return bool(self.min_mentions or (self.weights and self.weights.mentions))


class BuiltOnCitations(Entry):
    """What graphs have in common that are built from the citations of the corpus."""

    citations: CitationChoice | None = None
    """Which citations of the corpus the graph is built from. Default: all."""

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A choice by what the corpus does not have."""
        chosen = self.citations
        if chosen is None:
            return
        weights = chosen.weights or CitationWeights.model_construct()
        if chosen.weights and getattr(self, "signal", None) != "citation":
            yield (
                f"{key}.citations.weights: only signal: citation takes weights; pairs are counted. For pairs, combine "
                "graphs of chosen citations instead (docs/graphs.md#weights)."
            )
        weighed = CitationMarks(influential=weights.influential != 1, intents=tuple(weights.intents))
        yield from chosen.lacking(f"{key}.citations", config)
        yield from weighed.lacking(f"{key}.citations.weights", config)
        if weights.mentions:
            yield from lack_of_contexts(f"{key}.citations.weights.mentions", weights.mentions, config)
        if not (chosen.self_ or config.corpus.authors):
            yield f"{key}.citations.self needs the names of authors, which are not kept; set corpus.authors: true."


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
