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
    mentions: Literal["count", "log"] | None = None
    """Factor by the number n of contexts of the citing paper that cite the other: count is n, log is 1 + ln n. It is 1
    for citations without a context. Needs corpus.contexts."""

    @model_validator(mode="after")
    def _weigh_something(self) -> "CitationWeights":
        if self.influential == 1 and self.mentions is None:
            raise inconsistent(" has no effect: every citation counts 1. Set one of its keys, or leave it out.")
        return self


class CitationChoice(Entry):
    """Which citations of the corpus a graph is built from; the others are counted and left out."""

    influential: bool = False
    """Take only citations that Semantic Scholar marks as influential (Valenzuela et al., 2015)."""
    intents: Annotated[tuple[Intent, ...], Strict(False), AfterValidator(distinct)] = ()
    """Take only citations with at least one of these intents. Default: any, or none."""
    self_: bool = Field(default=True, alias="self")
    """Take self-citations: the two papers share the name of an author, without case, accents and punctuation."""
    most_references: Count | None = None
    """Leave out the citations of papers with more references than this, such as bibliographies. All references of the
    corpus count, also those that another key leaves out. Default: no limit."""
    weights: CitationWeights | None = None
    """Weights of citations in graphs with signal: citation. Default: each counts 1."""

    @model_validator(mode="after")
    def _has_an_effect(self) -> "CitationChoice":
        if not (self.influential or self.intents or self.most_references or self.weights) and self.self_:
            raise inconsistent(" has no effect: it takes all citations. Set one of its keys, or leave it out.")
        return self


class BuiltOnCitations(Entry):
    """What graphs have in common that are built from the citations of the corpus."""

    citations: CitationChoice | None = None
    """Which citations of the corpus the graph is built from. Default: all."""

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A choice by what the corpus does not have."""
        chosen = self.citations
        if chosen is None:
            return
        if weights := chosen.weights:
            if getattr(self, "signal", None) != "citation":
                yield f"{key}.citations.weights: only signal: citation takes weights; pairs are counted."
            if weights.mentions:
                yield from lack_of_contexts(f"{key}.citations.weights.mentions", weights.mentions, config)
        by_influence = chosen.influential or (weights is not None and weights.influential != 1)
        for name, is_asked in {"influential": by_influence, "intents": chosen.intents}.items():
            if is_asked and not config.corpus.marks_citations:
                has_none = f"citations of the source {config.corpus.source} have neither influence nor intents"
                yield f"{key}.citations.{name}: {has_none}; leave it out."
        if not (chosen.self_ or config.corpus.authors):
            yield f"{key}.citations.self needs the names of authors, which are not kept; set corpus.authors: true."
