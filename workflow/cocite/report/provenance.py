"""What made the results, and what that took.

The provenance is the configuration with defaults, the release, the machine and the versions; the corpus is described in
numbers. Costs are the last lines of the jobs' logs, summed up by rule, and Snakemake itself.
"""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import psutil
import pyarrow as pa
import typer
from duckdb import DuckDBPyRelation

from cocite import __version__
from cocite.config.origins import packages_of
from cocite.config.started import Start, is_alive
from cocite.core.atomic import read_json, write_text
from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Results, Threads
from cocite.core.progress import clock_time, last_usage
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import count_rows, verified_files, write_table
from cocite.core.tables.places import path_of
from cocite.report.results import Pairs

PROCESSORS = Path("/proc/cpuinfo")
LIBRARIES = (
    *("snakemake", "polars", "pyarrow", "duckdb", "torchbiggraph", "faiss-cpu", "torch", "transformers", "tokenizers"),
    *("safetensors", "peft", "numba", "scipy", "scikit-learn", "pytrec-eval-terrier", "bm25s", "numpy"),
)
DESCRIBING = ("README*", "LICENSE*", "LICENCE*", "ATTRIBUTION*", "CITATION*", "release.json")
"""The names of files in the folder of a release that name its owner."""
SNAKEMAKE = "snakemake"
"""The row of the table `costs` for the process that starts the jobs; no rule has this name."""
OF_ALL = "all together"
"""The row for all of them in the report."""
SCHEMA = {"rule": pl.String} | dict.fromkeys(("seconds", "cpu_seconds", "peak_mb", "ended"), pl.Float64)


def write_provenance(
    *,
    configuration: Annotated[Path, typer.Option(help="File of the resolved configuration, as JSON.")],
    spaces: Annotated[str, typer.Option(help="The rows of the table id_spaces, as JSON.")],
    manifest: Annotated[Path, typer.Option(help="What `cocite corpus list` wrote.")],
    output: Output,
    ids: Annotated[Path, typer.Option(help="Table id_spaces, written: whose ids the corpus and benchmarks have.")],
) -> None:
    """Record what makes the results: configuration, release, machine, versions, and whose ids there are.

    The keys of the configuration are not sorted: the report shows models and benchmarks in the order in which they were
    configured.
    """
    write_table(ids, "id_spaces", pa.Table.from_pylist(json.loads(spaces), empty_schema(TABLES["id_spaces"])))
    resolved, listed = read_json(configuration), read_json(manifest)
    corpus, files = resolved["corpus"], set[str]()
    if corpus["source"] == "directory":
        files = {file.name for pattern in DESCRIBING for file in Path(corpus["path"]).glob(pattern)}
    described = {
        "configuration": resolved,
        "release": listed["release"],
        "shards": {name: len(dataset["shards"]) for name, dataset in listed["datasets"].items()},
        "readmes": {name: dataset.get("readme", "") for name, dataset in listed["datasets"].items()},
        "release_files": sorted(files),
        "packages": packages_of(resolved),
        "machine": describe_machine(),
        "versions": {
            "cocite": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
    }
    write_text(output, json.dumps(described, indent=2, ensure_ascii=False) + "\n")


def describe_machine() -> dict[str, Any]:
    """Name of the processor (the architecture if Linux has no name), its cores, memory in MB, and names of GPUs."""
    lines = PROCESSORS.read_text(encoding="utf-8").splitlines() if PROCESSORS.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "memory_mb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6),
        "gpus": _gpus(),
    }


def _gpus() -> list[str]:
    """The GPUs that NVIDIA's driver lists; none without the driver."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (subprocess.SubprocessError, OSError):
        return []
    return [name.strip() for name in listed.stdout.splitlines() if name.strip()]


def write_corpus_statistics(
    *, results: Results, pairs: Pairs, memory_mb: MemoryMb, threads: Threads, statistics: Output, counts: Output
) -> None:
    """Count the papers, the citations, and how often papers are paired."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=statistics.parent) as database:

        def values_of(table: str, column: str, **of: str) -> DuckDBPyRelation:
            rows = database.read_parquet(verified_files(path_of(results, table, **of), table, [column]))
            return rows.aggregate(f"{column}, count(*) AS number").order(column)

        measured = {
            "papers": count_rows(path_of(results, "papers")),
            "papers with text": dict(values_of("papers", "has_text").fetchall()).get(True, 0),
            "citations": count_rows(path_of(results, "citations")),
            **{f"query papers: {split}": number for split, number in values_of("queries", "split").fetchall()},
        }
        sizes = pa.table({"measure": list(measured), "value": list(measured.values())})
        write_table(statistics, "corpus_statistics", sizes)
        tables = []
        for graph, table in sorted(json.loads(pairs).items()):  # in which each pair has one row
            counted = values_of(table, "count", graph=graph).to_arrow_table().rename_columns(["count", "pairs"])
            tables.append(counted.append_column("graph", pa.array([graph] * len(counted), pa.string())))
    write_table(counts, "pair_counts", pa.concat_tables(tables) if tables else [])


def read_jobs(logs: Mapping[str, str], start: Start | None) -> pl.DataFrame:
    """The last run of each finished job, and Snakemake if it runs on this machine; `ended` is by the system's clock.

    `logs` holds the path of each rule's logs, with names in braces; `start` is the current run.
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
