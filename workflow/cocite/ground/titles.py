"""Titles as they are compared: by their words, whatever their case, accents and punctuation."""

import re
import unicodedata

NOT_A_WORD = re.compile(r"[\W_]+")


def normalised(title: str) -> str:
    """A title as it is compared: its letters and digits, without case and accents, words with one space between."""
    if not title.isascii():
        decomposed = unicodedata.normalize("NFKD", title)
        title = "".join(character for character in decomposed if not unicodedata.combining(character))
    return NOT_A_WORD.sub(" ", title.casefold()).strip()
