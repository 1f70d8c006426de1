"""The records of a generated release, with the fields and types of a release of 2026.

They have the flaws of real releases: references that were never resolved (null cited ids), several copies of a
citation that disagree on its influence, contexts and intents on few rows, papers without abstract, titles that are
null or empty, and unknown years and fields.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from cocite.demo.literature import Literature
from cocite.demo.prose import Writer
from cocite.demo.shards import Record
from cocite.ground.randomness import generator

INTENTS = ("background", "methodology", "result")
_UNRESOLVED_SHARE = 0.15
_REPEATED_SHARE = 0.2
_CONTEXT_SHARE = 0.2
_NO_ABSTRACT_SHARE = 0.06
_TITLELESS_EVERY = 300
_FIRST_CITATION_ID = 10_000_000
_FIRST_NAMES = ("Ada", "Chen", "Emil", "Goro", "Ivo", "Kofi", "Mira", "Otto", "Ravi", "Tomas")
_LAST_NAMES = ("Abel", "Castell", "Ekholm", "Hoshida", "Kovac", "Moreau", "Okoye", "Petrov", "Varga")


def citation_records(
    literature: Literature, references: list[list[int]], influential: set[tuple[int, int]], seed: int
) -> Iterator[Record]:
    """The rows of `citations`: every citation once or twice, and references whose cited paper is unknown.

    The citations of which some copy is influential are added to `influential` on the way, as pairs of paper numbers.
    """
    rng = generator(seed, "demo", "citation records")
    writer = Writer(literature, rng)
    number = _FIRST_CITATION_ID
    for citing in literature.recorded:
        cited = references[citing]
        again = [paper for paper in cited if rng.random() < _REPEATED_SHARE]
        rows = len(cited) + len(again)
        unresolved = int(rng.binomial(rows, _UNRESOLVED_SHARE / (1 - _UNRESOLVED_SHARE)))
        for paper in [*cited, *again, *[None] * unresolved]:
            is_influential = bool(rng.random() < 0.1)
            if is_influential and paper is not None:
                influential.add((citing, paper))
            yield {
                "citationid": number,
                "citingcorpusid": int(literature.corpusid[citing]),
                "citedcorpusid": None if paper is None else int(literature.corpusid[paper]),
                "isinfluential": is_influential,
                **_contexts(citing if paper is None else paper, writer, rng),
            }
            number += 1


def paper_records(
    literature: Literature, references: list[list[int]], influential: set[tuple[int, int]], seed: int
) -> Iterator[Record]:
    """The rows of `papers`, with true counts of their references and citations."""
    rng = generator(seed, "demo", "paper records")
    writer = Writer(literature, rng)
    citations = Counter(paper for cited in references for paper in cited)
    influences = Counter(cited for _, cited in influential)
    for paper in literature.recorded:
        corpusid, time = int(literature.corpusid[paper]), float(literature.time[paper])
        venue = _venue(literature, paper, rng)
        fields = [{"category": field, "source": "s2-fos-model"} for field in literature.fields(paper)]
        yield {
            "corpusid": corpusid,
            "externalids": _external_ids(corpusid),
            "url": f"https://example.org/paper/{corpusid}",
            "title": _title(literature, paper, writer),
            "authors": [_author(int(author)) for author in literature.authors[paper]],
            "venue": venue,
            "publicationvenueid": None,
            "year": None if rng.random() < 0.01 else int(time),
            "referencecount": len(references[paper]),
            "citationcount": citations[paper],
            "influentialcitationcount": influences[paper],
            "isopenaccess": bool(rng.random() < 0.4),
            "s2fieldsofstudy": None if rng.random() < 0.02 else fields,
            "publicationtypes": ["JournalArticle"] if rng.random() < 0.6 else None,
            "publicationdate": _date(time) if rng.random() < 0.6 else None,
            "journal": {"name": venue, "pages": None, "volume": str(int(time) - 1980)} if venue else None,
        }


def abstract_records(literature: Literature, seed: int) -> Iterator[Record]:
    """The rows of `abstracts`, of the papers that have one."""
    rng = generator(seed, "demo", "abstract records")
    writer = Writer(literature, rng)
    for paper in literature.recorded:
        if rng.random() >= _NO_ABSTRACT_SHARE:
            corpusid = int(literature.corpusid[paper])
            access = {"externalids": _external_ids(corpusid), "license": None, "url": None, "status": None}
            yield {"corpusid": corpusid, "openaccessinfo": access, "abstract": writer.abstract(paper)}


def _contexts(cited: int, writer: Writer, rng: np.random.Generator) -> Record:
    """Citing sentences and, aligned with them, their intents (a list each, or null where none was recognised)."""
    if rng.random() >= _CONTEXT_SHARE:
        return {"contexts": None, "intents": None}
    sentences = [writer.context(cited) for _ in range(rng.integers(1, 4))]
    recognised = [sorted(rng.choice(INTENTS, size=rng.integers(1, 3), replace=False).tolist()) for _ in sentences]
    return {"contexts": sentences, "intents": [intents if rng.random() < 0.8 else None for intents in recognised]}


def _title(literature: Literature, paper: int, writer: Writer) -> str | None:
    place = paper - literature.unrecorded
    if place % _TITLELESS_EVERY == _TITLELESS_EVERY // 2:
        return None if place // _TITLELESS_EVERY % 2 else ""
    return writer.title(paper)


def _venue(literature: Literature, paper: int, rng: np.random.Generator) -> str:
    """A journal of the paper's topic, one of its field, or none."""
    topic = literature.topics[literature.topic[paper]]
    choice = rng.random()
    return f"Journal of {topic.name.title()}" if choice < 0.7 else f"{topic.field} Letters" if choice < 0.95 else ""


def _external_ids(corpusid: int) -> dict[str, str | None]:
    doi = f"10.5555/demo.{corpusid}" if corpusid % 10 < 7 else None
    unknown = dict.fromkeys(("ACL", "DBLP", "ArXiv", "MAG"))
    return {**unknown, "CorpusId": str(corpusid), "PubMed": None, "DOI": doi, "PubMedCentral": None}


def _author(number: int) -> dict[str, str]:
    first, last = _FIRST_NAMES[number % len(_FIRST_NAMES)], _LAST_NAMES[number // len(_FIRST_NAMES) % len(_LAST_NAMES)]
    return {"authorId": str(50_000 + number), "name": f"{first} {last}"}


def _date(time: float) -> str:
    year = int(time)
    return str(date(year, 1, 1) + timedelta(days=int((time - year) * 365)))
