"""What others do with a Parquet file of works: DuckDB reads the columns, pandas makes the same three tables."""

import json
import sys
from pathlib import Path

COLUMNS = """
    id, doi, title, display_name, publication_year, cited_by_count, is_retracted, is_paratext, referenced_works,
    abstract_inverted_index, primary_location.source.display_name, primary_topic.field.display_name,
    list_transform(topics, lambda topic: topic.field.display_name)
"""


def read_with_duckdb(path: Path) -> None:
    """Read the columns that a corpus needs on two threads, and do nothing with them."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        for _ in connection.sql(f"SELECT {COLUMNS} FROM '{path}'").to_arrow_reader(100_000):
            pass


def convert_with_pandas(path: Path, folder: Path) -> None:
    """Write papers, abstracts and citations."""
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
    """An abstract from its inverted index."""
    places = [(place, word) for word, places in json.loads(index).items() for place in places]
    return " ".join(word for _, word in sorted(places))


if __name__ == "__main__":
    program, *paths = sys.argv[1:]
    {"duckdb": read_with_duckdb, "pandas": convert_with_pandas}[program](*map(Path, paths))
