"""Works of OpenAlex as columns, some thousand at a time: DuckDB makes the same ones of JSON Lines and of Parquet.

An abstract comes as an inverted index, an object of JSON: word → positions. Its words are ordered by (position, word).
Of Parquet only the needed columns are read.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cocite.config.source import WorkFilters
from cocite.core.database import connect
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.tables.declarations.corpus import AUTHORS, MAG
from cocite.core.tables.places import as_text
from cocite.corpus.ingest.accounting import BLANK, KEPT, LONGEST_VALUE, Tally, fault_of_line
from cocite.corpus.ingest.records import BYTES_AT_ONCE, NOT_BLANK, lines_of, outcome_of, sql_of_id, sql_of_year
from cocite.corpus.ingest.unpacking import gather, unpack
from cocite.corpus.release.copies import DATE, INDEX, OF_LISTS, TITLES, columns_read

PARQUET = ".parquet"
ROWS_AT_ONCE = 1 << 12
BLOCKS_AHEAD = 4
"""Blocks of lines that are unpacked while others are read and written."""
WORK = "https://openalex.org/W"
"""Prefix of the id of a work; its number follows."""
DOI = "https://doi.org/"
_NAMED = {"display_name": "VARCHAR"}
GIVEN: dict[str, Any] = {
    **dict.fromkeys(("id", "doi", *TITLES, DATE, "type", "language", INDEX), "VARCHAR"),
    **dict.fromkeys(("publication_year", "cited_by_count"), "BIGINT"),
    **dict.fromkeys(("is_retracted", "is_paratext"), "BOOLEAN"),
    "referenced_works": ["VARCHAR"],
    "primary_location": {"source": _NAMED},
    "primary_topic": {"field": _NAMED},
    "topics": [{"field": _NAMED}],
    "authorships": [{"author": _NAMED}],
    "ids": {"mag": "VARCHAR"},
}
"""The keys of a record that are read and their types, as DuckDB's json_transform takes them."""
_OF_LINES = f"""
    SELECT place, record IS NOT NULL AS is_valid, record.*
    FROM (SELECT place, TRY(json_transform(line, '{json.dumps(GIVEN)}')) AS record FROM records)
"""
_AUTHORS = """list_filter(
    list_transform(coalesce(authorships, []), lambda each: filled(each.author.display_name)),
    lambda name: name IS NOT NULL
)"""
_UNLIKE_A_WORK = f", not the id of a work such as {WORK}2741809807"
MACROS = f"""
    CREATE TEMP MACRO filled(words) AS CASE WHEN regexp_matches(words, '{NOT_BLANK}') THEN words END;
    CREATE TEMP MACRO shown(value) AS coalesce(to_json(value[:{LONGEST_VALUE}])::VARCHAR, 'null');
    CREATE TEMP MACRO number_of(url) AS
        CASE WHEN starts_with(url, '{WORK}') THEN {sql_of_id(f"substr(url, {len(WORK) + 1})")} END;
    CREATE TEMP MACRO distinct_texts(names) AS
        list_filter(names, lambda name, place: filled(name) IS NOT NULL AND list_position(names, name) = place);
    CREATE TEMP MACRO positions_in(index) AS from_json_strict(json_extract(index, '$.*')::JSON, '["UINTEGER[]"]');
    CREATE TEMP MACRO abstract_of(index) AS
        CASE WHEN json_valid(index) THEN CASE WHEN json_type(index) = 'OBJECT' THEN
        array_to_string(list_transform(list_sort(flatten(list_transform(
            TRY(list_zip(json_keys(index), positions_in(index))), lambda entry:
                list_transform(entry[2], lambda position: {{'position': position, 'word': entry[1]}})
        ))), lambda each: each.word), ' ') END END;
"""


@dataclass(frozen=True, kw_only=True)
class WorksSettings:
    """How files of works are ingested."""

    filters: WorkFilters
    buckets: int
    """Buckets that the rows are cut into, by id modulo this number."""
    memory_mb: int
    threads: int
    authors: bool = False
    mag: bool = False
    """Keep the ids in the Microsoft Academic Graph."""


def read_works(path: Path, settings: WorksSettings, tally: Tally, spill: Path) -> Iterator[pa.RecordBatch]:
    """The works of a file, of those that filters leave out only the id; blank and malformed records are only counted.

    A reference is null if it has no id, an abstract if there is none. Raises `InputError` if the file is cut short, or
    Parquet that lacks a column.
    """
    omissions = _omissions(settings.filters)
    query = _query(settings, omissions)
    with connect(memory_mb=settings.memory_mb // 3, threads=settings.threads, spill_to=spill) as connection:
        connection.execute(MACROS)
        before = 0
        for records, view in _rows_of(path, settings):
            connection.register("records", records)
            connection.execute(f"CREATE OR REPLACE TEMP VIEW given AS {view}")
            found = connection.sql(query).to_arrow_table()
            faults = found.filter(found["fault"].is_valid()).select(["place", "fault"]).sort_by("place")
            for place, fault in zip(*faults.to_pydict().values(), strict=True):
                line = None if fault else records["line"][place].as_py()
                if line is not None and not line.strip():
                    tally.outcomes[BLANK] += 1
                else:
                    tally.note_malformed(before + place + 1, fault or fault_of_line(line))
            before += len(records)
            counts = np.bincount(found["outcome"].to_numpy(), minlength=3 + len(omissions)).tolist()
            tally.outcomes.update({KEPT: counts[0], **dict(zip(omissions, counts[3:], strict=True))})
            works = found.filter(found["fault"].is_null()).drop_columns(["place", "fault", "outcome"])
            yield from works.combine_chunks().to_batches()


def _rows_of(path: Path, settings: WorksSettings) -> Iterator[tuple[pa.Table, str]]:
    """The lines of a file, or the rows of Parquet, and the query that gives them all columns: those that are not needed
    without values."""
    if not path.name.endswith(PARQUET):
        blocks = unpack(path, blocks_ahead=BLOCKS_AHEAD if settings.threads > 1 else 0)
        for texts in gather(map(lines_of, blocks), BYTES_AT_ONCE):
            lines = pa.chunked_array(texts)
            yield pa.table({"place": np.arange(len(lines)), "line": lines}), _OF_LINES
        return
    needed = columns_read(settings.filters, authors=settings.authors, mag=settings.mag)
    opened = partial(pq.ParquetFile, path, pre_buffer=False, page_checksum_verification=True)
    with explain_unreadable(path, "Parquet file of works"), opened() as file:
        for batches in gather(file.iter_batches(ROWS_AT_ONCE, columns=_find(file, path, needed)), BYTES_AT_ONCE):
            table = pa.Table.from_batches(batches)
            table.validate(full=True)
            missing = "".join(f", NULL::VARCHAR AS {name}" for name in GIVEN if name not in table.column_names)
            yield (
                table.append_column("place", pa.array(np.arange(len(table)))),
                f"SELECT *, true AS is_valid{missing} FROM records",
            )


def _find(file: pq.ParquetFile, path: Path, needed: dict[str, str]) -> list[str]:
    """The paths of the columns in a file. Raises `InputError` if one is missing or of another type."""
    found = {}
    for leaf in map(file.schema.column, range(len(file.schema))):
        name = ".".join(part for part in leaf.path.split(".") if part not in OF_LISTS)
        what, logical = needed.get(name, "text"), leaf.logical_type.type
        if leaf.physical_type == "BOOLEAN":
            holds = what == "true or false"
        elif leaf.physical_type in ("INT32", "INT64"):
            holds = what.startswith("whole numbers")
        else:
            holds = (
                leaf.physical_type == "BYTE_ARRAY"
                and logical in ("STRING", "JSON")
                and what.endswith(("text", "structures"))
                and leaf.max_repetition_level == what.count("list")
            )
        if (name == DATE and logical in ("STRING", "DATE")) or ((name in needed or name in TITLES) and holds):
            found[name] = leaf.path
    missing = [f"{name} ({what})" for name, what in needed.items() if name not in found]
    if not any(name in found for name in TITLES):
        missing.append("title or display_name (text)")
    if missing:
        raise InputError(f"{path}: lacks the column {', '.join(missing)}, which is needed; fetch the file with it.")
    return list(found.values())


def _omissions(filters: WorkFilters) -> dict[str, str]:
    """Reason → condition over the columns of works for those that are left out, for the reasons that are in use."""
    reasons = {} if filters.retracted else {"retracted works": "retracted"}
    if not filters.paratext:
        reasons["paratext"] = "paratext"
    if filters.from_year is not None or filters.to_year is not None:
        first, last = filters.from_year or 0, filters.to_year or 9999
        reasons["works of another year than corpus asks for, or without one"] = f"year NOT BETWEEN {first} AND {last}"
    for kind, column, wanted in (("of", "type", filters.types), ("in", "language", filters.languages)):
        if wanted:
            is_other = f"{column} NOT IN ({', '.join(map(as_text, wanted))})"
            reasons[f"works {kind} another {column} than corpus asks for, or without one"] = is_other
    if filters.fields:
        is_other = f"NOT list_has_any(fields, [{', '.join(map(as_text, filters.fields))}])"
        reasons["works of another field than corpus asks for, or without one"] = is_other
    return {reason: f"coalesce({condition}, true)" for reason, condition in reasons.items()}


def _query(settings: WorksSettings, omissions: Mapping[str, str]) -> str:
    """Query for the columns of works in `given`, the number of an outcome, and what is wrong with each work; that is
    empty for a line that is not JSON."""
    columns = {
        "title": "coalesce(filled(title), filled(display_name))",
        "year": sql_of_year("TRY_CAST(publication_year AS SMALLINT)"),
        "date": f"CASE WHEN regexp_full_match({DATE}::VARCHAR, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') "
        f"THEN TRY_CAST({DATE} AS DATE) END",
        "venue": "filled(primary_location.source.display_name)",
        "fields": "distinct_texts(list_prepend(primary_topic.field.display_name, "
        "coalesce(list_transform(topics, lambda topic: topic.field.display_name), [])))",
        "doi": f"filled(if(starts_with(doi, '{DOI}'), substr(doi, {len(DOI) + 1}), doi))",
        "citation_count": "TRY_CAST(cited_by_count AS INTEGER)",
        **({AUTHORS: _AUTHORS} if settings.authors else {}),
        **({MAG: sql_of_id("ids.mag::VARCHAR")} if settings.mag else {}),
        "references": "coalesce(list_transform(referenced_works, lambda url: number_of(url)), [])",
        "abstract": f"abstract_of({INDEX})",
    }
    made = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    lists = {"fields", AUTHORS, "references"}
    taken = ", ".join(
        f'CASE WHEN outcome = 0 THEN "{name}" {"ELSE []" if name in lists else ""} END AS "{name}"' for name in columns
    )
    return f"""
        SELECT place, fault, outcome, corpusid, outcome > 2 AS left_out, {taken}
        FROM (SELECT *, {outcome_of("false", "fault IS NOT NULL", omissions)} AS outcome FROM (SELECT *, CASE
            WHEN NOT is_valid THEN ''
            WHEN corpusid IS NULL THEN 'id is ' || shown(id) || '{_UNLIKE_A_WORK}'
            WHEN list_count("references") < list_count(referenced_works) THEN 'referenced_works has ' || shown(
                list_filter(referenced_works, lambda url: url IS NOT NULL AND number_of(url) IS NULL)[1]
            ) || '{_UNLIKE_A_WORK}'
            WHEN abstract IS NULL AND {INDEX} <> 'null'
            THEN '{INDEX} is ' || shown({INDEX}) || ', not an object of words and their positions'
            END AS fault
            FROM (
                SELECT place, is_valid, id, referenced_works, {INDEX}, number_of(id) AS corpusid, {made},
                    type::VARCHAR AS type, language::VARCHAR AS language,
                    coalesce(is_retracted::BOOLEAN, false) AS retracted,
                    coalesce(is_paratext::BOOLEAN, false) AS paratext
                FROM given
            )
        ))
    """
