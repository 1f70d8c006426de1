"""Reading the records of Semantic Scholar and OpenAlex, and uniting the copies of citations."""

import gzip
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.made_records import citation_shards, json_lines, parquet
from tests.benchmarks.measuring import Command, Cost, cocite, compare, python, run, run_together, say

from cocite.core.tables.files import write_table

SHARDS = 4
OUTPUTS = {"output": "ingested", "report": "report"}
CITATION = "{citingcorpusid: 'BIGINT', citedcorpusid: 'BIGINT', isinfluential: 'BOOLEAN', intents: 'VARCHAR'}"
WORK = """
    id, doi, title, display_name, publication_year, cited_by_count, is_retracted, is_paratext, referenced_works,
    abstract_inverted_index, primary_location.source.display_name, primary_topic.field.display_name,
    list_transform(topics, lambda topic: topic.field.display_name)
"""
ROWS, BUCKETS = 100_000_000, 8
SHARE_OF_COPIES = 0.45
ROWS_AT_ONCE = 4_000_000
REFERENCES, PAPERS = 20, 280_000_000


def ingest(kept: Path) -> None:
    """Ingesting citations, with and without their contexts, beside igzip, json.loads a line, and DuckDB."""
    shards = citation_shards(kept / "shards", SHARDS)
    say(f"A shard has {shards[0].stat().st_size / 1e9:.2f} GB packed; igzip is {' '.join(_igzip(shards[0])[:-2])}.")

    one = _ingest(kept, shards, part=0, parts=SHARDS, threads=2)
    cost, _ = compare("Ingest of a shard to igzip -dc of it", one, _igzip(shards[0]), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")
    contexts = kept / "contexts-0.parquet"
    title = "Ingest of a shard with its contexts to igzip -dc of it"
    cost, _ = compare(title, [*one, "--contexts", contexts], _igzip(shards[0]), "wall")
    written = contexts.stat().st_size / 1e9
    say(f"Its peak memory: {cost.peak_mb:.0f} MB; its contexts take {written:.2f} GB.")

    cores = os.cpu_count() or 1
    ours = [[_ingest(kept, shards, part=core, parts=cores, threads=1)] for core in range(cores)]
    theirs = [[_igzip(shard) for shard in shards[core::cores]] for core in range(cores)]
    title = f"Ingest of {SHARDS} shards on {cores} cores to igzip -dc of them"
    compare(title, lambda: run_together(ours), lambda: run_together(theirs), "cpu", rounds=3)

    naive = python(read_naively, shards[0], kept / "unpacked.jsonl")
    compare("Unpacking to disk and json.loads to ingest", naive, one, "wall", rounds=1)
    alone = python(read_shard, shards[0], kept / "alone.parquet")
    compare("DuckDB alone, from .gz to Parquet, to ingest", alone, one, "wall", rounds=3)

    large = kept / "large" / "large.gz"
    large.parent.mkdir(exist_ok=True)
    with large.open("wb") as file, shards[0].open("rb") as packed:
        for _ in range(4):
            packed.seek(0)
            shutil.copyfileobj(packed, file)
    four = _ingest(kept, [large], part=0, parts=1, threads=2)
    say(f"Peak memory with four times the input in one shard: {run(four).peak_mb:.0f} MB.")
    peak_mb = run([*four, "--contexts", contexts]).peak_mb
    say(f"Peak memory with four times the input and with contexts: {peak_mb:.0f} MB.")
    shutil.rmtree(large.parent)


def _igzip(shard: Path) -> Command:
    """What unpacks a shard to nowhere."""
    program = ["igzip"] if shutil.which("igzip") else [sys.executable, "-m", "isal.igzip"]
    return [*program, "-dc", str(shard)]


def _ingest(folder: Path, shards: Sequence[Path], **options: int) -> Command:
    manifest = _manifest(folder / f"{shards[0].stem}.json", "2026-01-06", citations=shards, papers=(), abstracts=())
    options |= {"buckets": 256, "memory_mb": 1000}
    files = {name: folder / f"{file}-{options['part']}.parquet" for name, file in OUTPUTS.items()}
    read = {"manifest": manifest, "shards": shards[0].parent, "ids": "drop"}
    return cocite("corpus", "ingest", "citations", **read, **options, **files)


def _manifest(path: Path, release: str, **shards: Sequence[Path]) -> Path:
    """Write what a manifest of a release says of these shards."""
    datasets = {
        name: {"shards": [{"name": file.name, "bytes": file.stat().st_size} for file in files], "readme": ""}
        for name, files in shards.items()
    }
    path.write_text(json.dumps({"release": release, "datasets": datasets}))
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


def read_shard(shard: Path, output: Path) -> None:
    """Write the citations of a shard whose cited paper is known, by DuckDB."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2, "preserve_insertion_order": False})
    connection.execute(
        f"""
        COPY (
            SELECT * FROM read_json($shard, format = 'newline_delimited', columns = {CITATION}, ignore_errors = true)
            WHERE citedcorpusid IS NOT NULL
        ) TO '{output}' (FORMAT parquet, COMPRESSION zstd)
        """,
        {"shard": str(shard)},
    )


def works(kept: Path) -> None:
    """Reading OpenAlex's works compared with igzip, pandas and DuckDB."""
    files = kept / "works"
    for make in (json_lines, parquet):
        run(python(make, files))  # in a process of its own, which holds more than what is measured
    packed, columns = json_lines(files), parquet(files)
    title = "Ingest of a file of works in JSON Lines to igzip -dc of it"
    cost, _ = compare(title, _ingest_works(kept, packed), _igzip(packed), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")

    ours = _ingest_works(kept, columns)
    title = "Ingest of a file of works in Parquet to DuckDB's reading of its columns"
    cost, _ = compare(title, ours, python(read_works, columns), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")
    title = "Ingest of a file of works in Parquet to pandas"
    compare(title, ours, python(convert_with_pandas, columns, files), "wall", rounds=1)


def _ingest_works(folder: Path, file: Path) -> Command:
    """The command that reads a file into as many buckets as a whole copy needs, one for 40 million citations."""
    manifest = _manifest(folder / f"{file.name}.json", "2026-06-24", works=[file])
    outputs = {name: folder / f"works-{name}.parquet" for name in ("papers", "abstracts", "citations", "report")}
    limits = {"part": 0, "parts": 1, "buckets": 64, "memory_mb": 1000, "threads": 2}
    return cocite("corpus", "ingest-works", settings={}, manifest=manifest, shards=file.parent, **limits, **outputs)


def read_works(path: Path) -> None:
    """Read the columns that a corpus needs on two threads by DuckDB, and do nothing with them."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        for _ in connection.sql(f"SELECT {WORK} FROM '{path}'").to_arrow_reader(100_000):
            pass


def convert_with_pandas(path: Path, folder: Path) -> None:
    import pandas as pd

    names = ["id", "doi", "title", "publication_year", "cited_by_count", "is_retracted", "is_paratext", "topics"]
    names += ["referenced_works", "abstract_inverted_index", "primary_location", "primary_topic"]
    works = pd.read_parquet(path, columns=names)
    works = works[~works.is_retracted & ~works.is_paratext]
    works["corpusid"] = works.id.str.removeprefix("https://openalex.org/W").astype("int64")
    works["doi"] = works.doi.str.removeprefix("https://doi.org/")
    works["venue"] = works.primary_location.map(lambda place: (place["source"] or {}).get("display_name"))
    works["fields"] = works.topics.map(lambda topics: list({topic["field"]["display_name"] for topic in topics}))
    works["reference_count"] = works.referenced_works.str.len()
    columns = ["corpusid", "title", "publication_year", "venue", "fields", "doi", "cited_by_count", "reference_count"]
    works[columns].to_parquet(folder / "pandas-papers.parquet", compression="zstd")
    abstracts = works[["corpusid", "abstract_inverted_index"]].dropna()
    abstracts["abstract"] = abstracts.abstract_inverted_index.map(_put_together)
    abstracts[["corpusid", "abstract"]].to_parquet(folder / "pandas-abstracts.parquet", compression="zstd")
    citations = works[["corpusid", "referenced_works"]].explode("referenced_works").dropna()
    citations["cited"] = citations.referenced_works.str.removeprefix("https://openalex.org/W").astype("int64")
    citations[["corpusid", "cited"]].to_parquet(folder / "pandas-citations.parquet", compression="zstd")


def _put_together(index: str) -> str:
    places = [(place, word) for word, places in json.loads(index).items() for place in places]
    return " ".join(word for _, word in sorted(places))


def merge(folder: Path) -> None:
    """Uniting the copies of citations: 100 million rows, and four times as many within the same memory."""
    once, fourfold = (_merge_all(folder, rows) for rows in (ROWS, 4 * ROWS))
    say(f"Merging four times the rows: {fourfold / once:.2f} × the time.")


def _merge_all(folder: Path, rows: int) -> float:
    _write_copies(folder / "ingested/citations", rows)
    merged = [folder / "merged" / f"{bucket}.parquet" for bucket in range(BUCKETS)]
    cost = sum((_merge(folder, bucket, output) for bucket, output in enumerate(merged)), Cost(wall=0, cpu=0, peak_mb=0))
    distinct = sum(pq.read_metadata(path).num_rows for path in merged)
    shutil.rmtree(folder / "ingested")
    copies = f"{SHARE_OF_COPIES:.0%} of them copies"
    say(f"Merging {rows:,} rows, {copies}, to {distinct:,} citations in {BUCKETS} buckets: {cost}.")
    return cost.wall


def _merge(folder: Path, bucket: int, output: Path) -> Cost:
    limits = {"memory_mb": 2800, "threads": 2, "output": output, "omissions": output.with_suffix(".omissions")}
    return run(cocite("corpus", "merge", "citations", ingested=folder / "ingested", bucket=bucket, **limits))


def _write_copies(folder: Path, rows: int, shards: int = 8) -> None:
    """Write so many rows, each copy of a citation drawn at random among the distinct ones; deterministic."""
    rng = np.random.default_rng(rows)
    for shard in range(shards):
        first, last = rows * shard // shards, rows * (shard + 1) // shards
        batches = _copies(rng, first, last, rows - int(rows * SHARE_OF_COPIES))
        write_table(folder / f"{shard}.parquet", "ingested_citations", batches)


def _copies(rng: np.random.Generator, first: int, last: int, distinct: int) -> Iterator[pa.RecordBatch]:
    for start in range(first, last, ROWS_AT_ONCE):
        places = np.arange(start, min(start + ROWS_AT_ONCE, last))
        citation = np.where(places < distinct, places, rng.integers(0, distinct, len(places)))
        citing = citation // REFERENCES * 2_654_435_761 % PAPERS
        bucket = (citing % BUCKETS).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        # An id of 28 bits for each citation (Fibonacci hashing).
        cited = (citation[order].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(36)).astype(np.int64)
        traits = np.where(rng.random(len(places)) < 0.3, rng.integers(0, 16, len(places)), 0).astype(np.uint8)
        columns = {"citationid": pa.nulls(len(places), pa.int64()), "citing": citing[order], "cited": cited}
        batch = pa.record_batch({"bucket": bucket[order], **columns, "traits": traits})
        starts = np.searchsorted(bucket[order], np.arange(BUCKETS + 1)).tolist()
        yield from (batch.slice(start, stop - start) for start, stop in pairwise(starts))
