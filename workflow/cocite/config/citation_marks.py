"""What sets a citation apart: influence, intents and mentions."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Strict

from cocite.config.aspects import Intent
from cocite.config.entries import Count, Entry, Whole, distinct
from cocite.config.source import lack_of_contexts


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
