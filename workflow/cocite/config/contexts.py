"""The key `corpus.contexts`: whether citation contexts, the sentences that cite, are ingested, and which of them."""

from collections.abc import Iterator

from pydantic import model_validator

from cocite.config.entries import Count, Entry, Whole, inconsistent


class ContextSettings(Entry):
    """Which of the sentences that cite become contexts."""

    min_words: Count = 5
    """Words of a sentence at least, its citation markers not counted."""
    max_words: Count = 100
    """Words of a sentence at most, likewise."""

    @model_validator(mode="after")
    def _bounds_rise(self) -> "ContextSettings":
        if self.min_words > self.max_words:
            raise inconsistent(f".min_words ({self.min_words}) must not exceed max_words ({self.max_words}).")
        return self


def lack_of_contexts(key: str, what: str, config: Whole) -> Iterator[str]:
    """A sentence where `what`, an entry that is made of contexts, has none because they are not ingested."""
    if config.corpus.contexts is None:
        yield (
            f"{key}: {what} needs the sentences that cite, which are not ingested; set corpus.contexts ({{}} stands "
            "for its defaults)."
        )
