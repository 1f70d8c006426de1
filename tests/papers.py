"""Rows of the table papers, of which a test names what it is about."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cocite.core.tables import TABLES, empty_schema

Texts = Mapping[int, tuple[str | None, str | None]]
"""Title and abstract of each paper."""


def papers_table(texts: Texts, **columns: Any) -> pa.Table:
    """The papers with these texts, by id; of the other columns those that are given, and nothing in the rest."""
    ids = sorted(texts)
    titles, abstracts = [texts[paper][0] for paper in ids], [texts[paper][1] for paper in ids]
    told = {
        "corpusid": ids,
        "title": titles,
        "abstract": abstracts,
        "has_text": [None not in texts[paper] for paper in ids],
        "fields": [[]] * len(ids),
        **columns,
    }
    schema = empty_schema(TABLES["papers"])
    names = [name for name in schema.names if name in told or not TABLES["papers"].columns[name].optional]
    return pa.table([pa.array(told.get(name, [None] * len(ids)), schema.field(name).type) for name in names], names)
