"""Which citations of the corpus a graph is built from."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, Strict, model_validator

from cocite.config.aspects import Intent
from cocite.config.entries import Count, Entry, Whole, distinct, inconsistent


class CitationChoice(Entry):
    """Which citations of the corpus a graph is built from; the others are counted and left out."""

    influential: bool = False
    """Take only citations that Semantic Scholar marks as influential (Valenzuela et al., 2015)."""
    intents: Annotated[tuple[Intent, ...], Strict(False), AfterValidator(distinct)] = ()
    """Take only citations with one of these intents or more. Empty, any will do, and so will a citation without one."""
    self_: bool = Field(default=True, alias="self")
    """Take self-citations: the two papers share the name of an author, without case, accents and punctuation."""
    most_references: Count | None = None
    """Leave out the citations of papers with more references than this, such as bibliographies. All references of the
    corpus count, also those that another key leaves out. Left out, there is no limit."""

    @model_validator(mode="after")
    def _leaves_something_out(self) -> "CitationChoice":
        if not (self.influential or self.intents or self.most_references) and self.self_:
            raise inconsistent(" has no effect: it takes all citations. Set one of its keys, or leave it out.")
        return self


class BuiltOnCitations(Entry):
    """What graphs have in common that are built from the citations of the corpus."""

    citations: CitationChoice | None = None
    """Which citations of the corpus the graph is built from. Left out, all of them."""

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A choice by what the corpus does not have."""
        chosen = self.citations
        if chosen is None:
            return
        for name in ("influential", "intents"):
            if getattr(chosen, name) and not config.corpus.marks_citations:
                has_none = f"citations of the source {config.corpus.source} have neither influence nor intents"
                yield f"{key}.citations.{name}: {has_none}; leave it out."
        if not (chosen.self_ or config.corpus.authors):
            yield f"{key}.citations.self needs the names of authors, which are not kept; set corpus.authors: true."
