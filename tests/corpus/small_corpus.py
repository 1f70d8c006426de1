"""A corpus of 300 papers whose texts, years and fields follow from their ids, and which of them a rule allows."""

import pyarrow as pa
from tests.papers import papers_table

from cocite.core.tables.files import write_table

PAPERS = 300
WITHOUT_TEXT = 5
FIELDS = [["Biology"], ["Art", "Biology"], ["Physics"], []]
RULE = {"from_": "rule", "count": 40, "min_citations": 3, "min_references": 2, "validation": 0.25, "holdout": 20}


def year_of(paper):
    return None if paper % 7 == 0 else 2000 + paper % 11


def fields_of(paper):
    return FIELDS[paper % len(FIELDS)]


def rows_of_papers(bucket, buckets):
    """Papers 0 … 299; every fifth has no abstract, paper 1 no title, and every seventh no year."""
    ids = [n for n in range(PAPERS) if n % buckets == bucket]
    texts = {n: (None if n == 1 else f"Title {n}", None if n % WITHOUT_TEXT == 0 else "text") for n in ids}
    return papers_table(texts, fields=[fields_of(n) for n in ids], year=[year_of(n) for n in ids])


def write_corpus(folder, pairs, buckets):
    for bucket in range(buckets):
        write_table(folder / "papers" / f"{bucket}.parquet", "papers", rows_of_papers(bucket, buckets))
        chosen = [pair for pair in pairs if pair[0] % buckets == bucket]
        table = pa.table(
            {
                "citing": pa.array([citing for citing, _ in chosen], pa.int64()),
                "cited": pa.array([cited for _, cited in chosen], pa.int64()),
                "influential": pa.array([False] * len(chosen)),
                "intents": pa.array([[] for _ in chosen], pa.list_(pa.string())),
            }
        )
        write_table(folder / "citations" / f"{bucket}.parquet", "citations", table)
    return folder


def by_hand(pairs, min_citations, min_references):
    """The candidates, by definition."""
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    cited_by = {n: {citing for citing, cited in pairs if cited == n} for n in texts}
    references = {n: {cited for citing, cited in pairs if citing == n} & texts for n in texts}
    return {n for n in texts if len(cited_by[n]) >= min_citations and len(references[n]) >= min_references}


def write_documents(path, titles, short=()):
    """The table documents, by name and title; those in `short` are short queries."""
    names = sorted(titles)
    columns = {
        "document": pa.array(names, pa.string()),
        "title": pa.array([titles[name] for name in names], pa.string()),
        "abstract": pa.nulls(len(names), pa.string()),
        "more": pa.array([[] for _ in names], pa.list_(pa.string())),
        "field": pa.nulls(len(names), pa.string()),
        "is_query": pa.array([name in short for name in names], pa.bool_()),
    }
    write_table(path, "documents", pa.table(columns))
    return path
