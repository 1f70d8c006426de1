"""What became of the lines of a shard: each is counted once, and the first malformed one is remembered."""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from cocite.tables import TABLES, empty_schema

KEPT = "kept"
BLANK = "blank lines"
MALFORMED = "malformed lines (not JSON, without an id, or with a list in place of a text)"


@dataclass(kw_only=True)
class Tally:
    """The lines of one shard, counted by outcome."""

    dataset: str
    """papers, abstracts or citations."""
    shard: str
    """Name of the shard."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Outcome → lines; their sum is the number of lines of the shard."""
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
    rows = [
        {
            "dataset": tally.dataset,
            "shard": tally.shard,
            "outcome": outcome,
            "lines": count,
            "first_line": tally.first_line if outcome == MALFORMED else None,
            "fault": tally.fault if outcome == MALFORMED else None,
        }
        for tally in sorted(tallies, key=lambda tally: tally.shard)
        for outcome, count in sorted(tally.outcomes.items())
    ]
    return pa.Table.from_pylist(rows, empty_schema(TABLES["ingest_report"]))
