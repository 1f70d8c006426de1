"""How the records of each dataset become rows: one SQL expression a column, for DuckDB to evaluate over raw lines.

Every generation of the release is read by the same expressions. The ids of citations are strings in 2023 and integers
later; the intents of a citation are a flat list, a list of lists, or null: as text, all of them just hold the words.
"""

import json
from dataclasses import dataclass

from cocite.corpus.intents import mask_of_text


@dataclass(frozen=True, kw_only=True)
class Records:
    """One dataset: what is taken from its records and what of them is left out."""

    table: str
    """The table that its rows are written as."""
    ids: tuple[str, ...]
    """Keys without which a record is unusable."""
    null_ids: bool
    """Whether these keys may be null: known to be unknown, which makes a record an omission and not an error."""
    structure: str
    """The keys that are read and their types, as DuckDB's json_transform takes them."""
    columns: dict[str, str]
    """Column → expression over `record`, the structure filled from one line. The first is what buckets are cut by."""
    omissions: dict[str, str]
    """Reason → condition over the columns, of rows that are left out; a row counts for the first that holds."""
    empty: dict[str, str]
    """Reason → condition over the columns, of rows that are kept but lack something worth counting."""

    @property
    def unusable(self) -> str:
        """Condition over `json`, a raw line (null if it is not JSON), and `record`: the line cannot be used."""
        tests = ["json IS NULL", "json_type(json) <> 'OBJECT'"]
        for key in self.ids:
            lacking = f"{_id(key)} IS NULL"
            if self.null_ids:
                lacking += f" AND json_type(json, '$.{key}') IS DISTINCT FROM 'NULL'"
            tests.append(f"({lacking})")
        return " OR ".join(tests)


def _id(key: str) -> str:
    # A plain cast would round 12.7, and take true for 1; a remainder of negative ids is no bucket.
    return f"CASE WHEN regexp_full_match(record.{key}, '[0-9]+') THEN TRY_CAST(record.{key} AS BIGINT) END"


def _not_blank(expression: str) -> str:
    return rf"CASE WHEN regexp_matches({expression}, '\S') THEN {expression} END"


_FIELDS = """list_filter(
    coalesce(list_transform(record.s2fieldsofstudy, lambda field: field.category), []),
    lambda name, place: name IS NOT NULL
        AND list_position(list_transform(record.s2fieldsofstudy, lambda field: field.category), name) = place
)"""

PAPERS = Records(
    table="ingested_papers",
    ids=("corpusid",),
    null_ids=False,
    structure=json.dumps(
        {
            "corpusid": "VARCHAR",
            "title": "VARCHAR",
            "year": "SMALLINT",
            "venue": "VARCHAR",
            "s2fieldsofstudy": [{"category": "VARCHAR"}],
            "externalids": {"DOI": "VARCHAR"},
            "citationcount": "INTEGER",
            "referencecount": "INTEGER",
        }
    ),
    columns={
        "corpusid": _id("corpusid"),
        "title": _not_blank("record.title"),
        "year": "record.year",
        "venue": _not_blank("record.venue"),
        "fields": _FIELDS,
        "doi": _not_blank("record.externalids.DOI"),
        "citation_count": "record.citationcount",
        "reference_count": "record.referencecount",
    },
    omissions={},
    empty={"papers without title (kept, with a null title)": "title IS NULL"},
)

ABSTRACTS = Records(
    table="ingested_abstracts",
    ids=("corpusid",),
    null_ids=False,
    structure=json.dumps({"corpusid": "VARCHAR", "abstract": "VARCHAR"}),
    columns={"corpusid": _id("corpusid"), "abstract": _not_blank("record.abstract")},
    omissions={"empty abstracts": "abstract IS NULL"},
    empty={},
)

CITATIONS = Records(
    table="ingested_citations",
    ids=("citingcorpusid", "citedcorpusid"),
    null_ids=True,
    structure=json.dumps(
        {"citingcorpusid": "VARCHAR", "citedcorpusid": "VARCHAR", "isinfluential": "BOOLEAN", "intents": "VARCHAR"}
    ),
    columns={
        "citing": _id("citingcorpusid"),
        "cited": _id("citedcorpusid"),
        "influential": "coalesce(record.isinfluential, false)",
        "intents": mask_of_text("record.intents"),
    },
    omissions={
        "citations without a citing id": "citing IS NULL",
        "citations without a cited id": "cited IS NULL",
        "citations of a paper by itself": "citing = cited",
    },
    empty={},
)

RECORDS = {"papers": PAPERS, "abstracts": ABSTRACTS, "citations": CITATIONS}
