"""Whether two records are of one work, such as a preprint and its published version: precision comes first.

| reason | the records have | and |
|---|---|---|
| doi | one DOI | titles that share half of their words, or one without a title, or abstracts that agree |
| title | one title | abstracts that agree; or else years at most one apart, and a telling title or one first author |
| abstract | near-equal abstracts | titles that share half of their words, or the same authors; years within three |

Titles that differ in a number, a numeral or a single letter (part I and part II, the reports of two years), and a
paper and what is about it (a correction, a comment, a reply), are never of one work. Abstracts agree if they share
enough runs of three words, measured on the shorter one, which may be cut off; and if they share their numbers, which
tell reports apart that are written alike.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cocite.core.text_ids import normalised
from cocite.corpus.word_runs import LEAST_WORDS, Shared

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
NO_NUMERALS = frozenset(("a", "s", "t"))
ABOUT_A_WORK = re.compile(
    r"^((authors?|publishers?|editorial) )?(correction|corrigend\w+|errat\w+|addend\w+|retraction)\b"
    r"|^((a|invited|editorial) )?(comments?|commentary|reply|replies|responses?|rejoinder|discussion) (on|to|of)\b"
    r"|^(guest editor|editorial|preface|foreword|obituary|in memoriam|book review|review of)"
    r"|^introduction to ((the|this) )?(special|theme)"
    r"|\b(correction|corrigendum|erratum|addendum|retraction|reply|rejoinder|book review)$"
)
"""Titles, normalised, of what is about a work or a volume. One of them is never the work itself."""
MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,60}>")


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
    title: str | None,
    year: int | None = None,
    doi: str | None = None,
    authors: Sequence[str] | None = None,
) -> Record:
    """A paper as it is compared; its DOI is in lowercase already."""
    words = title_words(title)
    about = ABOUT_A_WORK.search(" ".join(words))
    return Record(
        title="".join(words),
        telling=frozenset(words) - NOT_TELLING,
        markers=tuple(sorted(filter(_is_marker, words))),
        about=about.group() if about else "",
        doi=doi,
        year=year,
        authors=tuple(filter(None, map(_family, authors or ()))),
    )


def reason_of(one: Record, other: Record, abstracts: Shared, papers_with_title: int) -> str | None:
    """Why two records are of one work: doi, title or abstract; None if they are not, as far as can be told.

    `papers_with_title` is how many papers of the corpus have the title of both; it does not matter if theirs differ.
    """
    has_one_title = one.title == other.title != ""
    if not has_one_title and (one.markers, one.about) != (other.markers, other.about):
        return None
    telling = min(len(one.telling), len(other.telling))
    is_likely = telling >= (TELLING if _years_within(1, one, other) else VERY_TELLING)
    agree = _abstracts_agree(abstracts, LEAST_OVERLAP if is_likely else LEAST_OVERLAP_OF_UNLIKELY)
    titles_agree = has_one_title or _titles_agree(one, other)
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


def _titles_agree(one: Record, other: Record) -> bool:
    """Whether two titles share half of the telling words of the shorter one, and at least one."""
    fewer = min(len(one.telling), len(other.telling))
    return 2 * len(one.telling & other.telling) >= max(1, fewer)


def _one_title(one: Record, other: Record, agree: bool | None, papers_with_title: int) -> bool:
    """Whether two records of one title are of one work; `agree` is what their abstracts do, if they have any."""
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


def _is_marker(word: str) -> bool:
    return word in NUMERALS or not word.isalpha() or (len(word) == 1 and word not in NO_NUMERALS)


def _family(name: str) -> str:
    """The last word of the family name in `Ada Lovelace`, `Lovelace, A.` or `Lovelace A`."""
    words = normalised(name.partition(",")[0]).split()
    return next((word for word in reversed(words) if len(word) > 1), "".join(words[-1:]))
