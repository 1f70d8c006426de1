"""What is wrong with a line that cannot be used: said in words, for the one line that an error names."""

import json
from collections.abc import Sequence
from typing import Any

from cocite.ground.errors import InputError
from cocite.ground.written_ids import is_id

LONGEST_VALUE = 60


class MalformedError(InputError):
    """Why a line is no record; without the place, which the reader adds."""


def parse_record(line: bytes, ids: Sequence[str], *, null_ids: bool) -> dict[str, Any]:
    """The record in a line of JSON whose keys `ids` are whole numbers, as numbers or strings, or null if they may be.

    Ids come out as `int`. Raises `MalformedError` for anything else.
    """
    record = _parse(line)
    for key in ids:
        if key not in record:
            raise MalformedError(f"has no {key}")
        if record[key] is None and null_ids:
            continue
        if record[key] is None:
            raise MalformedError(f"{key} is null")
        if not is_id(record[key]):
            raise MalformedError(f"{key} is {quoted(record[key])}, not a whole number from 0 to 2⁶³ − 1")
        record[key] = int(record[key])
    return record


def _parse(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MalformedError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"is not JSON ({error.msg} at character {error.pos + 1}); a line has one record") from None
    except (RecursionError, ValueError):
        raise MalformedError("is not JSON that can be read") from None
    if not isinstance(record, dict):
        kind = "a list" if isinstance(record, list) else "a single value"
        raise MalformedError(f"is {kind}, not an object; a line has one record")
    return record


def quoted(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
