"""Ids of texts that are no papers (a sentence that cites, a user-supplied query or document), and titles as compared.

A text's id is negative and follows from its content: −1 less the low 62 bits of an MD5 digest. So the same text has the
same id in every set, and sets are joined without new numbers. Ids of papers are never negative. Among ten million
texts, two share an id with a chance of one in a hundred thousand.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

LOW_BITS = 2**62 - 1
NOT_A_WORD = re.compile(r"[\W_]+")
INVISIBLE = "Cf"
"""The category of soft hyphens and zero-width spaces, which occur within words."""


def text_id(title: str | None, abstract: str | None, *, is_query: bool) -> int:
    """The id of a text: a short query, or a document with a title, an abstract or both."""
    return -1 - (int.from_bytes(_digest(title, abstract, is_query)) & LOW_BITS)


def text_ids(titles: Iterable[str | None], abstracts: Iterable[str | None], *, is_query: bool) -> NDArray[np.int64]:
    """The ids of several texts, in their order; all of them are short queries, or none is."""
    digests = b"".join(_digest(*parts, is_query) for parts in zip(titles, abstracts, strict=True))
    low = np.frombuffer(digests, dtype=">u8")[1::2] & np.uint64(LOW_BITS)
    return -1 - low.astype(np.int64)


def sql_of_text_id(title: str, abstract: str, *, is_query: bool) -> str:
    """The id of a text as DuckDB computes it; `title` and `abstract` are expressions of SQL."""
    parts = f"'{_kind(is_query)}' || chr(0) || coalesce({title}, '') || chr(0) || coalesce({abstract}, '')"
    return f"(-1 - (('0x' || substr(md5({parts}), 17))::UBIGINT & {LOW_BITS})::BIGINT)"


def normalised(title: str) -> str:
    """A title as it is compared, by its words: letters and digits, without case and accents, one space between."""
    if not title.isascii():
        letters = unicodedata.normalize("NFKD", title)
        title = "".join(
            each for each in letters if not unicodedata.combining(each) and unicodedata.category(each) != INVISIBLE
        )
    return NOT_A_WORD.sub(" ", title.casefold()).strip()


def _digest(title: str | None, abstract: str | None, is_query: bool) -> bytes:
    parts = (_kind(is_query), title or "", abstract or "")
    return hashlib.md5("\0".join(parts).encode(), usedforsecurity=False).digest()


def _kind(is_query: bool) -> str:
    return "query" if is_query else "document"
