"""What made the results: the configuration with defaults, the release, the machine, the versions, and the corpus."""

import json
import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import psutil
import pyarrow as pa
import typer
from duckdb import DuckDBPyRelation

from cocite import __version__
from cocite.config.origins import packages_of
from cocite.core.atomic import read_json, write_text
from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Results, Threads
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


def write_provenance(
    *,
    configuration: Annotated[Path, typer.Option(help="File of the resolved configuration, as JSON.")],
    spaces: Annotated[str, typer.Option(help="The rows of the table id_spaces, as JSON.")],
    manifest: Annotated[Path, typer.Option(help="Manifest from `cocite corpus list`.")],
    output: Output,
    ids: Annotated[Path, typer.Option(help="Table id_spaces to write: whose ids the corpus and benchmarks have.")],
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
    """The processor (its architecture where /proc does not name it, as on macOS), cores, memory in MB, and GPUs."""
    lines = PROCESSORS.read_text(encoding="utf-8").splitlines() if PROCESSORS.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    gpus, command = "", ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    with suppress(subprocess.SubprocessError, OSError):  # without NVIDIA's driver
        gpus = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "memory_mb": round(psutil.virtual_memory().total / 1e6),
        "gpus": [name.strip() for name in gpus.splitlines() if name.strip()],
    }


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
            **{f"papers: {split}": number for split, number in values_of("queries", "split").fetchall()},
        }
        sizes = pa.table({"measure": list(measured), "value": list(measured.values())})
        write_table(statistics, "corpus_statistics", sizes)
        tables = []
        for graph, table in sorted(json.loads(pairs).items()):  # in which each pair has one row
            counted = values_of(table, "count", graph=graph).to_arrow_table().rename_columns(["count", "pairs"])
            tables.append(counted.append_column("graph", pa.array([graph] * len(counted), pa.string())))
    write_table(counts, "pair_counts", pa.concat_tables(tables) if tables else [])
