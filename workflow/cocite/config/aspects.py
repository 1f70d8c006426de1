"""Why papers cite each other: the intents of citations, the aspects that follow from them, and what else marks some."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Strict

from cocite.config.entries import Count, Entry, Whole, distinct
from cocite.config.source import lack_of_contexts

Intent = Literal["background", "methodology", "result"]
INTENTS: tuple[str, ...] = get_args(Intent)
"""The intents that Semantic Scholar's classifier knows (Cohan et al., 2019), sorted; bit n is the n-th of them."""
MISCELLANEOUS = "miscellaneous"
"""The aspect of a link without an intent."""
ASPECTS = (*INTENTS, MISCELLANEOUS)
"""All aspects; a link has that of each of its intents."""
SEVERAL, WITHOUT = "several", "none"
INTENT_CLASSES = (*INTENTS, SEVERAL, WITHOUT)
"""The classes of citations: those with one intent, by intent; those with several; those without."""
CONCATENATED = "concatenated"
"""The space that concatenates the dimensions of all aspects."""
SPACES = "aspects"
"""The folder of the spaces, within the folder of an encoder."""


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
