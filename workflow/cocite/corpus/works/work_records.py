"""The row of one record of OpenAlex, or why it is none: the definition, for what the kernels leave to Python."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from cocite.core.written_ids import DIGITS, LARGEST_ID, is_id
from cocite.corpus.ingest.accounting import MalformedError, parse_object, quoted

WORK = "https://openalex.org/W"
"""What the id of a work begins with; its number follows."""
DOI = "https://doi.org/"
_ID = re.compile(f"{re.escape(WORK)}({DIGITS})")
_EXAMPLE = f"{WORK}2741809807"
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
SMALLEST = {"year": -(2**15), "citation_count": -(2**31)}
"""Column → the smallest number that it holds; the largest is one less than its negative."""

Row = dict[str, Any]


class Pairs(dict[str, Any]):
    """An object of JSON of which all pairs are known, also those whose key comes again."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def parse_work(line: bytes) -> Row:
    """The row of a line of JSON. Raises `MalformedError` where it is none."""
    return row_of(parse_object(line, Pairs))


def row_of(record: dict[str, Any]) -> Row:
    """The row of a record, whose inverted index is an object or the JSON of one. Raises `MalformedError` for no work.

    The keys are the columns of `work_columns.py`; `abstract` is None where there is none, and empty without a word.
    """
    if "id" not in record:
        raise MalformedError("has no id")
    location = _object(record, "primary_location")
    topics = [_object({"topics": topic}, "topics") for topic in _list(record, "topics")]
    primary = _object(record, "primary_topic")
    return {
        "corpusid": _number_of_work(record["id"], "id"),
        "title": _not_blank(_text(record, "title" if record.get("title") is not None else "display_name")),
        "year": _number(record.get("publication_year"), "year"),
        "venue": _not_blank(_text(_object(location, "source"), "display_name")),
        "fields": [*dict.fromkeys(_names([primary, *topics], "field"))],
        "doi": _not_blank((_text(record, "doi") or "").removeprefix(DOI)),
        "citation_count": _number(record.get("cited_by_count"), "citation_count"),
        "authors": [*_names((_object({"": each}, "") for each in _list(record, "authorships")), "author")],
        "mag": mag_of(record.get("ids")),
        "type": _text(record, "type"),
        "language": _text(record, "language"),
        "retracted": record.get("is_retracted") is True,
        "paratext": record.get("is_paratext") is True,
        "references": [
            None if each is None else _number_of_work(each, "referenced_works")
            for each in _list(record, "referenced_works")
        ],
        "abstract": abstract_of(record.get("abstract_inverted_index")),
    }


def mag_of(ids: Any) -> int | None:
    """The number in the Microsoft Academic Graph among the ids of a work; None where there is none."""
    number: Any = ids.get("mag") if isinstance(ids, dict) else None
    return int(number) if is_id(number) else None


def abstract_of(index: Any) -> str | None:
    """The distinct words of an inverted index, an object or its JSON, by (position, word); None without an index."""
    if isinstance(index, str):
        try:
            index = json.loads(index, object_pairs_hook=Pairs)
        except (ValueError, RecursionError):
            raise MalformedError(f"abstract_inverted_index is {quoted(index)}, which is not JSON") from None
    if index is None:
        return None
    if not isinstance(index, dict):
        raise MalformedError(f"abstract_inverted_index is {quoted(index)}, not an object of words and their positions")
    pairs = index.pairs if isinstance(index, Pairs) else index.items()
    text = " ".join(word for _, word in sorted({(at, word) for word, places in pairs for at in _places(word, places)}))
    return _encodable(text, "abstract_inverted_index")


def _places(word: str, places: Any) -> Iterator[int]:
    if places is None:
        return
    if not isinstance(places, list):
        raise MalformedError(f"abstract_inverted_index has {quoted(places)} for {quoted(word)}, no list of positions")
    for place in filter(lambda place: place is not None, places):
        if type(place) is not int or place < 0:
            raise MalformedError(f"abstract_inverted_index has {quoted(place)} for {quoted(word)}, not a position")
        yield place


def _number_of_work(value: Any, key: str) -> int:
    found = _ID.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) > LARGEST_ID:
        verb = "is" if key == "id" else "has"
        raise MalformedError(f"{key} {verb} {quoted(value)}, not the id of a work such as {_EXAMPLE}")
    return int(found[1])


def _object(record: dict[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedError(f"{key or 'authorships'} has {quoted(value)} where an object belongs")
    return value or {}


def _list(record: dict[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    if value is not None and not isinstance(value, list):
        raise MalformedError(f"{key} is {quoted(value)}, not a list")
    return value or []


def _text(record: dict[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedError(f"{key} is {quoted(value)}, not text")
    return _encodable(value, key) if value else value


def _encodable(text: str, key: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedError(f"{key} holds half of a surrogate pair") from None
    return text


def _names(records: Iterable[dict[str, Any]], key: str) -> Iterator[str]:
    for record in records:
        if name := _not_blank(_text(_object(record, key), "display_name")):
            yield name


def _not_blank(text: str | None) -> str | None:
    return text if text and text.strip(_WHITE_SPACE) else None


def _number(value: Any, column: str) -> int | None:
    """A whole number that its column can hold; None for anything else."""
    return value if type(value) is int and SMALLEST[column] <= value < -SMALLEST[column] else None
