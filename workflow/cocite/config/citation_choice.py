"""Which citations of the corpus a graph is built from, and what each counts for."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config.aspects import Intent
from cocite.config.entries import Count, Entry, Positive, Whole, distinct, inconsistent
from cocite.config.source import lack_of_contexts


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


class CitationChoice(Entry):
    """Which citations of the corpus a graph is built from; the others are counted and left out."""

    influential: bool = False
    """Take only citations that Semantic Scholar marks as influential (Valenzuela et al., 2015)."""
    intents: Annotated[tuple[Intent, ...], Strict(False), AfterValidator(distinct)] = ()
    """Take only citations with one of these intents or more. Empty, any will do, and so will a citation without one."""
    min_mentions: Count | None = None
    """Take only citations that at least this many contexts of the citing paper make. Needs corpus.contexts. Left out,
    citations without a context will do."""
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
        for name, asked in {"min_mentions": chosen.min_mentions, "weights.mentions": weights.mentions}.items():
            if asked:
                yield from lack_of_contexts(f"{key}.citations.{name}", str(asked), config)
        by_influence = chosen.influential or weights.influential != 1
        for name, is_asked in {"influential": by_influence, "intents": chosen.intents or weights.intents}.items():
            if is_asked and not config.corpus.marks_citations:
                has_none = f"citations of the source {config.corpus.source} have neither influence nor intents"
                yield f"{key}.citations.{name}: {has_none}; leave it out."
        if not (chosen.self_ or config.corpus.authors):
            yield f"{key}.citations.self needs the names of authors, which are not kept; set corpus.authors: true."
