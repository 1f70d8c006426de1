"""The papers of a map and their labels, chosen once for all models, so that each of them places the same ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from cocite.config.benchmarks import names
from cocite.config.configuration import Map
from cocite.config.map import FIELD
from cocite.config.settings import GivenAsJson
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed
from cocite.core.randomness import generator
from cocite.core.tables.files import verified_files, write_table


def write_papers(
    *,
    tables: Annotated[Path, typer.Option(help="Folder of the benchmark's tables.")],
    settings: GivenAsJson[Map],
    tasks: Annotated[str, typer.Option(help="Tasks whose labels are classes, with commas between them.")],
    seed: Seed,
    papers: Output,
    labels: Output,
    only_queries: Annotated[bool, typer.Option(help="Leave out documents that are no queries.")] = False,
    corpus: Annotated[
        Path | None, typer.Option(help="Table of papers, where documents are papers of the corpus.")
    ] = None,
) -> None:
    """Choose the papers of a map, and look up their labels.

    Raises `InputError` where no document has a label that the settings name.
    """
    documents = _documents(tables, only_queries=only_queries)
    found = _labels(tables, documents, names(tasks))
    present = found["label"].unique().sort().to_list()
    for name in settings.labels or ():
        if name not in present:
            raise InputError(
                f"{tables}: no document on the map has the label {name}, which the configuration names (labels: they "
                f"have {', '.join(present) or 'none'})."
            )
    if settings.labels is not None:
        found = found.filter(pl.col("label").is_in(settings.labels))
    drawn = pl.Series(generator(seed, "papers of the map").permutation(len(documents)))
    ranked = documents.select(
        "document", drawn=drawn, labelled=pl.col("document").is_in(found["document"].unique().implode())
    )
    chosen = ranked.sort(["labelled", "drawn"], descending=[True, False])["document"].head(settings.papers).implode()
    shown = documents.filter(pl.col("document").is_in(chosen)).sort("document")
    shown = shown.select("document", "title", year=_years(shown, corpus))
    write_table(papers, "map_papers", shown.to_arrow())
    of_chosen = found.filter(pl.col("document").is_in(chosen)).sort("label", "document")
    write_table(labels, "map_labels", of_chosen.to_arrow())


def _documents(benchmark: Path, *, only_queries: bool) -> pl.DataFrame:
    """Id, title and field of the documents, without short queries, by id; with their years if the table has them."""
    rows = pl.scan_parquet(verified_files(benchmark / "documents.parquet", "documents"))
    held = rows.collect_schema().names()
    if "is_query" in held:
        rows = rows.filter(~pl.col("is_query"))
    if only_queries:
        judged = pl.scan_parquet(verified_files(benchmark / "judgements.parquet", "judgements"))
        rows = rows.join(judged.select(document="query").unique(), on="document", how="semi")
    columns = [name for name in ("document", "title", FIELD, "year") if name in held]
    return rows.select(columns).sort("document").collect()


def _labels(benchmark: Path, documents: pl.DataFrame, tasks: Sequence[str]) -> pl.DataFrame:
    """Label, document and class: the fields of study, and the first class of each document in each task."""
    rows = pl.scan_parquet(verified_files(benchmark / "labels.parquet", "labels"))
    of_tasks = (
        rows.filter(pl.col("task").is_in(list(tasks)))
        .select(label="task", document="document", value=pl.col("labels").list.first())
        .join(documents.lazy().select("document"), on="document", how="semi")
        .collect()
    )
    of_fields = documents.select(label=pl.lit(FIELD), document="document", value=FIELD)
    found = pl.concat([of_fields, of_tasks]).drop_nulls()
    return found.unique(["label", "document"], keep="first", maintain_order=True)


def _years(documents: pl.DataFrame, corpus: Path | None) -> pl.Series:
    if "year" in documents.columns:
        return documents["year"].cast(pl.Int32)
    if corpus is None:
        return pl.repeat(None, len(documents), dtype=pl.Int32, eager=True)
    ids = documents.select(corpusid=pl.col("document").cast(pl.Int64, strict=False))
    known = (
        pl.scan_parquet(verified_files(corpus, "papers", ["corpusid", "year"]))
        .select("corpusid", pl.col("year").cast(pl.Int32))
        .join(ids.lazy().drop_nulls(), on="corpusid", how="semi")
        .collect(engine="streaming")
    )
    return ids.join(known, on="corpusid", how="left", maintain_order="left")["year"]


def read_labels(papers: pl.DataFrame, labels: pl.DataFrame) -> Mapping[str, Any]:
    """The class of each paper by each label, in the order of the papers; null if it has none."""
    return {
        name: papers.join(of_label, on="document", how="left", maintain_order="left")["value"]
        for (name,), of_label in labels.partition_by("label", as_dict=True, maintain_order=True).items()
    }
