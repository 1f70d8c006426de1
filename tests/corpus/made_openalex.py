"""A corpus as a copy of OpenAlex: Semantic Scholar's records made into works, in each of the layouts of a copy.

A work has more than a corpus needs, as a real one does: other entities, nested lists, texts with escapes.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Record = dict[str, Any]

DATE = "2026-06-24"
"""The day of a copy, and of works that say of no other day that they changed on it."""
FOLDERS = {"jsonl": "data/jsonl", "parquet": "data/parquet", "legacy": "data"}
"""Layout → the folder of its entities in the bucket."""

_URL = pa.string()
_FIELD = pa.struct({"id": _URL, "display_name": pa.string()})
_TOPIC = pa.struct({"id": _URL, "display_name": pa.string(), "score": pa.float64(), "field": _FIELD})
_SOURCE = pa.struct({"id": _URL, "display_name": pa.string(), "type": pa.string()})
_LOCATION = pa.struct({"is_oa": pa.bool_(), "landing_page_url": pa.string(), "source": _SOURCE})
_AUTHOR = pa.struct({"id": _URL, "display_name": pa.string(), "orcid": pa.string()})
SCHEMA = pa.schema(
    {
        "id": _URL,
        "doi": pa.string(),
        "title": pa.string(),
        "display_name": pa.string(),
        "publication_year": pa.int32(),
        "publication_date": pa.string(),
        "type": pa.string(),
        "language": pa.string(),
        "is_retracted": pa.bool_(),
        "is_paratext": pa.bool_(),
        "cited_by_count": pa.int64(),
        "ids": pa.struct({"openalex": pa.string(), "doi": pa.string(), "mag": pa.string(), "pmid": pa.string()}),
        "primary_location": _LOCATION,
        "locations": pa.list_(_LOCATION),
        "authorships": pa.list_(pa.struct({"author_position": pa.string(), "author": _AUTHOR})),
        "primary_topic": _TOPIC,
        "topics": pa.list_(_TOPIC),
        "counts_by_year": pa.list_(pa.struct({"year": pa.int32(), "cited_by_count": pa.int32()})),
        "related_works": pa.list_(_URL),
        "referenced_works_count": pa.int32(),
        "referenced_works": pa.list_(_URL),
        "abstract_inverted_index": pa.string(),
        "updated_date": pa.string(),
    }
)
"""The columns of the Parquet files."""


def works_of(papers: Sequence[Record], abstracts: Sequence[Record], citations: Sequence[Record]) -> list[Record]:
    """The records of three datasets of Semantic Scholar as works, a work a paper.

    Only what both sides can say comes through: the abstracts and the citations of these papers, of citations the ids.
    """
    texts = {record["corpusid"]: record["abstract"] for record in abstracts}
    cited = defaultdict(list)
    for record in citations:
        cited[record["citingcorpusid"]].append(record["citedcorpusid"])
    return [
        work(
            paper["corpusid"],
            title=paper.get("title"),
            year=paper.get("year"),
            publication_date=paper.get("publicationdate"),
            venue=paper.get("venue"),
            fields=[field["category"] for field in paper.get("s2fieldsofstudy") or []],
            doi=(paper.get("externalids") or {}).get("DOI"),
            mag=(paper.get("externalids") or {}).get("MAG"),
            citation_count=paper.get("citationcount"),
            authors=[author["name"] for author in paper.get("authors") or []],
            abstract=texts.get(paper["corpusid"]),
            references=cited[paper["corpusid"]],
        )
        for paper in papers
    ]


def work(
    number: int,
    *,
    title: str | None = "A title",
    year: int | None = 2020,
    venue: str | None = None,
    fields: Sequence[str] = (),
    doi: str | None = None,
    mag: str | None = None,
    citation_count: int | None = 0,
    authors: Sequence[str] = (),
    abstract: str | None = None,
    references: Sequence[int] = (),
    **others: Any,
) -> Record:
    """A work; `others` replaces keys of the record."""
    location = {"is_oa": True, "landing_page_url": f"https://example.org/{number}", "source": _source(venue)}
    topics = [_topic(name, rank) for rank, name in enumerate(fields)]
    return {
        "id": url_of(number),
        "doi": doi and f"https://doi.org/{doi}",
        "title": title,
        "display_name": title,
        "publication_year": year,
        "publication_date": year and f"{year}-01-01",
        "type": "article",
        "language": "en",
        "is_retracted": False,
        "is_paratext": False,
        "cited_by_count": citation_count,
        "ids": {"openalex": url_of(number), "doi": doi and f"https://doi.org/{doi}", "mag": mag, "pmid": None},
        "primary_location": location,
        "locations": [location, {"is_oa": False, "landing_page_url": None, "source": None}],
        "authorships": [_authorship(name, rank) for rank, name in enumerate(authors)],
        "primary_topic": topics[0] if topics else None,
        "topics": topics,
        "counts_by_year": [{"year": 2025, "cited_by_count": 1}],
        "related_works": [url_of(number + 1)],
        "referenced_works_count": len(references),
        "referenced_works": [url_of(reference) for reference in references],
        "abstract_inverted_index": inverted(abstract),
        "updated_date": DATE,
    } | others


def url_of(number: int) -> str:
    """The id of a work."""
    return f"https://openalex.org/W{number}"


def inverted(text: str | None) -> dict[str, list[int]] | None:
    """Where each word of a text stands, words being what lies between single blanks."""
    if text is None:
        return None
    index = defaultdict(list)
    for position, word in enumerate(text.split(" ")):
        index[word].append(position)
    return dict(index)


def write_copy(bucket: Path, layout: str, works: Sequence[Record], *, per_file: int = 100) -> Path:
    """Write a copy of OpenAlex as the bucket holds it, a partition for each `updated_date`; return its manifest.

    `layout` is jsonl, parquet or legacy. Beside the works there is an author, who is of no use to a corpus.
    """
    root = bucket / FOLDERS[layout]
    partitions = defaultdict(list)
    for each in works:
        partitions[each["updated_date"][:10]].append(each)
    files = {}
    for day, changed in sorted(partitions.items()):
        for first in range(0, len(changed), per_file):
            rows = changed[first : first + per_file]
            files[_write(root / "works" / f"updated_date={day}", layout, first // per_file, rows)] = len(rows)
    author = [{"id": "https://openalex.org/A5023888391", "display_name": "Ada Abel", "updated_date": DATE}]
    authors = {_write(root / "authors" / f"updated_date={DATE}", layout, 0, author): 1}
    entities = {"works": files, "authors": authors}
    for entity, counted in entities.items():
        path = root / entity / ("manifest" if layout == "legacy" else "manifest.json")
        path.write_text(json.dumps(_manifest(bucket, layout, {entity: counted})))
    if layout == "legacy":
        return root / "works" / "manifest"
    (root / "manifest.json").write_text(json.dumps(_manifest(bucket, layout, entities)))
    return root / "manifest.json"


def _write(folder: Path, layout: str, number: int, rows: Sequence[Record]) -> Path:
    """One file of records."""
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "parquet":
        path = folder / f"part_{number:04}.parquet"
        write_parquet(path, rows)
        return path
    path = folder / (f"part_{number:03}.gz" if layout == "legacy" else f"part_{number:04}.gz")
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def write_parquet(path: Path, rows: Sequence[Record], *, schema: pa.Schema = SCHEMA, per_group: int = 50) -> None:
    """Write works in Parquet; an inverted index that is no text yet becomes one, of JSON."""
    table = pa.Table.from_pylist([row | {"abstract_inverted_index": _as_text(row)} for row in rows], schema)
    pq.write_table(table, path, compression="snappy", row_group_size=per_group)


def _as_text(row: Record) -> str | None:
    index = row.get("abstract_inverted_index")
    return index if index is None or isinstance(index, str) else json.dumps(index)


def _manifest(bucket: Path, layout: str, entities: Mapping[str, Mapping[Path, int]]) -> Record:
    """What a copy says of its files."""
    listed = [
        {
            "entity": entity,
            "files": [
                {
                    "url": f"s3://openalex/{path.relative_to(bucket)}",
                    "meta": {"content_length": path.stat().st_size, "record_count": records},
                }
                for path, records in files.items()
            ],
        }
        for entity, files in entities.items()
    ]
    if layout == "legacy":
        return {"entries": [file for each in listed for file in each["files"]]}
    return {"date": DATE, "format": layout, "entities": listed}


def _source(venue: str | None) -> Record | None:
    return venue and {"id": "https://openalex.org/S1", "display_name": venue, "type": "journal"}


def _topic(field: str, rank: int) -> Record:
    named = {"id": f"https://openalex.org/fields/{rank}", "display_name": field}
    return {"id": f"https://openalex.org/T{rank}", "display_name": f"Studies of {field}", "score": 0.9, "field": named}


def _authorship(name: str, rank: int) -> Record:
    author = {"id": f"https://openalex.org/A{rank}", "display_name": name, "orcid": None}
    return {"author_position": "first" if rank == 0 else "middle", "author": author}
