"""What tests of the corpus make: lines, rows, small corpora, and the stage from a configuration to merged tables."""

from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.corpus.made_openalex import FOLDERS
from tests.papers import papers_table
from tests.rows import write_rows as write_tuples

from cocite.config.configuration import Corpus, resolve
from cocite.config.release_folder import DATASETS
from cocite.config.settings import entry_of
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, write_table
from cocite.corpus.ingest.accounting import account
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.release_shards import IngestSettings, ingest
from cocite.corpus.ingest.sentences import merge_contexts
from cocite.corpus.ingest.user_tables import ingest_tables, list_names, number_names
from cocite.corpus.release.plan import list_shards

Row = dict[str, Any]
LIMITS = {"memory_mb": 500, "threads": 1}


@dataclass(frozen=True)
class Made:
    results: Path

    def rows(self, table: str) -> list[Row]:
        return sorted(
            read_table(self.results / "corpus" / table, table).to_pylist(), key=lambda row: [*row.values()][:2]
        )

    @property
    def papers(self) -> dict[int, Row]:
        return {row["corpusid"]: row for row in self.rows("papers")}

    @property
    def pairs(self) -> set[tuple[int, int]]:
        rows = self.rows("citations")
        pairs = {(row["citing"], row["cited"]) for row in rows}
        assert len(pairs) == len(rows)
        return pairs

    @property
    def names(self) -> dict[int, str]:
        table = read_table(self.results / "corpus/names.parquet", "names")
        return dict(zip(table["corpusid"].to_pylist(), table["name"].to_pylist(), strict=True))

    @property
    def named_pairs(self) -> set[tuple[str, str]]:
        return {(self.names[citing], self.names[cited]) for citing, cited in self.pairs}

    def omitted(self, word: str) -> int:
        """What was left out for a reason with this word, in all steps."""
        files = (self.results / "corpus/omissions").glob("*.parquet")
        return sum(row["count"] for file in files for row in pq.read_table(file).to_pylist() if word in row["reason"])


def make_corpus(results: Path, corpus: Row, *, threads: int = 1, release: str = "mine") -> Made:
    """Run the steps from the list of shards to the merged tables; the corpus is a section of a configuration."""
    config = resolve({"release": release, "corpus": corpus, "pathvars": {"results": str(results)}})
    source = entry_of(config["corpus"], Corpus)
    folder, cost = results / "corpus", LIMITS | {"threads": threads}
    manifest, ingested = folder / "manifest.json", folder / "ingested"
    list_shards(source, release=release, results=results, output=manifest)
    is_table, with_contexts = source.source == "table", source.contexts is not None
    numbering = is_table and source.ids == "string"
    if numbering:
        for dataset in ("papers", "citations"):
            parts = source.parts(dataset)
            for part in range(parts):
                place = {"manifest": manifest, "part": part, "parts": parts}
                output = ingested / f"{dataset}/names/{part}.parquet"
                list_names(dataset, source.table_of(dataset), **place, **cost, output=output)
        listed = [ingested / f"{dataset}/names" for dataset in ("papers", "citations")]
        number_names(listed, output=folder / "names.parquet", **cost)
    for dataset in DATASETS:
        report, parts, is_citations = folder / "ingest_report" / dataset, source.parts(dataset), dataset == "citations"
        for part in range(parts):
            place = {"manifest": manifest, "part": part, "parts": parts, "buckets": source.buckets}
            written = {"output": ingested / f"{dataset}/{part}.parquet", "report": report / f"{part}.parquet"}
            if numbering:
                names = ingested / f"{'citations' if is_citations else 'papers'}/names/{part}.parquet"
                written |= {"listed": names, "names": folder / "names.parquet"}
            if with_contexts and is_citations:
                written["contexts"] = ingested / f"citations/contexts/{part}.parquet"
            if is_table:
                ingest_tables(dataset, source.table_of(dataset), **place, **cost, **written)
            else:
                shards = source.shards_in_place(dataset)[part].parent
                ingest(dataset, shards=shards, ids="drop", authors=source.authors, **place, **cost, **written)
        account(report, malformed=source.malformed, omissions=folder / f"omissions/ingest-{dataset}.parquet")
    for bucket in range(source.buckets):
        for table in ("papers", "citations"):
            omissions = folder / f"omissions/merge-{table}-{bucket}.parquet"
            written = {"output": folder / f"{table}/{bucket}.parquet", "omissions": omissions}
            merge(table, ingested=ingested, bucket=bucket, until=source.until, **written, **cost)
        if with_contexts:
            written = {"output": folder / f"contexts/{bucket}.parquet", "omissions": results / "omitted.parquet"}
            years = {"papers": ingested / "papers", "until": source.until}
            contexts = ingested / "citations/contexts"
            merge_contexts(source.contexts, ingested=contexts, bucket=bucket, **years, **written, **cost)
    return Made(results)


SHARD = "20260101_000000_00000_x.gz"


def settings(dataset: str, **options) -> IngestSettings:
    usual = {"buckets": 1, "keep_ids": False, "memory_mb": 500, "threads": 1}
    return IngestSettings(dataset=dataset, **(usual | options))


class Ingested:
    def __init__(self, folder: Path) -> None:
        self.rows = pq.read_table(folder / "out").to_pylist()
        self.buckets = [row.pop("bucket") for row in self.rows]
        self.report = pq.read_table(folder / "report").to_pylist()

    def lines(self, word: str) -> int:
        """Lines with an outcome that holds the word, over all shards."""
        return sum(row["lines"] for row in self.report if word in row["outcome"])


def citation(citing, cited, influential=False, intents=None, **more) -> dict:
    return {"citingcorpusid": citing, "citedcorpusid": cited, "isinfluential": influential, "intents": intents, **more}


def row(citing, cited, *traits, citationid=None) -> dict:
    bits = {"background": 1, "methodology": 2, "result": 4, "influential": 8, "unknown": 16}
    return {"citationid": citationid, "citing": citing, "cited": cited, "traits": sum(bits[trait] for trait in traits)}


def write_rows(path: Path, name: str, rows: list[Row], *optional: str) -> Path:
    """Write a table, with these optional columns and those that a row has; keys that a row lacks are null."""
    given = {*optional, *(key for row in rows for key in row)}
    schema = empty_schema(TABLES[name])
    columns = TABLES[name].columns
    schema = pa.schema([field for field in schema if field.name in given or not columns[field.name].optional])
    write_table(path, name, pa.Table.from_pylist([dict.fromkeys(schema.names) | row for row in rows], schema))
    return path


def left_out(path: Path, *, zero: bool = False) -> dict[str, int]:
    """Reason → count of a table of omissions; of those above 0, or of all."""
    rows = read_table(path, "omissions").to_pylist()
    return {row["reason"]: row["count"] for row in rows if row["count"] or zero}


def merged(folder: Path, buckets=2, until=None):
    """The tables papers and citations of what was ingested, and what was left out of them."""
    rows, omissions = {}, Counter()
    for table in ("papers", "citations"):
        rows[table] = []
        for bucket in range(buckets):
            output, omitted = folder / "merged" / f"{table}-{bucket}", folder / "merged" / f"left-{table}-{bucket}"
            merge(table, ingested=folder, bucket=bucket, until=until, output=output, omissions=omitted, **LIMITS)
            rows[table] += read_table(output, table).to_pylist()
            omissions.update(left_out(omitted))
    return rows, omissions


def counts(folder):
    totals = Counter()
    for row in pq.read_table(folder / "report").to_pylist():
        totals[row["dataset"], row["outcome"]] += row["lines"]
    return +totals


def files_of(bucket, layout):
    return sorted(path for path in (bucket / FOLDERS[layout] / "works").rglob("part_*"))


PAPERS = 300
WITHOUT_TEXT = 5
FIELDS = [["Biology"], ["Art", "Biology"], ["Physics"], []]
RULE = {"from_": "rule", "count": 40, "min_citations": 3, "min_references": 2, "validation": 0.25, "holdout": 20}


def year_of(paper):
    return None if paper % 7 == 0 else 2000 + paper % 11


def date_of(paper):
    """The day on which a paper appeared; every third has none."""
    year = year_of(paper)
    return None if year is None or paper % 3 == 0 else date(year, paper % 12 + 1, paper % 28 + 1)


def fields_of(paper):
    return FIELDS[paper % len(FIELDS)]


def rows_of_papers(bucket, buckets):
    """Papers 0 … 299; every fifth has no abstract, paper 1 no title, and every seventh no year."""
    ids = [n for n in range(PAPERS) if n % buckets == bucket]
    texts = {n: (None if n == 1 else f"Title {n}", None if n % WITHOUT_TEXT == 0 else "text") for n in ids}
    dated = {"year": [year_of(n) for n in ids], "date": [date_of(n) for n in ids]}
    return papers_table(texts, fields=[fields_of(n) for n in ids], **dated)


def write_corpus(folder, pairs, buckets):
    for bucket in range(buckets):
        write_table(folder / "papers" / f"{bucket}.parquet", "papers", rows_of_papers(bucket, buckets))
        rows = [(citing, cited, False, []) for citing, cited in pairs if citing % buckets == bucket]
        write_tuples(folder / f"citations/{bucket}.parquet", "citations", "citing cited influential intents", rows)
    return folder


def write_twins(path, works):
    """The table twins, of works given by the ids of their records."""
    rows = sorted((paper, min(records)) for records in works for paper in records)
    return write_tuples(path, "twins", "corpusid group reason score", [(*row, "title", None) for row in rows])


def by_hand(pairs, min_citations, min_references):
    """The candidates, by definition."""
    texts = {n for n in range(PAPERS) if n % WITHOUT_TEXT != 0 and n != 1}
    cited_by = {n: {citing for citing, cited in pairs if cited == n} for n in texts}
    references = {n: {cited for citing, cited in pairs if citing == n} & texts for n in texts}
    return {n for n in texts if len(cited_by[n]) >= min_citations and len(references[n]) >= min_references}


def write_documents(path, titles, short=(), abstracts=None):
    """The table documents, by name and title; those in `short` are short queries."""
    rows = [(name, titles[name], (abstracts or {}).get(name), [], None, name in short) for name in sorted(titles)]
    return write_tuples(path, "documents", "document title abstract more field is_query", rows)
