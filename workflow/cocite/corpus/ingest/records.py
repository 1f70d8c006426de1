"""How the records of papers and abstracts become rows: one SQL expression a column, for DuckDB to evaluate.

Both generations of the release are read by the same expressions. Texts of white space only become null, as do numbers
that their column cannot store. Citations have a separate reader (`citations.py`); their *traits*, intents and
influence, are bits of one small number, so that copies of a citation are united by a bitwise or.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cocite.config.aspects import INTENTS
from cocite.core.tables import PRIMARY_KEYS
from cocite.core.written_ids import DIGITS

INFLUENTIAL = 1 << len(INTENTS)
"""The bit that says that a citation is influential."""
UNKNOWN_INTENT = 2 * INFLUENTIAL
"""The bit that says that a citation has an intent that is none of `INTENTS`; it is counted, and treated as none."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """One dataset: the columns taken from its records, and the records omitted."""

    structure: str
    """The keys that are read and their types, as DuckDB's json_transform takes them."""
    columns: dict[str, str]
    """Column → expression over `record`, the structure filled from one line. Buckets are cut by the first."""
    texts: tuple[str, ...] = ()
    """Columns of text, named as the keys that they are taken from: a list or an object there is a fault."""
    omissions: Mapping[str, str] = field(default_factory=dict)
    """Reason → condition over the columns, for omitted rows; a row counts for its first reason."""


def sql_of_id(text: str) -> str:
    """SQL expression: the id that a text is, null for anything else."""
    # A plain cast would round 12.7, and take true for 1; a remainder of negative ids is no bucket.
    return f"CASE WHEN regexp_full_match({text}, '{DIGITS}') THEN TRY_CAST({text} AS BIGINT) END"


def sql_of_year(expression: str) -> str:
    """SQL expression: a year from 1000 to 2099, null for any other: one slip would make all papers look old."""
    return f"CASE WHEN {expression} BETWEEN 1000 AND 2099 THEN {expression} END"


NOT_BLANK = r"[^\s\v\x85\pZ]"
"""A character other than white space. In this syntax, \\s is ASCII white space without the vertical tab."""


def not_blank(expression: str) -> str:
    """SQL expression: a text, null if it is only white space."""
    return f"CASE WHEN regexp_matches({expression}, '{NOT_BLANK}') THEN {expression} END"


_FIELDS = """list_filter(
    coalesce(list_transform(record.s2fieldsofstudy, lambda field: field.category), []),
    lambda name, place: name <> ''
        AND list_position(list_transform(record.s2fieldsofstudy, lambda field: field.category), name) = place
)"""

_AUTHORS = f"""list_filter(
    list_transform(coalesce(record.authors, []), lambda author: {not_blank("author.name")}),
    lambda name: name IS NOT NULL
)"""

PAPERS = Records(
    structure=json.dumps(
        {
            "corpusid": "VARCHAR",
            "title": "VARCHAR",
            "year": "SMALLINT",
            "publicationdate": "VARCHAR",
            "venue": "VARCHAR",
            "s2fieldsofstudy": [{"category": "VARCHAR"}],
            "externalids": {"DOI": "VARCHAR"},
            "citationcount": "INTEGER",
            "referencecount": "INTEGER",
        }
    ),
    columns={
        "corpusid": sql_of_id("record.corpusid"),
        "title": not_blank("record.title"),
        "year": sql_of_year("record.year"),
        "date": "TRY_CAST(regexp_extract(record.publicationdate, '^[0-9]{4}-[0-9]{2}-[0-9]{2}') AS DATE)",
        "venue": not_blank("record.venue"),
        "fields": _FIELDS,
        "doi": not_blank("record.externalids.DOI"),
        "citation_count": "record.citationcount",
        "reference_count": "record.referencecount",
    },
    texts=("title", "venue"),
)

PAPERS_WITH_AUTHORS = replace(
    PAPERS,
    structure=json.dumps({**json.loads(PAPERS.structure), "authors": [{"name": "VARCHAR"}]}),
    columns={**PAPERS.columns, "authors": _AUTHORS},
)

ABSTRACTS = Records(
    structure=json.dumps({"corpusid": "VARCHAR", "abstract": "VARCHAR"}),
    columns={"corpusid": sql_of_id("record.corpusid"), "abstract": not_blank("record.abstract")},
    texts=("abstract",),
    omissions={"empty abstracts": "abstract IS NULL"},
)

BUCKET_KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citing"}
"""The column that rows are cut into buckets by."""
KEYS = {
    dataset: Records(structure=json.dumps({key: "VARCHAR"}), columns={key: sql_of_id(f"record.{key}")})
    for dataset, key in PRIMARY_KEYS.items()
    if dataset != "citations"
}
"""Only the primary keys: all that a diff must give for deleted records."""
