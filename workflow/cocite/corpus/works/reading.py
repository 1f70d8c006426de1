"""What readers of works hand on, and how the works that they leave to Python join those that they read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.corpus.ingest.accounting import BLANK, MalformedError, Tally
from cocite.corpus.works.columns import as_rows
from cocite.corpus.works.records import parse_work, row_of


@dataclass(frozen=True, kw_only=True)
class Read:
    """Some works of a file, in the columns of `columns.SCHEMA`."""

    works: pa.RecordBatch
    odd: NDArray[np.bool_]
    """Which of them the reader leaves to Python."""
    record: Callable[[int], bytes | dict[str, Any]]
    """A record as it is, by its place: a line of JSON, or keys and values."""


def all_works(parts: Iterable[Read], tally: Tally) -> Iterator[pa.RecordBatch]:
    """The works of a file, but for blank and malformed lines, which are counted."""
    before = 0
    for part in parts:
        if not part.odd.any():
            yield part.works
        else:
            yield part.works.filter(pa.array(~part.odd))
            rows = [_row(part, place, before, tally) for place in np.flatnonzero(part.odd).tolist()]
            yield as_rows([row for row in rows if row is not None], part.works.schema.names)
        before += len(part.odd)


def _row(part: Read, place: int, before: int, tally: Tally) -> dict[str, Any] | None:
    """The row of a record that is left to Python; None where it gives none."""
    try:
        record = part.record(place)
        if isinstance(record, dict):
            return row_of(record)
        if record.strip():
            return parse_work(record)
        tally.outcomes[BLANK] += 1
    except MalformedError as error:
        tally.note_malformed(before + place + 1, str(error))
    return None
