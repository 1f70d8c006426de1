"""What becomes of every line of a dataset: it is kept, omitted or malformed; lines are counted by shard.

The share of malformed lines is judged over the whole dataset; with `corpus.base`, over the lines of its diffs.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.release_folder import PACKED
from cocite.core.errors import InputError, printable
from cocite.core.options import Omissions
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, write_omissions
from cocite.core.written_ids import is_id

BESIDE = CONTEXTS, ABSTRACTS_OF_WORKS, CITATIONS_OF_WORKS = "contexts", "abstracts of works", "citations of works"
"""Contents of lines of citations or works that are counted in addition to the lines, in place of a dataset."""
KEPT = "kept"
BLANK = "blank lines"
MALFORMED = "malformed lines (not JSON, without an id, or with a list in place of a text)"
LONGEST_VALUE = 60
"""Characters of a value that a message quotes."""


@dataclass(kw_only=True)
class Tally:
    """The lines of one shard, counted by outcome."""

    dataset: str
    """papers, abstracts, citations or works."""
    shard: str
    outcomes: Counter[str] = field(default_factory=Counter)
    """Outcome → lines; their sum is the number of lines of the shard."""
    beside: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """One of `BESIDE` → outcome → the count in the lines that are kept."""
    first_line: int | None = None
    """Number, from 1, of the first malformed line."""
    fault: str | None = None
    """What is wrong with it."""

    @property
    def lines(self) -> int:
        """Lines that were read."""
        return self.outcomes.total()

    def note_malformed(self, line: int, fault: str) -> None:
        """Count a malformed line."""
        self.outcomes[MALFORMED] += 1
        if self.first_line is None or line < self.first_line:
            self.first_line, self.fault = line, fault


def tallies_as_table(tallies: list[Tally]) -> pa.Table:
    """The rows of the table `ingest_report`, in the order of its key."""
    rows = []
    for tally in tallies:
        for dataset, outcomes in ((tally.dataset, tally.outcomes), *tally.beside.items()):
            for outcome, count in outcomes.items():
                first = {"first_line": tally.first_line, "fault": tally.fault} if outcome == MALFORMED else {}
                rows.append({"dataset": dataset, "shard": tally.shard, "outcome": outcome, "lines": count, **first})
    rows.sort(key=itemgetter("dataset", "shard", "outcome"))
    return pa.Table.from_pylist(rows, empty_schema(TABLES["ingest_report"]))


def account(
    reports: Annotated[Path, typer.Argument(help="Folder of the table ingest_report of a dataset.")],
    *,
    malformed: Annotated[float, typer.Option(help="Largest share of a dataset's lines that may be malformed.")],
    omissions: Omissions,
) -> None:
    """Account for every line of a dataset; stop where too many are malformed.

    Raises `InputError` then, which names the first of them.
    """
    rows = read_table(reports, "ingest_report")
    counts: Counter[str] = Counter({MALFORMED: 0})
    total = 0
    for row in rows.select(["dataset", "outcome", "lines"]).to_pylist():
        counts[row["outcome"]] += row["lines"]
        total += row["lines"] if row["dataset"] not in BESIDE else 0
    if counts[MALFORMED] > malformed * total:
        first = rows.filter(pc.is_valid(rows["first_line"])).sort_by("shard").slice(0, 1).to_pylist()[0]
        shard = first["shard"]
        may_be_list = shard.lower().removesuffix(PACKED).endswith(".json")
        row = "row" if shard.endswith(".parquet") else "line or item" if may_be_list else "line"
        raise InputError(
            f"{first['dataset']}: {counts[MALFORMED]} of {total} lines are malformed, more than the share of "
            f"{malformed} that corpus.malformed allows; the first: {shard}, {row} {first['first_line']}: "
            f"{first['fault']}."
        )
    write_omissions(omissions, {outcome: lines for outcome, lines in counts.items() if outcome != KEPT})


class MalformedError(InputError):
    """Why a line is no record; the reader adds the file and the line number."""


def parse_record(line: bytes, ids: Sequence[str], *, null_ids: bool) -> dict[str, Any]:
    """The record in a line of JSON whose keys `ids` are whole numbers, or null if they may. Else `MalformedError`."""
    record = parse_object(line)
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


def parse_object(line: bytes) -> dict[str, Any]:
    """The object in a line of JSON. Raises `MalformedError` if there is none."""
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MalformedError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"is not JSON ({error.msg} at character {error.pos + 1}); a line has one record") from None
    except (RecursionError, ValueError):
        raise MalformedError("is not JSON that can be read") from None
    if not isinstance(record, dict):
        what = "a list" if isinstance(record, list) else "a single value"
        raise MalformedError(f"is {what}, not an object; a line has one record")
    return record


def fault_of_line(line: str | None) -> str:
    """Why a line has no record that can be read; a line that is not UTF-8 is None."""
    if line is None:
        return "is not UTF-8"
    try:
        json.dumps(parse_object(line.encode()), ensure_ascii=False).encode()
    except MalformedError as error:
        return str(error)
    except UnicodeEncodeError:
        return "contains half of a surrogate pair"
    return "is not JSON that can be read"


def fault_of_record(line: str | None, key: str, texts: Sequence[str]) -> str:
    """Why a line has no record whose `key` is an id, and in which no text is a list or an object."""
    try:
        record = {} if line is None else parse_record(line.encode(), (key,), null_ids=False)
    except MalformedError as error:
        return str(error)
    for name in texts:
        if isinstance(record.get(name), list | dict):
            return f"{name} is {quoted(record[name])}, not text"
    return fault_of_line(line)


def quoted(value: Any) -> str:
    """A value as printable JSON, shortened if it is long."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
