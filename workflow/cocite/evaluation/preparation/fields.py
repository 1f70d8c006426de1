"""Venue, authors and year of the documents of a benchmark, for encoders that read them.

Papers of our own corpus have them in the table `papers`. The files of other benchmarks have them under several keys:
`venue` or `journal_name`, `year`, and `author_names` or `authors`, which are names or objects with a name. Ids in place
of names are no text. What the files lack, as those of SciDocs do, is taken from the papers that its documents are.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.rows import HALF_PAIRS, Row
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.documents import NO_PAPER, names_of_papers, papers_of_documents
from cocite.core.tables.files import read_table, scan_table, write_table

Fields: TypeAlias = tuple[str | None, list[str] | None, int | None]
"""Venue, names of the authors, and year."""
TABLE = "document_fields"
VENUE, AUTHORS, YEAR = ("venue", "journal_name"), ("author_names", "authors"), "year"
NAME = ("name", "author_name")
YEARS = range(1, 1 << 15)


def fields_of(row: Row) -> Fields:
    """What a row says of these; what is no text, no list of names or no year counts as unknown."""
    venue = next(filter(None, (_text(row.values.get(key)) for key in VENUE)), None)
    authors = next(filter(None, (_names(row.values.get(key)) for key in AUTHORS)), None)
    return venue, authors, _year(row.values.get(YEAR))


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) and not HALF_PAIRS.search(value) else None


def _names(value: Any) -> list[str] | None:
    """The names in a list of names, or of objects with a name; ids are none."""
    given = value if isinstance(value, list) else []
    found = [
        _text(next((each[key] for key in NAME if each.get(key)), None) if isinstance(each, dict) else each)
        for each in given
    ]
    return [name for name in found if name and not name.isdecimal()] or None


def _year(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdecimal() and int(text) in YEARS else None


def write_fields(output: Path, fields: Iterable[tuple[str, Fields]]) -> None:
    """Write the table of the documents with these names."""
    rows = sorted((name, *values) for name, values in fields)
    columns = list(zip(*rows, strict=True)) or [()] * len(TABLES[TABLE].columns)
    schema = empty_schema(TABLES[TABLE])
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    write_table(output, TABLE, pa.table(arrays, schema=schema))


def fields_of_papers(documents: Path, papers: Path) -> Iterator[tuple[str, Fields]]:
    """Name and fields of the documents whose name is the id of a paper in the folder `papers`; others have none."""
    names = read_table(documents, "documents", ["document"])["document"].to_pylist()
    ids = np.array([int(name) for name in names if name.isdecimal()], dtype=np.int64)
    for paper, fields in _fields_of_ids(papers, ids):
        yield str(paper), fields


def add_fields_of_papers(
    fields: Mapping[str, Fields], documents: Path, papers: Path, document_papers: Path | None
) -> dict[str, Fields]:
    """The fields of documents by their names, with what is unknown taken from the papers that they are.

    `document_papers` says which these are; without it, the documents have corpus ids.
    """
    names = names_of_papers(documents)
    ids = papers_of_documents(document_papers)(names)
    known = dict(_fields_of_ids(papers, np.unique(ids[ids != NO_PAPER])))
    found = dict(fields)
    for name, paper in zip(names.to_pylist(), ids.tolist(), strict=True):
        if paper in known:
            (venue, authors, year), of_paper = found.get(name, (None, None, None)), known[paper]
            found[name] = venue or of_paper[0], authors or of_paper[1], year or of_paper[2]
    return {name: each for name, each in found.items() if any(each)}


def _fields_of_ids(papers: Path, ids: NDArray[np.int64]) -> Iterator[tuple[int, Fields]]:
    """The papers with these ids in the folder `papers`, with their fields."""
    wanted = pa.array(ids)
    found = scan_table(papers, "papers")
    columns = [name for name in ("corpusid", "venue", "authors", "year") if name in found.schema.names]
    chosen = {"columns": columns, "filter": pc.field("corpusid").isin(wanted)}
    for batch in found.to_batches(**chosen, batch_readahead=1, fragment_readahead=1):
        for row in batch.to_pylist():
            yield row["corpusid"], (row["venue"], row.get("authors"), row["year"])
