"""Abstracts as sets of three-word runs: signatures that near-duplicates share, and the similarity of two.

A MinHash signature (Broder, 1997) has the least hash of all runs under each of 80 functions. Two abstracts agree at a
position of it with a probability equal to the Jaccard index J of their runs, and in one of 16 bands of five positions
with 1 − (1 − J⁵)¹⁶: .998 for J = .8, .0002 for J = .1. Libraries for this (datasketch, rensa) keep their index in
memory; here a text has 16 numbers, which DuckDB groups and spills.

Words are told apart in bytes: ASCII letters without case, digits, and the bytes of all other characters but dashes,
quotes and other general punctuation. A word is the hash of its bytes, and a run that of its words.
"""

from typing import Any, NamedTuple

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
_mixed: Any = njit(nogil=True, cache=True)(mix)

Hashes = NDArray[np.uint64]
Texts = tuple[NDArray[np.uint8], NDArray[np.int32]]
"""The bytes of texts one after the other, and where each starts, with the end."""


class Shared(NamedTuple):
    """What two abstracts have and share; words, runs and numbers are distinct, but for `words`."""

    words: int
    """Words of the shorter one."""
    runs: int
    other_runs: int
    shared_runs: int
    numbers: int
    """Numbers of the one that has fewer."""
    shared_numbers: int


def bands_of(abstracts: pa.StringArray) -> tuple[Hashes, NDArray[np.bool_]]:
    """The bands of each abstract, rows × `BANDS`, and which abstracts are long enough to have any."""
    bands = np.zeros((len(abstracts), BANDS), np.uint64)
    words = _fill_bands(bands, _bytes_of(abstracts), _TERMS, _FACTORS)
    return bands, words >= LEAST_WORDS


def shared_by(ones: pa.StringArray, others: pa.StringArray) -> list[Shared]:
    """What each abstract of the first shares with that of the second; a missing one has no words."""
    return [Shared(*row) for row in _compare(_bytes_of(ones), _bytes_of(others)).tolist()]


def _bytes_of(texts: pa.StringArray) -> Texts:
    _, places, content = texts.buffers()
    ends = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(content or b"", np.uint8), ends


@njit(nogil=True, cache=True)
def _words_of(text: NDArray[np.uint8]) -> tuple[Hashes, Hashes]:
    """The words of a text, and those among them that are numbers."""
    words, numbers = np.empty(len(text) // 2 + 1, np.uint64), np.empty(len(text) // 2 + 1, np.uint64)
    word, is_number, at, count, of_numbers = np.uint64(0), True, 0, 0, 0
    while at <= len(text):
        byte = text[at] if at < len(text) else np.uint8(32)
        if byte == 0xE2 and at + 2 < len(text) and text[at + 1] == 0x80:
            byte = np.uint8(32)
            at += 2
        elif 65 <= byte <= 90:
            byte = np.uint8(byte + 32)
        at += 1
        is_digit = bool(48 <= byte <= 57)
        if is_digit or byte >= 128 or 97 <= byte <= 122:
            word = (word ^ np.uint64(byte)) * np.uint64(0x100000001B3) + np.uint64(1)
            is_number = is_number and is_digit
        elif word:
            words[count] = word
            count += 1
            if is_number:
                numbers[of_numbers] = word
                of_numbers += 1
            word, is_number = np.uint64(0), True
    return words[:count], numbers[:of_numbers]


@njit(nogil=True, cache=True)
def _runs_of(words: Hashes) -> Hashes:
    runs = np.empty(max(0, len(words) - RUN + 1), np.uint64)
    for first in range(len(runs)):
        run = np.uint64(0)
        for place in range(first, first + RUN):
            run = _mixed(run + words[place])
        runs[first] = run
    return runs


@njit(nogil=True, cache=True)
def _fill_bands(bands: Hashes, texts: Texts, terms: Hashes, factors: Hashes) -> NDArray[np.int64]:
    """Fill in the bands of texts; return how many words each has."""
    content, ends = texts
    counts, least = np.zeros(len(bands), np.int64), np.empty(len(terms), np.uint64)
    for row in range(len(bands)):
        words, _ = _words_of(content[ends[row] : ends[row + 1]])
        counts[row] = len(words)
        least[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for run in _runs_of(words):
            for place in range(len(terms)):
                least[place] = min(least[place], (run ^ terms[place]) * factors[place])
        for place in range(len(terms)):
            bands[row, place // PLACES] = _mixed(bands[row, place // PLACES] + least[place])
    return counts


@njit(nogil=True, cache=True)
def _compare(ones: Texts, others: Texts) -> NDArray[np.int64]:
    """Of each pair of texts, a row for `Shared`."""
    rows = np.zeros((len(ones[1]) - 1, 6), np.int64)
    for row in range(len(rows)):
        words, numbers = _words_of(ones[0][ones[1][row] : ones[1][row + 1]])
        other_words, other_numbers = _words_of(others[0][others[1][row] : others[1][row + 1]])
        rows[row, 0] = min(len(words), len(other_words))
        runs, other_runs = np.unique(_runs_of(words)), np.unique(_runs_of(other_words))
        rows[row, 1], rows[row, 2], rows[row, 3] = len(runs), len(other_runs), _in_both(runs, other_runs)
        numbers, other_numbers = np.unique(numbers), np.unique(other_numbers)
        rows[row, 4], rows[row, 5] = min(len(numbers), len(other_numbers)), _in_both(numbers, other_numbers)
    return rows


@njit(nogil=True, cache=True)
def _in_both(rising: Hashes, others: Hashes) -> int:
    """How many numbers are in both of two arrays, which rise."""
    at = other_at = count = 0
    while at < len(rising) and other_at < len(others):
        if rising[at] < others[other_at]:
            at += 1
        elif rising[at] > others[other_at]:
            other_at += 1
        else:
            at, other_at, count = at + 1, other_at + 1, count + 1
    return count
