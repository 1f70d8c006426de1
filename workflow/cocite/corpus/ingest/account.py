"""Account for every line of a dataset: sums what became of them over its shards, and judges the malformed ones.

A share is judged over the whole dataset, because a single shard of a few lines says little. With
`corpus.base` the shards are the files of the diffs, and the share is one of their lines.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc

from cocite.corpus.ingest.tally import KEPT, MALFORMED
from cocite.ground.errors import InputError
from cocite.tables.files import read_table, write_omissions


def account(reports: Path | Sequence[Path], *, malformed: float, omissions: Path) -> None:
    """Sum the table `ingest_report` of all shards of a dataset, its files or their folder, into its omissions.

    Raises `InputError` if more than the share `malformed` of all lines is malformed; it names the first of them.
    """
    rows = read_table(reports, "ingest_report")
    counts: Counter[str] = Counter({MALFORMED: 0})
    for outcome, lines in zip(rows["outcome"].to_pylist(), rows["lines"].to_pylist(), strict=True):
        counts[outcome] += lines
    if counts[MALFORMED] > malformed * counts.total():
        first = rows.filter(pc.equal(rows["outcome"], MALFORMED)).sort_by("shard").slice(0, 1).to_pylist()[0]
        raise InputError(
            f"{first['dataset']}: {counts[MALFORMED]} of {counts.total()} lines are malformed, more than the share of "
            f"{malformed} that corpus.malformed allows; the first: {first['shard']}, line {first['first_line']}: "
            f"{first['fault']}."
        )
    write_omissions(omissions, {outcome: lines for outcome, lines in counts.items() if outcome != KEPT})
