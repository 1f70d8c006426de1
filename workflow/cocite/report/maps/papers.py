"""The papers of a map and their labels: chosen once for all models, so that each of them places the same ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cocite.config.map import FIELD, MapSettings
from cocite.ground.errors import InputError
from cocite.ground.randomness import generator
from cocite.tables.files import verified_files, write_table

LABELLED = "labelled"


def write_papers(
    benchmark: Path,
    settings: MapSettings,
    tasks: Sequence[str],
    *,
    only_queries: bool,
    corpus: Path | None,
    seed: int,
    papers: Path,
    labels: Path,
) -> None:
    """Write the tables `map_papers` and `map_labels` of a map.

    `benchmark` is the folder of a benchmark's tables, `tasks` are those of its tasks whose labels are classes, and
    `corpus` is the table of papers where documents are papers of the corpus, which knows their years.

    Raises `InputError` where no document has a label that the settings name.
    """
    documents = _documents(benchmark, only_queries=only_queries)
    found = _labels(benchmark, documents, tasks)
    if settings.labels is not None:
        _check_labels(benchmark, settings.labels, found)
        found = found.filter(pl.col("label").is_in(settings.labels))
    chosen = _chosen(documents["document"], found["document"].unique(), settings.papers, seed)
    shown = documents.filter(pl.col("document").is_in(chosen.implode())).sort("document")
    shown = shown.select("document", "title", year=_years(shown, corpus))
    write_table(papers, "map_papers", shown.to_arrow())
    of_chosen = found.filter(pl.col("document").is_in(chosen.implode())).sort("label", "document")
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
    return (
        pl.concat([of_fields, of_tasks]).drop_nulls().unique(["label", "document"], keep="first", maintain_order=True)
    )


def _check_labels(benchmark: Path, asked: Sequence[str], found: pl.DataFrame) -> None:
    there = found["label"].unique().sort().to_list()
    for name in asked:
        if name not in there:
            raise InputError(
                f"{benchmark}: no document on the map has the label {name}, which the configuration names (labels: "
                f"they have {', '.join(there) or 'none'})."
            )


def _chosen(documents: pl.Series, labelled: pl.Series, most: int, seed: int) -> pl.Series:
    """The ids of the papers on the map: of more than there may be, drawn ones, those with a label first."""
    drawn = pl.Series(generator(seed, "papers of the map").permutation(len(documents)))
    ranked = pl.DataFrame({"document": documents, "drawn": drawn}).with_columns(
        labelled=pl.col("document").is_in(labelled.implode())
    )
    return ranked.sort([LABELLED, "drawn"], descending=[True, False])["document"].head(most)


def _years(documents: pl.DataFrame, corpus: Path | None) -> pl.Series:
    """The year of each document, null where none is known."""
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
    """The class of each paper by each label, in the order of the papers, null where it has none."""
    return {
        name: papers.join(of_label, on="document", how="left", maintain_order="left")["value"]
        for (name,), of_label in labels.partition_by("label", as_dict=True, maintain_order=True).items()
    }
