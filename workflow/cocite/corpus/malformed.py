"""Find the first unusable line of a shard and say what is wrong with it.

Only looked for once it is known that the run stops: ingestion counts unusable lines without knowing where they are.
"""

import gzip
import json
from itertools import islice
from pathlib import Path

import duckdb

from cocite.corpus.records import Records
from cocite.errors import InputError

UNUSABLE = "unusable lines (not JSON, or without an id)"


def first_unusable_line(path: Path, records: Records) -> InputError:
    """The error that names the first unusable line of a shard that has one."""
    place = _place(path, records)
    with gzip.open(path) as file:
        # DuckDB passes over blank lines; people count them.
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
        number, line = next(islice(lines, place - 1, None))
    return InputError(f"{path}, line {number}: {_reason(line, records)}.")


def _place(path: Path, records: Records) -> int:
    """Place, from 1, of the first unusable line among the lines that are not blank; by DuckDB, the one judge."""
    with duckdb.connect(config={"threads": 1, "preserve_insertion_order": True}) as connection:
        ((place,),) = connection.execute(
            f"""
            SELECT place FROM (
                SELECT row_number() OVER () AS place, json, json_transform(json, '{records.structure}') AS record
                FROM read_ndjson_objects($path, ignore_errors = true)
            ) WHERE {records.unusable} LIMIT 1
            """,
            {"path": str(path)},
        ).fetchall()
    return int(place)


def _reason(line: bytes, records: Records) -> str:
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        return "is not UTF-8"
    except json.JSONDecodeError as error:
        return f"is not JSON ({error.msg} at character {error.pos + 1})"
    if not isinstance(record, dict):
        return "is JSON, but not an object"
    for key in records.ids:
        if key not in record:
            return f"has no {key}"
        if record[key] is None and not records.null_ids:
            return f"{key} is null"
        if record[key] is not None and not _is_id(record[key]):
            return f"{key} is {json.dumps(record[key])}, not a whole number from 0 to 2⁶³ − 1"
    return "is not valid Unicode"


def _is_id(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    text = str(value)
    return text.isascii() and text.isdigit() and int(text) < 1 << 63
