"""Ingesting citations, with and without their contexts, beside igzip, beside json.loads a line, and beside DuckDB."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.measuring import Command, compare, run, run_together, say
from tests.benchmarks.shards import citation_shards

SHARDS = 4
BUCKETS = 256


def main(folder: Path) -> None:
    """Print each ratio that docs/speed.md states."""
    shards = citation_shards(folder / "shards", SHARDS)
    manifest = _manifest(folder / "manifest.json", shards)
    say(f"A shard has {shards[0].stat().st_size / 1e9:.2f} GB packed; igzip is {' '.join(igzip(shards[0])[:-2])}.")

    one = _ingest(folder, manifest, shards[0].parent, part=0, parts=SHARDS, threads=2)
    cost, _ = compare("Ingest of a shard to igzip -dc of it", lambda: run(one), lambda: run(igzip(shards[0])), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")
    contexts = [*one, "--contexts", folder / "contexts-0.parquet"]
    title = "Ingest of a shard with its contexts to igzip -dc of it"
    cost, _ = compare(title, lambda: run(contexts), lambda: run(igzip(shards[0])), "wall")
    written = (folder / "contexts-0.parquet").stat().st_size
    say(f"Its peak memory: {cost.peak_mb:.0f} MB; its contexts take {written / 1e9:.2f} GB.")

    cores = os.cpu_count() or 1
    ours = [[_ingest(folder, manifest, shards[0].parent, part=core, parts=cores, threads=1)] for core in range(cores)]
    theirs = [[igzip(shard) for shard in shards[core::cores]] for core in range(cores)]
    title = f"Ingest of {SHARDS} shards on {cores} cores to igzip -dc of them"
    compare(title, lambda: run_together(ours), lambda: run_together(theirs), "cpu", rounds=3)

    naive = [sys.executable, "-m", "tests.benchmarks.naive", shards[0], folder / "unpacked.jsonl"]
    compare("Unpacking to disk and json.loads to ingest", lambda: run(naive), lambda: run(one), "wall", rounds=1)

    alone = [sys.executable, "-m", "tests.benchmarks.duckdb_alone", shards[0], folder / "alone.parquet"]
    compare("DuckDB alone, from .gz to Parquet, to ingest", lambda: run(alone), lambda: run(one), "wall", rounds=3)

    large = _concatenated(folder / "large" / "large.gz", [shards[0]] * 4)
    four = _ingest(folder, _manifest(folder / "large.json", [large]), large.parent, part=0, parts=1, threads=2)
    say(f"Peak memory with four times the input in one shard: {run(four).peak_mb:.0f} MB.")
    contexts = [*four, "--contexts", folder / "contexts-0.parquet"]
    say(f"Peak memory with four times the input and with contexts: {run(contexts).peak_mb:.0f} MB.")
    shutil.rmtree(large.parent)


def igzip(shard: Path) -> Command:
    """What unpacks a shard to nowhere."""
    program = ["igzip"] if shutil.which("igzip") else [sys.executable, "-m", "isal.igzip"]
    return [*program, "-dc", str(shard)]


def _ingest(folder: Path, manifest: Path, shards: Path, *, part: int, parts: int, threads: int) -> Command:
    limits = ["--memory-mb", "1000", "--threads", str(threads), "--ids", "drop"]
    return [
        *(Path(sys.executable).with_name("cocite"), "corpus", "ingest", "citations", "--manifest", manifest),
        *("--shards", shards, "--part", str(part), "--parts", str(parts), "--buckets", str(BUCKETS), *limits),
        *("--output", folder / f"ingested-{part}.parquet", "--report", folder / f"report-{part}.parquet"),
    ]


def _manifest(path: Path, shards: Sequence[Path]) -> Path:
    listed = [{"name": shard.name, "bytes": shard.stat().st_size} for shard in shards]
    datasets = {name: {"shards": [], "readme": ""} for name in ("papers", "abstracts")}
    datasets["citations"] = {"shards": listed, "readme": ""}
    path.write_text(json.dumps({"release": "2026-01-06", "datasets": datasets}))
    return path


def _concatenated(path: Path, members: Sequence[Path]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        for member in members:
            with member.open("rb") as packed:
                shutil.copyfileobj(packed, file)
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]))
