"""Papers with generated texts as long as those of the release hci, made by a process of its own.

Of hci's 27,152 abstracts, a tenth each has words between these numbers; titles have ten words. Words follow Zipf's law.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.papers import papers_table

from cocite.core.tables.files import write_table

LENGTHS = (12, 91, 110, 124, 135, 143, 149, 157, 173, 202, 735)
"""Words of an abstract at each tenth, from the shortest to the longest."""
TITLE, WORDS = 10, 200_000
AT_ONCE = 10_000


def main(folder: Path, papers: int) -> None:
    """Write a bucket of papers, and a table of queries that keeps the first hundred of them out."""
    write_table(folder / "papers" / "0.parquet", "papers", _papers(papers))
    splits = pa.table({"corpusid": range(1, 101), "split": ["holdout"] * 100})
    write_table(folder / "queries.parquet", "queries", splits)


def _papers(papers: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(1)
    names = np.array([f"w{number:x}q" for number in range(WORDS)])
    share = 1 / np.arange(1, WORDS + 1)
    ends = np.cumsum(share) / share.sum()
    for start in range(0, papers, AT_ONCE):
        count = min(AT_ONCE, papers - start)
        lengths = np.interp(draw.random(count), np.linspace(0, 1, len(LENGTHS)), LENGTHS).astype(int)
        words = names[np.searchsorted(ends, draw.random(int(lengths.sum()) + TITLE * count)).clip(max=WORDS - 1)]
        texts = np.split(words, np.cumsum(lengths + TITLE)[:-1])
        titled = {start + 1 + row: (" ".join(text[:TITLE]), " ".join(text[TITLE:])) for row, text in enumerate(texts)}
        yield from papers_table(titled).to_batches()
