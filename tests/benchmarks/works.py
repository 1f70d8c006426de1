"""Reading OpenAlex's works compared with igzip, pandas and DuckDB."""

import json
from pathlib import Path

from tests.benchmarks.ingest import igzip
from tests.benchmarks.made_works import json_lines, parquet
from tests.benchmarks.measuring import Command, cocite, compare, python, run, say

BUCKETS = 64
"""As many as a whole copy needs: one for each 40 million citations."""
COLUMNS = """
    id, doi, title, display_name, publication_year, cited_by_count, is_retracted, is_paratext, referenced_works,
    abstract_inverted_index, primary_location.source.display_name, primary_topic.field.display_name,
    list_transform(topics, lambda topic: topic.field.display_name)
"""
KEPT = True


def main(folder: Path) -> None:
    works = folder / "works"
    for make in (json_lines, parquet):
        run(python(make, works))  # in a process of its own, which holds more than what is measured
    packed, columns = json_lines(works), parquet(works)
    title = "Ingest of a file of works in JSON Lines to igzip -dc of it"
    cost, _ = compare(title, _ingest(folder, packed), igzip(packed), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")

    ours = _ingest(folder, columns)
    title = "Ingest of a file of works in Parquet to DuckDB's reading of its columns"
    cost, _ = compare(title, ours, python(read_with_duckdb, columns), "wall")
    say(f"Its peak memory: {cost.peak_mb:.0f} MB.")
    title = "Ingest of a file of works in Parquet to pandas"
    compare(title, ours, python(convert_with_pandas, columns, works), "wall", rounds=1)


def _ingest(folder: Path, file: Path) -> Command:
    manifest = folder / f"{file.name}.json"
    listed = [{"name": file.name, "bytes": file.stat().st_size}]
    manifest.write_text(json.dumps({"release": "2026-06-24", "datasets": {"works": {"shards": listed, "readme": ""}}}))
    outputs = {name: folder / f"works-{name}.parquet" for name in ("papers", "abstracts", "citations", "report")}
    limits = {"part": 0, "parts": 1, "buckets": BUCKETS, "memory_mb": 1000, "threads": 2}
    options = {"settings": {}, "manifest": manifest, "shards": file.parent, **limits}
    return cocite("corpus", "ingest-works", **options, **outputs)


def read_with_duckdb(path: Path) -> None:
    """Read the columns that a corpus needs on two threads, and do nothing with them."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        for _ in connection.sql(f"SELECT {COLUMNS} FROM '{path}'").to_arrow_reader(100_000):
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
    abstracts["abstract"] = abstracts.abstract_inverted_index.map(put_together)
    abstracts[["corpusid", "abstract"]].to_parquet(folder / "pandas-abstracts.parquet", compression="zstd")
    citations = works[["corpusid", "referenced_works"]].explode("referenced_works").dropna()
    citations["cited"] = citations.referenced_works.str.removeprefix("https://openalex.org/W").astype("int64")
    citations[["corpusid", "cited"]].to_parquet(folder / "pandas-citations.parquet", compression="zstd")


def put_together(index: str) -> str:
    places = [(place, word) for word, places in json.loads(index).items() for place in places]
    return " ".join(word for _, word in sorted(places))
