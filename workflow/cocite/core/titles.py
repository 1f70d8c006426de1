"""Titles as they are compared: by their words, whatever their case, accents and punctuation."""

import re
import unicodedata

NOT_A_WORD = re.compile(r"[\W_]+")
INVISIBLE = "Cf"
"""The category of soft hyphens and of spaces without a width, which stand within words."""


def normalised(title: str) -> str:
    """A title as it is compared: its letters and digits, without case and accents, words with one space between."""
    if not title.isascii():
        decomposed = unicodedata.normalize("NFKD", title)
        title = "".join(each for each in decomposed if not unicodedata.combining(each) and not _is_invisible(each))
    return NOT_A_WORD.sub(" ", title.casefold()).strip()


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) == INVISIBLE
