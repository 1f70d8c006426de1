"""Titles of papers that are kept out, so that brought texts do not bring the papers back under another name.

A brought text has no corpus id; what it shares with a paper is its title. Titles are compared by their words, without
case, accents and punctuation, and only hashes of them are held: eight bytes a paper.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.tables.files import checked_files, open_table
from cocite.core.tables.splits import read_kept_out
from cocite.core.titles import normalised


@dataclass(frozen=True, kw_only=True)
class Titles:
    """The titles of some papers."""

    hashes: NDArray[np.uint64]
    """Rising."""
    longest: int = 0
    """Characters of the longest one, as it is compared."""

    def __contains__(self, title: str | None) -> bool:
        """Whether a text is one of them."""
        # Few texts are so short: of the others, none is normalised.
        if not title or len(self.hashes) == 0 or len(title) > 2 * self.longest + 100:
            return False
        hashed = _hash(normalised(title))
        place = int(np.searchsorted(self.hashes, hashed))
        return place < len(self.hashes) and self.hashes[place] == hashed


NONE = Titles(hashes=np.empty(0, dtype=np.uint64))


def kept_out_titles(papers: Path, queries: Path) -> Titles:
    """The titles of the papers that are held out or excluded, from the folder of the table papers."""
    hashes, longest = [np.empty(0, dtype=np.uint64)], 0
    for title in _kept_out(papers, queries):
        text = normalised(title)
        if text:
            hashes.append(np.array([_hash(text)], dtype=np.uint64))
            longest = max(longest, len(text))
    return Titles(hashes=np.unique(np.concatenate(hashes)), longest=longest)


def _kept_out(papers: Path, queries: Path) -> Iterator[str]:
    ids = read_kept_out(queries)["corpusid"].combine_chunks()
    if len(ids) == 0:
        return
    for path in checked_files(papers, "papers"):
        for batch in open_table(path, "papers").iter_batches(columns=["corpusid", "title"]):
            yield from batch["title"].filter(pc.is_in(batch["corpusid"], value_set=ids)).drop_null().to_pylist()


def _hash(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))
