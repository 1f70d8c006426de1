"""Reading OpenAlex's works beside igzip, pandas and DuckDB, and putting abstracts together beside a loop in Python."""

import json
import sys
from pathlib import Path

from tests.benchmarks.ingest import igzip
from tests.benchmarks.made_works import json_lines, parquet
from tests.benchmarks.measuring import Command, compare, run, run_and_read, say

BUCKETS = 64
"""As many as a whole copy needs: one for each 40 million citations."""


def main(folder: Path) -> None:
    """Print each ratio that docs/speed.md states of works."""
    # In a process of its own, which holds more than what is measured.
    run([sys.executable, "-m", "tests.benchmarks.made_works", folder / "works"])
    packed = json_lines(folder / "works")
    ours = _ingest(folder, packed)
    title = "Ingest of a file of works in JSON Lines to igzip -dc of it"
    cost, _ = compare(title, lambda: run(ours), lambda: run(igzip(packed)), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")

    columns = parquet(folder / "works")
    ours = _ingest(folder, columns)
    duckdb = [sys.executable, "-m", "tests.benchmarks.works_by_others", "duckdb", columns]
    title = "Ingest of a file of works in Parquet to DuckDB's reading of its columns"
    cost, _ = compare(title, lambda: run(ours), lambda: run(duckdb), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")
    pandas = [sys.executable, "-m", "tests.benchmarks.works_by_others", "pandas", columns, folder / "works"]
    title = "Ingest of a file of works in Parquet to pandas"
    compare(title, lambda: run(ours), lambda: run(pandas), "wall", rounds=1)

    for program in ("kernel", "loop"):
        alone = [sys.executable, "-m", "tests.benchmarks.abstracts_alone", program, columns]
        say(f"Abstracts on one core, {program}: {run_and_read(alone)[1].strip()}")


def _ingest(folder: Path, file: Path) -> Command:
    manifest = folder / f"{file.name}.json"
    listed = [{"name": file.name, "bytes": file.stat().st_size}]
    manifest.write_text(json.dumps({"release": "2026-06-24", "datasets": {"works": {"shards": listed, "readme": ""}}}))
    outputs = [(f"--{name}", folder / f"works-{name}.parquet") for name in ("papers", "abstracts", "citations")]
    return [
        *(Path(sys.executable).with_name("cocite"), "corpus", "ingest-works", "--settings", "{}"),
        *("--manifest", manifest, "--shards", file.parent, "--part", "0", "--parts", "1"),
        *("--buckets", str(BUCKETS), "--memory-mb", "1000", "--threads", "2"),
        *(part for output in outputs for part in output),
        *("--report", folder / "works-report.parquet"),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
