"""Writes a generated release: a folder in the layout of a real one, as downloaded from the Datasets API.

    <folder>/release.json                                      id, datasets, true counts
    <folder>/<dataset>/<date>_<time>_<shard>_<dataset>.gz      gzipped JSON Lines
    <folder>/<dataset>/README.txt

The same options give the same bytes. Rows are written as they are made, and dealt out to the shards in turn: read back
in turn, they have their order, so that results do not depend on the number of shards. Records have the fields and
types of a release of 2026, and the flaws of real ones: references that were never resolved (null cited ids), several
copies of a citation that disagree on its influence, and missing contexts, abstracts, titles, years and fields. A
sentence that cites several papers is in the record of each.
"""

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date, timedelta
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import numpy as np
import typer

from cocite.config.release_folder import find_shards, unpacked
from cocite.core.atomic import atomic_path, write_json, write_text
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed
from cocite.core.randomness import generator
from cocite.demo.literature import Literature, Writer, cite_literature, generate_literature

Record = dict[str, Any]

_UNRESOLVED_SHARE = 0.15
_REPEATED_SHARE = 0.2
_CONTEXT_SHARE = 0.6
_SHARED_SHARE = 0.25
"""Share of the neighbouring references of one topic that a sentence cites together."""
_NO_ABSTRACT_SHARE = 0.06
_TITLELESS_EVERY = 300
_FIRST_CITATION_ID = 10_000_000
_FIRST_NAMES = ("Ada", "Chen", "Emil", "Goro", "Ivo", "Kofi", "Mira", "Otto", "Ravi", "Tomas")
_LAST_NAMES = ("Abel", "Castell", "Ekholm", "Hoshida", "Kovac", "Moreau", "Okoye", "Petrov", "Varga")
_README = """\
{description}

This is generated data. No such paper was ever written: titles, abstracts, authors and citations were drawn at random,
with topics, so that citations and texts have something to do with each other. It has the layout, the fields and the
flaws of the Semantic Scholar Academic Graph's dataset "{name}" and serves to try out programs that read it.

Files are gzipped JSON Lines, one record per line. The data may be used freely.
"""
_DESCRIPTIONS = {
    "papers": "Generated papers: title, authors, year, venue, fields of study, counts of citations and references.",
    "abstracts": "Generated abstracts of those papers that have one.",
    "citations": "Generated citations between papers, some of them in several copies, some to unknown papers.",
}


def generate_release(
    output: Output,
    *,
    release: Annotated[str, typer.Option(help="Id of the release, a date.")],
    papers: Annotated[int, typer.Option(help="Number of papers.")],
    topics: Annotated[int, typer.Option(help="Number of topics that texts and citations follow.")],
    shards: Annotated[int, typer.Option(help="Shards of each dataset.")],
    seed: Seed,
) -> None:
    """Write a generated release, each dataset in several shards.

    Raises `InputError` if the release is not a date, or there are too few papers or too many topics.
    """
    try:
        day = date.fromisoformat(release)
    except ValueError:
        raise InputError(f"--release: {release!r} is not a date such as 2026-01-06.") from None
    if papers < 1 or shards < 1:
        raise InputError(f"--papers and --shards: are {papers} and {shards}, must be at least 1.")
    literature = generate_literature(papers, topics, day.year - 1, seed)
    references = cite_literature(literature, seed)
    influential: set[tuple[int, int]] = set()
    rows = {
        "citations": _citation_records(literature, references, influential, seed),
        "papers": _paper_records(literature, references, influential, seed),
        "abstracts": _abstract_records(literature, seed),
    }
    counts: dict[str, int] = {}
    with atomic_path(output) as folder:
        for name, records in rows.items():
            write_text(folder / name / "README.txt", _README.format(name=name, description=_DESCRIPTIONS[name]))
            counts[name] = write_rows(records, shard_paths(folder / name, day, shards))
        counts["citations"] = sum(map(len, references))
        write_json(folder / "release.json", {"release_id": release, "datasets": list(_DESCRIPTIONS), **counts})


def _citation_records(
    literature: Literature, references: list[list[int]], influential: set[tuple[int, int]], seed: int
) -> Iterator[Record]:
    """Every citation once or twice, and references whose cited paper is unknown.

    The citations of which some copy is influential are added to `influential` on the way, as pairs of paper numbers.
    """
    rng = generator(seed, "demo", "citation records")
    writer = Writer(literature, rng)
    # With a separate generator, these sentences leave all else as it was before they were added.
    shared_rng = generator(seed, "demo", "sentences that cite several papers")
    shared_writer = Writer(literature, shared_rng)
    number = _FIRST_CITATION_ID
    for citing in literature.recorded:
        cited = references[citing]
        again = [paper for paper in cited if rng.random() < _REPEATED_SHARE]
        shared: dict[int | None, str] = {}
        for one, other in pairwise(sorted(cited, key=lambda paper: (int(literature.topic[paper]), paper))):
            if literature.topic[one] == literature.topic[other] and shared_rng.random() < _SHARED_SHARE:
                shared[other] = shared.setdefault(one, shared_writer.sentence("shared_contexts", one))
        unresolved = int(rng.binomial(len(cited) + len(again), _UNRESOLVED_SHARE / (1 - _UNRESOLVED_SHARE)))
        for paper in [*cited, *again, *[None] * unresolved]:
            is_influential = bool(rng.random() < 0.1)
            if is_influential and paper is not None:
                influential.add((citing, paper))
            contexts, intents = _contexts(literature, citing, paper, writer, rng)
            if paper in shared:
                contexts.append(shared[paper])
                intents.append(None)
            yield {
                "citationid": number,
                "citingcorpusid": int(literature.corpusid[citing]),
                "citedcorpusid": None if paper is None else int(literature.corpusid[paper]),
                "isinfluential": is_influential,
                "contexts": contexts or None,
                "intents": intents or None,
            }
            number += 1


def _contexts(
    literature: Literature, citing: int, cited: int | None, writer: Writer, rng: np.random.Generator
) -> tuple[list[str], list[list[str] | None]]:
    """Citing sentences and their intents (a list each, or null if none was recognised)."""
    if rng.random() >= _CONTEXT_SHARE:
        return [], []
    about = citing if cited is None else cited
    sentences = [writer.sentence("contexts", about) for _ in range(rng.integers(1, 4))]
    shared = [] if cited is None else literature.intents(citing, cited)
    return sentences, [shared or None] * len(sentences)


def _paper_records(
    literature: Literature, references: list[list[int]], influential: set[tuple[int, int]], seed: int
) -> Iterator[Record]:
    """Every paper, with true counts of its references and citations."""
    rng = generator(seed, "demo", "paper records")
    writer = Writer(literature, rng)
    citations = Counter(paper for cited in references for paper in cited)
    influences = Counter(cited for _, cited in influential)
    for place, paper in enumerate(literature.recorded):
        corpusid, time = int(literature.corpusid[paper]), float(literature.time[paper])
        year, topic, choice = int(time), literature.topics[literature.topic[paper]], rng.random()
        venue = (
            f"Journal of {topic.name.title()}" if choice < 0.7 else f"{topic.field} Letters" if choice < 0.95 else ""
        )
        if place % _TITLELESS_EVERY == _TITLELESS_EVERY // 2:
            title = None if place // _TITLELESS_EVERY % 2 else ""
        else:
            title = writer.sentence("titles", paper)
        fields = [{"category": field, "source": "s2-fos-model"} for field in literature.fields(paper)]
        day = date(year, 1, 1) + timedelta(days=int((time - year) * 365))
        yield {
            "corpusid": corpusid,
            "externalids": _external_ids(corpusid),
            "url": f"https://example.org/paper/{corpusid}",
            "title": title,
            "authors": [
                {"authorId": str(50_000 + author), "name": _name(author)} for author in literature.authors[paper]
            ],
            "venue": venue,
            "publicationvenueid": None,
            "year": None if rng.random() < 0.01 else year,
            "referencecount": len(references[paper]),
            "citationcount": citations[paper],
            "influentialcitationcount": influences[paper],
            "isopenaccess": bool(rng.random() < 0.4),
            "s2fieldsofstudy": None if rng.random() < 0.02 else fields,
            "publicationtypes": ["JournalArticle"] if rng.random() < 0.6 else None,
            "publicationdate": str(day) if rng.random() < 0.6 else None,
            "journal": {"name": venue, "pages": None, "volume": str(year - 1980)} if venue else None,
        }


def _abstract_records(literature: Literature, seed: int) -> Iterator[Record]:
    """Most papers; the others have no abstract."""
    rng = generator(seed, "demo", "abstract records")
    writer = Writer(literature, rng)
    for paper in literature.recorded:
        if rng.random() >= _NO_ABSTRACT_SHARE:
            corpusid = int(literature.corpusid[paper])
            access = {"externalids": _external_ids(corpusid), "license": None, "url": None, "status": None}
            yield {"corpusid": corpusid, "openaccessinfo": access, "abstract": writer.abstract(paper)}


def _external_ids(corpusid: int) -> dict[str, str | None]:
    doi = f"10.5555/demo.{corpusid}" if corpusid % 10 < 7 else None
    unknown = dict.fromkeys(("ACL", "DBLP", "ArXiv", "MAG"))
    return {**unknown, "CorpusId": str(corpusid), "PubMed": None, "DOI": doi, "PubMedCentral": None}


def _name(author: int) -> str:
    last, first = divmod(author, len(_FIRST_NAMES))
    return f"{_FIRST_NAMES[first]} {_LAST_NAMES[last % len(_LAST_NAMES)]}"


def shard_paths(folder: Path, day: date, shards: int) -> list[Path]:
    """The paths of the shards of the dataset in `folder`, named as real ones are."""
    return [folder / f"{day:%Y%m%d}_000000_{shard:05}_{folder.name}.gz" for shard in range(shards)]


def write_rows(rows: Iterable[Record], shards: Sequence[Path]) -> int:
    """Write rows as they come, dealt out to the shards in turn; return their number."""
    written = 0
    with ExitStack() as stack:
        files = []
        for path in shards:
            raw = stack.enter_context(path.open("wb"))
            # Without a name and time in the header, equal content gives equal bytes.
            packed = stack.enter_context(gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0))
            files.append(stack.enter_context(io.TextIOWrapper(packed, encoding="utf-8")))
        for row in rows:
            files[written % len(files)].write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
            written += 1
    return written


def read_rows(folder: Path) -> Iterator[Record]:
    """The rows of a dataset's folder in the order in which they were dealt out.

    Raises `InputError` if the folder has no shard.
    """
    shards = find_shards(folder)
    if not shards:
        raise InputError(f"{folder}: contains no shard of a release.")
    with ExitStack() as stack:
        unpacked_shards = (cast("BinaryIO", unpacked(shard)) for shard in shards)
        files = [stack.enter_context(io.TextIOWrapper(file, encoding="utf-8-sig")) for file in unpacked_shards]
        for lines in zip_longest(*files, fillvalue=""):
            yield from (json.loads(line) for line in lines if line.strip())
