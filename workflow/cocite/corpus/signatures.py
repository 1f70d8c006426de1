"""MinHash signatures of abstracts, cut into bands, so that near-equal abstracts share a band (Broder, 1997).

A signature has the least hash, under each of 80 functions, of all runs of three words. Two abstracts agree in a place
of it with a probability that is the Jaccard index J of their runs, and in one of 16 bands of five places with
1 − (1 − J⁵)¹⁶: .998 for J = .8, .0002 for J = .1. Libraries for this (datasketch, rensa) hold their index in memory;
here a text has 16 numbers, which DuckDB groups and spills.

Words are told apart in bytes: ASCII letters without case, digits, and all bytes of other characters except general
punctuation (dashes and quotes). That is enough to find candidates, which are compared exactly afterwards.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from cocite.core.randomness import generator, mix

BANDS, PLACES = 16, 5
RUN = 3
"""Words of a run."""
LEAST_WORDS = 30
"""Words of the shortest abstract that has a signature: shorter ones are often notices that many papers share."""

_draw = generator(0, "signatures of abstracts")
_TERMS, _FACTORS = (_draw.integers(0, 2**63, BANDS * PLACES, dtype=np.uint64) | np.uint64(1) for _ in range(2))
_mixed: Any = njit(mix)


def bands_of(abstracts: pa.StringArray) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The bands of each abstract, rows × `BANDS`, and which abstracts are long enough to have any."""
    _, offsets, content = abstracts.buffers()
    places = np.frombuffer(offsets, np.int32)[abstracts.offset : abstracts.offset + len(abstracts) + 1]
    bands = np.zeros((len(abstracts), BANDS), np.uint64)
    words = _fill(bands, np.frombuffer(content or b"", np.uint8), places, _TERMS, _FACTORS)
    return bands, words >= LEAST_WORDS


@njit(nogil=True, cache=True)
def _fill(
    bands: NDArray[np.uint64],
    content: NDArray[np.uint8],
    places: NDArray[np.int32],
    terms: NDArray[np.uint64],
    factors: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Fill in the bands of texts in UTF-8, which lie one after the other; return how many words each has."""
    counts = np.zeros(len(bands), np.int64)
    least = np.empty(len(terms), np.uint64)
    for row in range(len(bands)):
        least[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        word = last = before = np.uint64(0)
        count, at, stop = 0, places[row], places[row + 1]
        while at <= stop:
            byte = content[at] if at < stop else np.uint8(32)
            if byte == 0xE2 and at + 2 < stop and content[at + 1] == 0x80:
                byte = np.uint8(32)
                at += 2
            elif 65 <= byte <= 90:
                byte = np.uint8(byte + 32)
            at += 1
            if byte >= 128 or 97 <= byte <= 122 or 48 <= byte <= 57:
                word = (word ^ np.uint64(byte)) * np.uint64(0x100000001B3) + np.uint64(1)
            elif word:
                count += 1
                if count >= RUN:
                    run = _mixed(_mixed(_mixed(before) + last) + word)
                    for place in range(len(terms)):
                        least[place] = min(least[place], (run ^ terms[place]) * factors[place])
                before, last, word = last, word, np.uint64(0)
        counts[row] = count
        for band in range(bands.shape[1]):
            mixed = np.uint64(band)
            for place in range(band * PLACES, (band + 1) * PLACES):
                mixed = _mixed(mixed + least[place])
            bands[row, band] = mixed
    return counts
