"""Small tables for tests of baselines: documents, papers, queries; and what is embedded and trained from them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.papers import papers_table
from tests.rows import table_of, write_rows

from cocite.baselines.steps import Sources, embed_documents, train_baseline
from cocite.config.baseline import Baseline
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table

Texts = dict[str, tuple[str | None, str | None]]


def documents(path: Path, texts: Texts, queries: Sequence[str] = ()) -> Path:
    """The table documents of these names, each with a title and an abstract; some may be short queries."""
    rows = [(name, *texts[name], [], None, name in queries) for name in sorted(texts)]
    table = table_of("documents", "document title abstract more field is_query", rows)
    write_table(path, "documents", table if queries else table.drop_columns(["is_query"]))
    return path


def papers(path: Path, texts: dict[int, tuple[str | None, str | None]]) -> Path:
    """A bucket of papers with these corpus ids."""
    write_table(path, "papers", papers_table(texts))
    return path


def queries(path: Path, splits: dict[int, str]) -> Path:
    """The table queries: the split of each paper."""
    return write_rows(path, "queries", "corpusid split", sorted(splits.items()))


def write_vectors(path: Path, given: dict) -> Path:
    """The vectors of papers, by their ids, or of documents, by their names."""
    names = sorted(given)
    vectors = {"vector": vector_column(np.array([given[name] for name in names], np.float32))}
    if isinstance(names[0], str):
        columns = {"adapter": [""] * len(names), "document": names, **vectors}
        write_table(path, "baseline_embeddings", pa.table(columns))
    else:
        write_table(path, "baseline_paper_embeddings", pa.table({"corpusid": names, **vectors}))
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
