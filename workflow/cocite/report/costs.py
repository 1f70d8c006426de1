"""What a run took: the last lines of the jobs' logs, summed up by rule, and Snakemake itself."""

import re
import time
from collections.abc import Mapping
from glob import escape
from pathlib import Path

import polars as pl
import psutil

from cocite.config.started import Start, is_alive
from cocite.core.progress import clock_time, last_usage
from cocite.core.tables.files import write_table

SNAKEMAKE = "snakemake"
"""The row of the table `costs` for the process that starts the jobs; no rule has this name."""
OF_ALL = "all together"
"""The row for all of them in the report."""
SCHEMA = {"rule": pl.String} | dict.fromkeys(("seconds", "cpu_seconds", "peak_mb", "ended"), pl.Float64)


def read_jobs(logs: Mapping[str, str], start: Start | None) -> pl.DataFrame:
    """The last run of each finished job, and Snakemake if it runs on this machine; `ended` is by the system's clock.

    `logs` is the path of each rule's logs, with names in braces; `start` is the current run.
    """
    rules: dict[str, list[str]] = {}
    for rule, path in logs.items():
        rules.setdefault("*".join(map(escape, re.split(r"\{[^}]*\}", path))), []).append(rule)
    counted, rows = set[Path](), []
    # A log that two patterns match belongs to the rule whose pattern is longer.
    for pattern, names in sorted(rules.items(), key=lambda item: -len(item[0].replace("*", ""))):
        root = Path(Path(pattern).anchor)
        found = set(root.glob(str(Path(pattern).relative_to(root)))) - counted
        counted |= found
        for file in sorted(found):
            if took := last_usage(file):
                rows.append({"rule": " or ".join(sorted(names)), **vars(took), "ended": file.stat().st_mtime})
    if start is not None and is_alive(start):
        process, now = psutil.Process(start.process), time.time()
        used = process.cpu_times()
        of_process = {"seconds": now - process.create_time(), "cpu_seconds": used.user + used.system}
        rows.append({"rule": SNAKEMAKE, **of_process, "peak_mb": process.memory_info().rss / 1e6, "ended": now})
    return pl.DataFrame(rows, schema=SCHEMA)


def write_costs(jobs: pl.DataFrame, output: Path) -> None:
    """Write the table `costs`."""
    costs = jobs.group_by("rule").agg(
        pl.len().cast(pl.Int64).alias("jobs"),
        pl.col("seconds").sum(),
        pl.col("seconds").max().alias("longest_seconds"),
        pl.col("cpu_seconds").sum(),
        pl.col("peak_mb").max(),
    )
    write_table(output, "costs", costs.sort("rule").to_arrow())


def time_at_work(jobs: pl.DataFrame) -> float:
    """Seconds in which Snakemake or at least one job ran; pauses between two starts of a run do not count."""
    seconds, until = 0.0, 0.0
    for start, end in jobs.select(start=pl.col("ended") - pl.col("seconds"), end="ended").sort("start").rows():
        seconds += max(0.0, end - max(start, until))
        until = max(until, end)
    return seconds


def costs_of_rules(costs: pl.DataFrame, seconds_at_work: float) -> pl.DataFrame:
    """The table `costs` as text, the rule that took the longest first and all of them together last.

    Jobs run in parallel: together they took `seconds_at_work`, which is less than their sum.
    """
    of_rules = pl.col("rule") != SNAKEMAKE
    of_all = costs.select(
        rule=pl.lit(OF_ALL),
        jobs=pl.col("jobs").filter(of_rules).sum(),
        seconds=pl.lit(seconds_at_work),
        longest_seconds=pl.col("longest_seconds").filter(of_rules).max(),
        cpu_seconds=pl.col("cpu_seconds").sum(),
        peak_mb=pl.col("peak_mb").max(),
    )
    rows = pl.concat([costs.select(of_all.columns).sort("seconds", "rule", descending=[True, False]), of_all])
    shown = {
        "jobs": ("jobs", "{:,}".format),
        "time": ("seconds", clock_time),
        "longest job": ("longest_seconds", clock_time),
        "processor time": ("cpu_seconds", clock_time),
        "largest memory, MB": ("peak_mb", "{:,.0f}".format),
    }
    cells = {name: pl.col(of).map_elements(to_text, return_dtype=pl.String) for name, (of, to_text) in shown.items()}
    return rows.select("rule", **cells)
