"""Ingesting citations, with and without their contexts, beside igzip, beside json.loads a line, and beside DuckDB."""

import gzip
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.measuring import Command, cocite, compare, python, run, run_together, say
from tests.benchmarks.shards import citation_shards

SHARDS = 4
BUCKETS = 256
KEPT = True
OUTPUTS = {"output": "ingested", "report": "report"}
COLUMNS = "{citingcorpusid: 'BIGINT', citedcorpusid: 'BIGINT', isinfluential: 'BOOLEAN', intents: 'VARCHAR'}"


def main(folder: Path) -> None:
    shards = citation_shards(folder / "shards", SHARDS)
    manifest = _manifest(folder / "manifest.json", shards)
    say(f"A shard has {shards[0].stat().st_size / 1e9:.2f} GB packed; igzip is {' '.join(igzip(shards[0])[:-2])}.")

    one = _ingest(folder, manifest, shards[0].parent, part=0, parts=SHARDS, threads=2)
    cost, _ = compare("Ingest of a shard to igzip -dc of it", one, igzip(shards[0]), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")
    contexts = [*one, "--contexts", str(folder / "contexts-0.parquet")]
    title = "Ingest of a shard with its contexts to igzip -dc of it"
    cost, _ = compare(title, contexts, igzip(shards[0]), "wall")
    written = (folder / "contexts-0.parquet").stat().st_size
    say(f"Its peak memory: {cost.peak_mb:.0f} MB; its contexts take {written / 1e9:.2f} GB.")

    cores = os.cpu_count() or 1
    ours = [[_ingest(folder, manifest, shards[0].parent, part=core, parts=cores, threads=1)] for core in range(cores)]
    theirs = [[igzip(shard) for shard in shards[core::cores]] for core in range(cores)]
    title = f"Ingest of {SHARDS} shards on {cores} cores to igzip -dc of them"
    compare(title, lambda: run_together(ours), lambda: run_together(theirs), "cpu", rounds=3)

    naive = python(read_naively, shards[0], folder / "unpacked.jsonl")
    compare("Unpacking to disk and json.loads to ingest", naive, one, "wall", rounds=1)

    alone = python(read_with_duckdb, shards[0], folder / "alone.parquet")
    compare("DuckDB alone, from .gz to Parquet, to ingest", alone, one, "wall", rounds=3)

    large = folder / "large" / "large.gz"
    large.parent.mkdir(exist_ok=True)
    with large.open("wb") as file, shards[0].open("rb") as packed:
        for _ in range(4):
            packed.seek(0)
            shutil.copyfileobj(packed, file)
    four = _ingest(folder, _manifest(folder / "large.json", [large]), large.parent, part=0, parts=1, threads=2)
    say(f"Peak memory with four times the input in one shard: {run(four).peak_mb:.0f} MB.")
    contexts = [*four, "--contexts", str(folder / "contexts-0.parquet")]
    say(f"Peak memory with four times the input and with contexts: {run(contexts).peak_mb:.0f} MB.")
    shutil.rmtree(large.parent)


def igzip(shard: Path) -> Command:
    """What unpacks a shard to nowhere."""
    program = ["igzip"] if shutil.which("igzip") else [sys.executable, "-m", "isal.igzip"]
    return [*program, "-dc", str(shard)]


def _ingest(folder: Path, manifest: Path, shards: Path, **options: int) -> Command:
    options |= {"buckets": BUCKETS, "memory_mb": 1000}
    written = {name: folder / f"{file}-{options['part']}.parquet" for name, file in OUTPUTS.items()}
    return cocite("corpus", "ingest", "citations", manifest=manifest, shards=shards, ids="drop", **options, **written)


def _manifest(path: Path, shards: Sequence[Path]) -> Path:
    listed = [{"name": shard.name, "bytes": shard.stat().st_size} for shard in shards]
    datasets = {name: {"shards": [], "readme": ""} for name in ("papers", "abstracts")}
    datasets["citations"] = {"shards": listed, "readme": ""}
    path.write_text(json.dumps({"release": "2026-01-06", "datasets": datasets}))
    return path


def read_naively(shard: Path, unpacked: Path) -> None:
    with gzip.open(shard) as packed, unpacked.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    citations = []
    with unpacked.open("rb") as file:
        for line in file:
            record = json.loads(line)
            if record["citedcorpusid"] is not None:
                citations.append((record["citingcorpusid"], record["citedcorpusid"], record["isinfluential"]))
    unpacked.unlink()


def read_with_duckdb(shard: Path, output: Path) -> None:
    """Write the citations of a shard whose cited paper is known."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2, "preserve_insertion_order": False})
    connection.execute(
        f"""
        COPY (
            SELECT * FROM read_json($shard, format = 'newline_delimited', columns = {COLUMNS}, ignore_errors = true)
            WHERE citedcorpusid IS NOT NULL
        ) TO '{output}' (FORMAT parquet, COMPRESSION zstd)
        """,
        {"shard": str(shard)},
    )
