"""Easy negatives by sorted random: the papers farthest from the query among some random ones (SciNCL's appendix)."""

import numpy as np
from numba import njit

from cocite.ground.id_sets import Ids
from cocite.triplets.drawing import half_bits, permuted
from cocite.triplets.picking import NONE
from cocite.triplets.vectors import Keys, Known, Vectors

QUERIES_AT_ONCE = 16


def draw_farthest(known: Known, keys: Keys, vectors: Vectors, *, drawn: int, width: int) -> Ids:
    """Draw papers for each query of these hashes and vectors, the least similar first; queries × width."""
    drawn = min(drawn, len(known.ids))
    papers = np.full((len(keys), width), NONE, dtype=np.int64)
    for first in range(0, len(keys), QUERIES_AT_ONCE):
        some = slice(first, first + QUERIES_AT_ONCE)
        candidates = _candidates(keys[some], drawn, len(known.ids), half_bits(len(known.ids)))
        similarities = np.einsum("qcd,qd->qc", known.vectors[candidates], vectors[some])
        order = np.argsort(similarities, axis=1, kind="stable")[:, :width]
        papers[some, : order.shape[1]] = known.ids[np.take_along_axis(candidates, order, axis=1)]
    return papers


@njit(nogil=True, cache=True)
def _candidates(keys, drawn, papers, bits):  # type: ignore[no-untyped-def]
    """Random places, queries × drawn."""
    candidates = np.empty((len(keys), drawn), dtype=np.int64)
    for row in range(len(keys)):
        for number in range(drawn):
            candidates[row, number] = permuted(number, keys[row], bits, papers)
    return candidates
