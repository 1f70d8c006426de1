"""What the rules took: the benchmark files that Snakemake wrote beside finished jobs, summed up by rule."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cocite.files import write_table

MEASURED = {"s": pl.Float64, "cpu_time": pl.Float64, "max_rss": pl.Float64}
"""Of what Snakemake measures: seconds, seconds of the processors, MB. A job too short for it has no memory."""
ENDED = "ended"
"""When a job ended, seconds of the system's clock: the time at which its benchmark file was written."""


def read_jobs(benchmarks: Mapping[str, str]) -> pl.DataFrame:
    """The last run of each finished job; `benchmarks` holds the path of each rule's files, with names in braces."""
    return pl.DataFrame(list(_jobs(benchmarks)), schema={"rule": pl.String, **MEASURED, ENDED: pl.Float64})


def write_costs(jobs: pl.DataFrame, output: Path) -> None:
    """Write the table `costs`."""
    costs = jobs.group_by("rule").agg(
        jobs=pl.len().cast(pl.Int64),
        seconds=pl.col("s").sum(),
        longest_seconds=pl.col("s").max(),
        cpu_seconds=pl.col("cpu_time").sum(),
        peak_mb=pl.col("max_rss").max(),
    )
    write_table(output, "costs", costs.fill_null(0.0).sort("rule").to_arrow())


def time_at_work(jobs: pl.DataFrame) -> float:
    """Seconds in which at least one job ran; pauses between two starts of a run do not count."""
    spans = jobs.select(start=pl.col(ENDED) - pl.col("s"), end=ENDED).drop_nulls().sort("start").rows()
    return sum(end - start for start, end in _united(spans))


def _united(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Spans of time, sorted by their start, with those that overlap as one."""
    current: tuple[float, float] | None = None
    for start, end in spans:
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current


def _jobs(benchmarks: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """What each finished job took."""
    rules: dict[str, list[str]] = {}
    for rule, path in benchmarks.items():
        rules.setdefault(re.sub(r"\{[^}]*\}", "*", path), []).append(rule)
    counted: set[Path] = set()
    # A file that two patterns match is of the rule that says more of it.
    for pattern, names in sorted(rules.items(), key=lambda item: -len(item[0].replace("*", ""))):
        root = Path(Path(pattern).anchor)
        found = set(root.glob(str(Path(pattern).relative_to(root)))) - counted
        counted |= found
        for file in sorted(found):
            measured = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
            numbers = {name: _number(measured.get(name)) for name in MEASURED}
            yield {"rule": " or ".join(sorted(names)), **numbers, ENDED: file.stat().st_mtime}


def _number(value: Any) -> float | None:
    """A measured value; Snakemake notes those that it could not take as text."""
    return value if isinstance(value, int | float) else None
