"""What a killed run left is removed by the next one, and a clock that was set back costs no result."""

import os
import time

import pytest

ACCOUNTED = "results/corpus/omissions/ingest-papers.parquet"
MANIFEST = "results/corpus/manifest.json"


@pytest.mark.long
def test_raw_shards_that_were_ingested_before_a_kill_are_removed_and_files_from_the_future_are_named(run):
    run.make(ACCOUNTED, options=["--notemp"])
    raw, made = run.folder / "results/corpus/raw", run.folder / ACCOUNTED
    assert list(raw.rglob("*.gz"))
    made.unlink()
    run.make(ACCOUNTED, options=["--dry-run"])
    assert list(raw.rglob("*.gz"))

    manifest, later = run.folder / MANIFEST, time.time() + 3600
    content, before = manifest.read_bytes(), manifest.stat()
    os.utime(manifest, (later, later))
    result = run.snakemake("results/corpus/papers/0.parquet")
    said = result.stdout + result.stderr
    assert result.returncode == 1
    assert f"{MANIFEST} is of " in said
    assert "find results/corpus -newermt now -exec touch {} +" in said
    assert manifest.read_bytes() == content
    assert list(raw.rglob("*.gz"))

    os.utime(manifest, (before.st_atime, before.st_mtime))
    assert "raw/papers/0, which a killed run left" in run.make(ACCOUNTED)
    assert not (raw / "papers/0").exists()
    assert (run.folder / "results/corpus/ingested/papers/0.parquet").exists()
