"""Examples of papers whose spans are near to each other, and far from those of random papers."""

import numpy as np
import pyarrow as pa

from cocite.core.id_sets import are_in
from cocite.triplets.picking import NONE, draw
from cocite.triplets.sampled import UNSERVED, Block, Sampled


def crop(block: Block, *, shortest: int, longest: int | None, negatives: int) -> Sampled:
    """An example of each query that has a text: itself as its positive, random papers as its negatives.

    The columns `shortest_span` and `longest_span` tell a training to draw spans of them.
    """
    has_text = are_in(block.papers, block.queries)
    drawn = draw(block, negatives, "easy negatives", spare=0).papers[has_text]
    is_there = drawn != NONE
    count = int(np.count_nonzero(has_text))
    starts, each = (pa.array(np.append(0, sizes), pa.int32()) for sizes in (_ends(is_there), np.arange(1, count + 1)))
    easy = pa.array(np.full(np.count_nonzero(is_there), "easy"), pa.string())
    papers = block.queries[has_text]
    rows = pa.table(
        {
            "query": papers,
            "number": pa.array(np.ones(count), pa.int32()),
            "split": block.splits.filter(pa.array(has_text)),
            "positives": pa.ListArray.from_arrays(each, pa.array(papers)),
            "negatives": pa.ListArray.from_arrays(starts, pa.array(drawn[is_there])),
            "negative_kinds": pa.ListArray.from_arrays(starts, easy),
            "shortest_span": pa.array(np.full(count, shortest), pa.int32()),
            "longest_span": pa.array([longest] * count, pa.int32()),
        }
    )
    unserved = UNSERVED["sampled_examples"]
    return Sampled(rows=rows, omissions={f"{unserved}: no text": len(block.queries) - count})


def _ends(is_there: np.ndarray) -> np.ndarray:
    ends: np.ndarray = np.cumsum(np.count_nonzero(is_there, axis=1))
    return ends
