"""Whether two records are of one work, such as a preprint and its published version: precision comes first.

docs/twins.md has the signs that each reason needs. Abstracts are compared as sets of runs of three words, and by their
numbers. A MinHash signature (Broder, 1997) has the least hash of the runs under each of 80 functions: two abstracts
with the Jaccard index J agree in one of 16 bands of five positions with a probability of 1 − (1 − J⁵)¹⁶.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from cocite.core.randomness import generator, mix
from cocite.core.written_ids import normalised

SHARED_BY = 5
"""Papers that may have a title before it counts as common."""
LEAST_JACCARD = 0.8
"""Of the runs of two abstracts, for near-equal ones."""
LEAST_OVERLAP, LEAST_OVERLAP_OF_UNLIKELY = 0.2, 0.5
"""Share of the runs of the shorter abstract that agreeing ones have in common, if title and years make one work likely
and if not. In the releases hci and synergy, two versions of a work have .2 or more, except a few, and two works of one
title at most .12; in the demo, whose abstracts are written alike, two works of one title have up to .38."""
LEAST_RUNS = 10
"""Of an abstract that is compared at all."""
LEAST_NUMBERS = 3
"""Of an abstract whose numbers are compared."""
TELLING, VERY_TELLING = 4, 6
"""Telling words of a title that is enough together with the year, and of one for which abstracts may differ."""
YEARS_APART = 3

_NOT_TELLING = (
    "a about abstract abstracts acknowledgement acknowledgements acknowledgment acknowledgments after among an and "
    "announcement announcements annual appendix april are article articles as at august author authors be between "
    "board book books breaking brief but by call can case chair chairman chairperson chairs comment commentary "
    "comments committee conference contents contributors conversation correspondence cover december discussion do "
    "does during editor editorial editorials editors events february for foreword from front general guest has have "
    "highlights how i if in index information interview into introduction introductory is issue issues it its "
    "january journal july june keynote late letter letters list march matter may meeting memoriam message new news "
    "newsletter no not note notes november obituary october of on or oral other our over overview panel papers "
    "perspective poster posters preface presentation presentations president proceedings program programme "
    "publications reader readers recent report reports research review reviewer reviewers reviews s section selected "
    "september session sessions speaker speakers special study summary supplement symposium t table than thank "
    "thanks that the their theme this through to toward towards tutorial tutorials under using via volume was we "
    "welcome were what when which who why with within word workshop you your"
)
NOT_TELLING = frozenset(_NOT_TELLING.split())
"""Words that do not tell a work from others, in tables of contents and in any title."""
_NUMERALS = (
    "one two three four five six seven eight nine ten first second third fourth fifth sixth seventh eighth ninth "
    "tenth ii iii iv vi vii viii ix xi xii xiii xiv xv"
)
NUMERALS = frozenset(_NUMERALS.split())
NO_NUMERALS = ("a", "s", "t")
ABOUT_A_WORK = re.compile(
    r"^((authors?|publishers?|editorial) )?(correction|corrigend\w+|errat\w+|addend\w+|retraction)\b"
    r"|^((a|invited|editorial) )?(comments?|commentary|reply|replies|responses?|rejoinder|discussion) (on|to|of)\b"
    r"|^(guest editor|editorial|preface|foreword|obituary|in memoriam|book review|review of)"
    r"|^introduction to ((the|this) )?(special|theme)"
    r"|\b(correction|corrigendum|erratum|addendum|retraction|reply|rejoinder|book review)$"
)
"""Titles, normalised, of what is about a work or a volume. One of them is never the work itself."""
MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,60}>")

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


def compared(pairs: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], Shared]]:
    """The rows of some pairs without their columns abstract and other_abstract, and what these share."""
    columns = ["abstract", "other_abstract"]
    abstracts = shared_by(*(pairs[column].cast(pa.string()) for column in columns))
    return zip(pairs.drop_columns(columns).to_pylist(), abstracts, strict=True)


def _bytes_of(texts: pa.StringArray) -> Texts:
    _, places, content = texts.buffers()
    ends = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(content or b"", np.uint8), ends


@njit(nogil=True, cache=True)
def _words_of(text: NDArray[np.uint8]) -> tuple[Hashes, Hashes]:
    """The hashes of the words of a text, and of those among them that are numbers. A word is a run of ASCII letters
    without case, digits, and the bytes of other characters; dashes, quotes and other general punctuation (U+2000 to
    U+203F, in UTF-8 E2 80 and a third byte) end it."""
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
def _in_both(hashes: Hashes, others: Hashes) -> int:
    return len(hashes) + len(others) - len(np.unique(np.concatenate((hashes, others))))


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is compared of a paper."""

    title: str
    """Its letters and digits; empty if it has none."""
    telling: frozenset[str]
    """Words in the title that tell the work from others."""
    markers: tuple[str, ...]
    """Numbers, numerals and single letters in the title, sorted."""
    about: str
    """What kind of title it is if it is about a work; empty otherwise."""
    doi: str | None
    year: int | None
    authors: tuple[str, ...]
    """Family names, normalised; empty if unknown."""


def title_words(title: str | None) -> list[str]:
    """The words of a title as they are compared, without markup."""
    if title and ("&" in title or "<" in title):
        title = MARKUP.sub("", html.unescape(title)).replace("&", " and ")
    return normalised(title or "").split()


def record(
    title: str | None, year: int | None = None, doi: str | None = None, authors: Sequence[str] | None = None
) -> Record:
    """A paper as it is compared; its DOI is in lowercase already."""
    words = title_words(title)
    about = ABOUT_A_WORK.search(" ".join(words))
    markers = [
        word for word in words if word in NUMERALS or not word.isalpha() or (len(word) == 1 and word not in NO_NUMERALS)
    ]
    return Record(
        title="".join(words),
        telling=frozenset(words) - NOT_TELLING,
        markers=tuple(sorted(markers)),
        about=about.group() if about else "",
        doi=doi,
        year=year,
        authors=tuple(filter(None, map(_family, authors or ()))),
    )


def reason_of(one: Record, other: Record, abstracts: Shared, papers_with_title: int) -> str | None:
    """Why two records are of one work: doi, title or abstract; None if they are not, as far as can be told.
    `papers_with_title` is how many papers of the corpus have the title of both; it does not matter if theirs differ."""
    has_one_title = one.title == other.title != ""
    if not has_one_title and (one.markers, one.about) != (other.markers, other.about):
        return None
    telling = min(len(one.telling), len(other.telling))
    is_likely = telling >= (TELLING if _years_within(1, one, other) else VERY_TELLING)
    agree = _abstracts_agree(abstracts, LEAST_OVERLAP if is_likely else LEAST_OVERLAP_OF_UNLIKELY)
    titles_agree = has_one_title or 2 * len(one.telling & other.telling) >= max(1, telling)
    lacks_title = not (one.title and other.title)
    if one.doi and one.doi == other.doi and (titles_agree or lacks_title or agree):
        return "doi"
    if has_one_title:
        return "title" if _one_title(one, other, agree, papers_with_title) else None
    is_near = agree and abstracts.words >= LEAST_WORDS and (jaccard(abstracts) or 0.0) >= LEAST_JACCARD
    has_sign = titles_agree or one.authors == other.authors != ()
    return "abstract" if is_near and has_sign and _years_within(YEARS_APART, one, other) else None


def jaccard(abstracts: Shared) -> float | None:
    """The Jaccard index of the runs of two abstracts; None if they cannot be compared."""
    runs, other_runs, shared = abstracts.runs, abstracts.other_runs, abstracts.shared_runs
    return shared / (runs + other_runs - shared) if min(runs, other_runs) >= LEAST_RUNS else None


def _one_title(one: Record, other: Record, agree: bool | None, papers_with_title: int) -> bool:
    """Whether two records of one title are of one work; `agree` is whether their abstracts do, None without any."""
    if agree or one.about:
        return bool(agree)
    telling, years_agree = len(one.telling), _years_within(1, one, other)
    if one.authors and other.authors:
        if not {*one.authors} & {*other.authors}:
            return False
        if one.authors[0] == other.authors[0] and telling >= (2 if agree is None else TELLING):
            return years_agree
    enough = TELLING if agree is None else VERY_TELLING
    return years_agree and telling >= enough and papers_with_title <= SHARED_BY


def _abstracts_agree(abstracts: Shared, least_overlap: float) -> bool | None:
    """Whether two abstracts are of one work; None if they cannot be compared."""
    fewer = min(abstracts.runs, abstracts.other_runs)
    if fewer < LEAST_RUNS:
        return None
    if abstracts.numbers >= LEAST_NUMBERS and 2 * abstracts.shared_numbers < abstracts.numbers:
        return False
    return abstracts.shared_runs >= least_overlap * fewer


def _years_within(most: int, one: Record, other: Record) -> bool:
    """Whether two years are at most so many apart, or one is unknown."""
    return one.year is None or other.year is None or abs(one.year - other.year) <= most


def _family(name: str) -> str:
    """The last word of the family name in `Ada Lovelace`, `Lovelace, A.` or `Lovelace A`."""
    words = normalised(name.partition(",")[0]).split()
    return next((word for word in reversed(words) if len(word) > 1), "".join(words[-1:]))
