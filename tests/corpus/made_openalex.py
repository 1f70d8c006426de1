"""A copy of OpenAlex: works, in each of its layouts.

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

_TEXT, _NUMBER, _YES = pa.string(), pa.int32(), pa.bool_()
_FIELD = pa.struct({"id": _TEXT, "display_name": _TEXT})
_TOPIC = pa.struct({"id": _TEXT, "display_name": _TEXT, "score": pa.float64(), "field": _FIELD})
_SOURCE = pa.struct({"id": _TEXT, "display_name": _TEXT, "type": _TEXT})
_LOCATION = pa.struct({"is_oa": _YES, "landing_page_url": _TEXT, "source": _SOURCE})
_AUTHOR = pa.struct({"id": _TEXT, "display_name": _TEXT, "orcid": _TEXT})
SCHEMA = pa.schema(
    {
        **dict.fromkeys(("id", "doi", "title", "display_name"), _TEXT),
        "publication_year": _NUMBER,
        **dict.fromkeys(("publication_date", "type", "language"), _TEXT),
        **dict.fromkeys(("is_retracted", "is_paratext"), _YES),
        "cited_by_count": pa.int64(),
        "ids": pa.struct(dict.fromkeys(("openalex", "doi", "mag", "pmid"), _TEXT)),
        "primary_location": _LOCATION,
        "locations": pa.list_(_LOCATION),
        "authorships": pa.list_(pa.struct({"author_position": _TEXT, "author": _AUTHOR})),
        "primary_topic": _TOPIC,
        "topics": pa.list_(_TOPIC),
        "counts_by_year": pa.list_(pa.struct({"year": _NUMBER, "cited_by_count": _NUMBER})),
        "related_works": pa.list_(_TEXT),
        "referenced_works_count": _NUMBER,
        "referenced_works": pa.list_(_TEXT),
        **dict.fromkeys(("abstract_inverted_index", "updated_date"), _TEXT),
    }
)
"""The columns of the Parquet files."""


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
    url, doi = url_of(number), doi and f"https://doi.org/{doi}"
    source = venue and {"id": "https://openalex.org/S1", "display_name": venue, "type": "journal"}
    location = {"is_oa": True, "landing_page_url": f"https://example.org/{number}", "source": source}
    topics = [
        {"id": f"https://openalex.org/T{rank}", "display_name": f"Studies of {name}", "score": 0.9}
        | {"field": {"id": f"https://openalex.org/fields/{rank}", "display_name": name}}
        for rank, name in enumerate(fields)
    ]
    named = [
        {"id": f"https://openalex.org/A{n}", "display_name": name, "orcid": None} for n, name in enumerate(authors)
    ]
    return {
        "id": url,
        "doi": doi,
        "title": title,
        "display_name": title,
        "publication_year": year,
        "publication_date": year and f"{year}-01-01",
        "type": "article",
        "language": "en",
        "is_retracted": False,
        "is_paratext": False,
        "cited_by_count": citation_count,
        "ids": {"openalex": url, "doi": doi, "mag": mag, "pmid": None},
        "primary_location": location,
        "locations": [location, {"is_oa": False, "landing_page_url": None, "source": None}],
        "authorships": [{"author_position": "middle" if n else "first", "author": one} for n, one in enumerate(named)],
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
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "parquet":
        path = folder / f"part_{number:04}.parquet"
        write_parquet(path, rows)
    else:
        path = folder / (f"part_{number:03}.gz" if layout == "legacy" else f"part_{number:04}.gz")
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def write_parquet(path: Path, rows: Sequence[Record], *, schema: pa.Schema = SCHEMA, per_group: int = 50) -> None:
    """Write works in Parquet; an inverted index that is no text yet becomes one, of JSON."""
    indexes = [row.get("abstract_inverted_index") for row in rows]
    texts = [index if index is None or isinstance(index, str) else json.dumps(index) for index in indexes]
    rows = [row | {"abstract_inverted_index": text} for row, text in zip(rows, texts, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows, schema), path, compression="snappy", row_group_size=per_group)


def _manifest(bucket: Path, layout: str, entities: Mapping[str, Mapping[Path, int]]) -> Record:
    listed = []
    for entity, counted in entities.items():
        listed.append({"entity": entity, "files": []})
        for path, records in counted.items():
            meta = {"content_length": path.stat().st_size, "record_count": records}
            listed[-1]["files"].append({"url": f"s3://openalex/{path.relative_to(bucket)}", "meta": meta})
    if layout == "legacy":
        return {"entries": [file for each in listed for file in each["files"]]}
    return {"date": DATE, "format": layout, "entities": listed}
