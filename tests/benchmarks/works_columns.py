"""How many bytes of a file of works in Parquet a corpus needs, in how many requests they come, and what they become.

The works are generated with the columns of real ones and of their usual length: half of them have an abstract, and each
some ten references, a few authors, locations and topics.
"""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.measuring import say
from tests.corpus.made_openalex import inverted

from cocite.config.release_folder import DATASETS
from cocite.config.source import WorkFilters
from cocite.corpus.ingest.works import WorksSettings, ingest_files
from cocite.corpus.release import copies
from cocite.corpus.release.copies import FolderCopy, columns_downloaded
from cocite.corpus.release.manifest import Shard

GAPS = (0, 1 << 16, 1 << 20, 1 << 22)
WORKS = 100_000
PEOPLE = ("Ada Abel", "Bo Berg", "Carla Castro", "Dai Dong", "Eva Eriksen", "Femi Falana")


def main(folder: Path) -> None:
    """Print the bytes and the requests of each choice."""
    path = folder / "works.parquet"
    write_works(path, WORKS)
    _say_columns(path)
    copies.GAP = 0
    footer = copies.read_footer(FolderCopy(folder), path.name, path.stat().st_size)
    spans = copies.spans_of(footer, columns_downloaded(authors=False))
    _say_tables(path, sum(map(len, spans)), "the needed columns")
    packed = path.with_suffix(".gz")
    _say_tables(packed, packed.stat().st_size, "JSON Lines")


def _say_columns(path: Path) -> None:
    folder = path.parent
    size = path.stat().st_size
    footer = copies.read_footer(FolderCopy(folder), path.name, size)
    say(f"{WORKS} works in one row group have {size / 1e6:.1f} MB, and a footer of {len(footer)} bytes.")
    for authors, words in ((False, "without authors"), (True, "with authors")):
        names = columns_downloaded(authors=authors)
        for copies.GAP in GAPS:
            spans = copies.spans_of(footer, names)
            share = (len(footer) + sum(map(len, spans))) / size
            say(f"{words}, gaps of up to {copies.GAP} bytes: {share:.1%} of the file in {len(spans)} requests")


def _say_tables(path: Path, read: int, words: str) -> None:
    """Print how large the ingested tables are, given how many bytes are read of a file."""
    outputs = {name: path.parent / f"ingested-{name}" for name in DATASETS}
    settings = WorksSettings(filters=WorkFilters(), buckets=4, memory_mb=1500, threads=2)
    shard = Shard(name=path.name, bytes=path.stat().st_size)
    ingest_files(settings, path.parent, [shard], outputs, report=path.parent / "report")
    shares = {name: outputs[name].stat().st_size / read for name in DATASETS}
    say(f"As tables, {', '.join(f'{name} {share:.3f}' for name, share in shares.items())} of each byte of {words}")


def write_works(path: Path, count: int) -> None:
    """Write so many generated works as a copy has them, in Parquet and as JSON Lines."""
    random = Random(1)
    words = [f"{random.randrange(16**7):x}"[: random.randrange(2, 9)] for _ in range(40_000)]
    rows = [_work(random, words, number) for number in range(count)]
    pq.write_table(pa.Table.from_pylist(rows), path, compression="snappy", row_group_size=count)
    with gzip.open(path.with_suffix(".gz"), "wt", compresslevel=6) as lines:
        for row in rows:
            index = row["abstract_inverted_index"]
            lines.write(json.dumps(row | {"abstract_inverted_index": index and json.loads(index)}) + "\n")


def _work(random: Random, words: list[str], number: int) -> dict[str, Any]:
    def text(length: int) -> str:
        # Words of a language are not drawn alike: few are used most.
        return " ".join(words[int(random.paretovariate(0.8)) % len(words)] for _ in range(length))

    def url(kind: str) -> str:
        return f"https://openalex.org/{kind}{random.randrange(1_900_000_000, 4_400_000_000)}"

    def entity(kind: str) -> dict[str, Any]:
        return {"id": url(kind), "display_name": text(3).title()}

    institution = {**entity("I"), "ror": "https://ror.org/0abcd1234", "country_code": "DE", "type": "education"}
    author = {**entity("A"), "display_name": random.choice(PEOPLE), "orcid": None}
    authorship = {
        **{"author_position": "middle", "author": author, "institutions": [institution], "countries": ["DE"]},
        **{"is_corresponding": False, "raw_author_name": author["display_name"]},
        "raw_affiliation_strings": [text(12)],
        "affiliations": [{"raw_affiliation_string": text(12), "institution_ids": [institution["id"]]}],
    }
    page = f"https://doi.org/10.{random.randrange(9999)}/{random.randrange(10**9)}"
    source = {**entity("S"), "issn_l": "1234-5678", "issn": ["1234-5678"], "host_organization": url("P")}
    location = {"is_oa": True, "landing_page_url": page, "pdf_url": None, "source": source}
    location |= {"license": "cc-by", "version": "publishedVersion"}
    topic = {**entity("T"), "score": random.random()} | {
        name: entity(name[0]) for name in ("subfield", "field", "domain")
    }
    abstract = inverted(text(170)) if number % 2 else None
    title = text(12)
    return {
        **{"id": url("W"), "doi": page, "title": title, "display_name": title},
        **{"publication_year": random.randrange(1960, 2026), "publication_date": "2020-01-01"},
        "ids": {"openalex": url("W"), "doi": page, "mag": str(random.randrange(3 * 10**9))},
        **{"language": "en", "primary_location": location, "type": "article", "type_crossref": "journal-article"},
        **{"indexed_in": ["crossref"], "open_access": {"is_oa": True, "oa_status": "gold", "oa_url": page}},
        **{"authorships": [authorship] * random.randrange(1, 6), "cited_by_count": random.randrange(30)},
        "biblio": {"volume": "1", "issue": "2", "first_page": "3", "last_page": str(random.randrange(999))},
        **{"is_retracted": False, "is_paratext": False},
        **{"primary_topic": topic, "topics": [topic] * random.randrange(1, 4)},
        "keywords": [{**entity("keywords/"), "score": random.random()} for _ in range(4)],
        "concepts": [{**entity("C"), "wikidata": url("Q"), "level": 1, "score": random.random()} for _ in range(9)],
        "mesh": [{"descriptor_ui": "D000", "descriptor_name": text(2)}] if number % 5 == 0 else [],
        **{"locations": [location] * random.randrange(1, 3), "best_oa_location": location},
        "sustainable_development_goals": [{**entity("sdg/"), "score": 0.5}],
        **{"referenced_works_count": 10, "referenced_works": [url("W") for _ in range(random.randrange(21))]},
        "related_works": [url("W") for _ in range(10)],
        **{
            "abstract_inverted_index": abstract and json.dumps(abstract),
            "cited_by_api_url": url("works?filter=cites:W"),
        },
        "counts_by_year": [{"year": year, "cited_by_count": random.randrange(9)} for year in range(2018, 2026)],
        **{"updated_date": "2026-06-24T00:00:00.000000", "created_date": "2020-06-24"},
    }
