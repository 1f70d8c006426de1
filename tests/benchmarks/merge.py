"""Uniting the copies of citations: 100 million rows, and four times as many within the same memory."""

import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
from tests.benchmarks.copies import SHARE_OF_COPIES, write_copies
from tests.benchmarks.measuring import run, say

ROWS = 100_000_000
BUCKETS = 8
MEMORY_MB = 2800


def main(folder: Path) -> None:
    """Print the times and their ratio."""
    once, fourfold = (_merge_all(folder / "copies", rows) for rows in (ROWS, 4 * ROWS))
    say(f"Merging four times the rows: {fourfold / once:.2f} × the time.")


def _merge_all(folder: Path, rows: int) -> float:
    """Seconds to merge so many rows, bucket after bucket."""
    write_copies(folder / "ingested/citations", rows=rows, shards=8, buckets=BUCKETS)
    merged = [folder / "merged" / f"{bucket}.parquet" for bucket in range(BUCKETS)]
    costs = [run(_merge_command(folder, bucket, output)) for bucket, output in enumerate(merged)]
    distinct = sum(pq.read_metadata(path).num_rows for path in merged)
    shutil.rmtree(folder)
    seconds, peak_mb = sum(cost.wall for cost in costs), max(cost.peak_mb for cost in costs)
    say(
        f"Merging {rows:,} rows, {SHARE_OF_COPIES:.0%} of them copies, to {distinct:,} citations in {BUCKETS} buckets: "
        f"{seconds:.1f} s, peak memory {peak_mb:.0f} MB."
    )
    return seconds


def _merge_command(folder: Path, bucket: int, output: Path) -> list[str | Path]:
    return [
        *(Path(sys.executable).with_name("cocite"), "corpus", "merge", "citations"),
        *("--ingested", folder / "ingested", "--bucket", str(bucket)),
        *("--memory-mb", str(MEMORY_MB), "--threads", "2"),
        *("--output", output, "--omissions", output.with_suffix(".omissions")),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
