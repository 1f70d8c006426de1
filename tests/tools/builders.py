"""What several tests of the tools make: the record of a run, a model with vectors, an encoder of a few papers."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.papers import Texts, papers_table
from typer.testing import CliRunner, Result

from cocite.cli import app
from cocite.config.encoders import EncoderSettings
from cocite.config.started import FILE, Start
from cocite.core.tables.files import vector_column, write_table
from cocite.encoder.build import build_encoder
from cocite.encoder.embedding import embed_tables

EMBEDDING = {"threads": 1, "precision": "float32"}


def invoke(*arguments: object) -> Result:
    """Run a command of `cocite`; what it raises is raised."""
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


def write_start(folder: Path, /, **fields: Any) -> Start:
    """Record a run in a folder of results, one without jobs on another machine unless the fields say otherwise."""
    usual = {"time": 0.0, "directory": "/", "results": "elsewhere", "snakefile": "Snakefile", "configfiles": []}
    usual |= {"log": None, "cores": 2, "host": "elsewhere", "process": 1, "process_started": None, "jobs": []}
    start = Start(**{**usual, **fields})
    (folder / FILE).parent.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(asdict(start)))
    return start


def write_model(results: Path, name: str = "model", seed: int | str = 1) -> Path:
    """A folder that looks like a model's; made before everything else."""
    folder = results / f"encoder/{name}/seed-{seed}/model"
    folder.mkdir(parents=True)
    (folder / "modules.json").write_text("[]")
    os.utime(folder / "modules.json", (1_000_000_000, 1_000_000_000))
    return folder


def write_vectors(path: Path, vectors: Mapping[int, Any]) -> None:
    """A bucket of the vectors that a model gives to papers."""
    ids = sorted(vectors)
    rows = {"corpusid": ids, "vector": vector_column(np.array([vectors[paper] for paper in ids]))}
    write_table(path, "paper_embeddings", pa.table(rows))


def make_encoder(results: Path, model: Path, seed: int = 1) -> None:
    """A small encoder that is built from the papers of the results."""
    papers = [results / "corpus/papers/0.parquet"]
    write_table(results / "queries.parquet", "queries", pa.table({"corpusid": [], "split": []}))
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "vocabulary": 200}
    settings = EncoderSettings(build=sizes, pooling="mean", max_length=16)
    build_encoder(papers, results / "queries.parquet", model, settings=settings, seed=seed)


def write_embedded(results: Path, texts: Texts) -> Path:
    """These papers in one bucket, an encoder that is built from them, and their vectors; returns its folder."""
    folder, papers = results / "encoder/tiny/seed-1", results / "corpus/papers/0.parquet"
    write_table(papers, "papers", papers_table(texts))
    make_encoder(results, folder / "model")
    os.utime(folder / "model/modules.json", (1, 1))
    embed_tables(folder / "model", [papers], folder / "papers", "papers", state=results / "state", **EMBEDDING)
    return folder
