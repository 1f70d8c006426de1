"""Small tables for tests of baselines: documents, papers, queries; and what is embedded and trained from them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cocite.baselines.steps import Sources, embed_documents, train_baseline
from cocite.config.baseline import Baseline
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import read_table, vectors_of, write_table

Texts = dict[str, tuple[str | None, str | None]]


def documents(path: Path, texts: Texts, queries: Sequence[str] = ()) -> Path:
    """The table documents of these names, each with a title and an abstract; some may be short queries."""
    names = sorted(texts)
    titles, abstracts = ([texts[name][part] for name in names] for part in (0, 1))
    columns = {"document": names, "title": titles, "abstract": abstracts, "more": [[] for _ in names]}
    schema = empty_schema(TABLES["documents"])
    fields = [field for field in schema if queries or field.name != "is_query"]
    whole = {**columns, "field": [None] * len(names)} | ({"is_query": [n in queries for n in names]} if queries else {})
    write_table(path, "documents", pa.table(whole, schema=pa.schema(fields)))
    return path


def papers(path: Path, texts: dict[int, tuple[str | None, str | None]]) -> Path:
    """A bucket of papers with these corpus ids."""
    ids = sorted(texts)
    schema = pa.schema([field for field in empty_schema(TABLES["papers"]) if field.name != "authors"])
    given = {"corpusid": ids, "title": [texts[each][0] for each in ids], "abstract": [texts[each][1] for each in ids]}
    given["fields"] = [[] for _ in ids]
    given["has_text"] = [all(texts[each]) for each in ids]
    columns = [pa.array(given.get(field.name, [None] * len(ids)), field.type) for field in schema]
    write_table(path, "papers", pa.table(columns, schema=schema))
    return path


def queries(path: Path, splits: dict[int, str]) -> Path:
    """The table queries: the split of each paper."""
    rows = dict(sorted(splits.items()))
    write_table(path, "queries", pa.table({"corpusid": list(rows), "split": list(rows.values())}))
    return path


def train(baseline: Baseline, folder: Path, sources: Sources, splits=None, training_seed=1, memory_mb=1000) -> Path:
    """The model of a baseline that was trained on some tables, in a folder that a killed training resumes in."""
    asked = {"seed": 1, "training_seed": training_seed, "memory_mb": memory_mb, "threads": 1}
    asked |= {"queries": queries(folder / "queries.parquet", splits or {}), "state": folder / "state"}
    train_baseline(baseline, sources, **asked, output=folder / "model")
    return folder / "model"


def trained(kind: Baseline, folder: Path, texts: dict, splits=None, training_seed=1, **sources) -> Path:
    """The model of a baseline that was trained on papers with these texts."""
    source = papers(folder / "papers" / "0.parquet", texts)
    return train(kind, folder, Sources(papers=[source], **sources), splits, training_seed)


def embedded(
    baseline: Baseline, source: Path | Texts, output: Path, model=None, seed=1, **sources
) -> dict[str, NDArray[np.float32]]:
    """The vector of each document of a table, or of a table of these texts, that has one."""
    source = documents(output.with_suffix(".texts.parquet"), source) if isinstance(source, dict) else source
    table = "papers" if source.parent.name == "papers" else "documents"
    given = {"settings": baseline, "model": model, "sources": Sources(**sources), "seed": seed, "threads": 1}
    embed_documents(source, table=table, **given, output=output)
    name = "baseline_paper_embeddings" if table == "papers" else "baseline_embeddings"
    read = read_table(output, name)
    return dict(zip(read[TABLES[name].key[-1]].to_pylist(), vectors_of(read), strict=True))
