"""What tests of the encoder build: small tables, trainings of a few steps, and what they leave."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.papers import papers_table

from cocite.config.encoders import AnyEncoder
from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table, vectors_of, write_table
from cocite.encoder.build import build_encoder
from cocite.encoder.embedding import embed_tables
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.processes import Stopping, Unfinished
from cocite.encoder.results import Outputs
from cocite.encoder.tokens import tokenise
from cocite.encoder.trainer import Inputs, train_encoder

TOPICS = {0: "bees collect nectar from flowers in the meadow", 1: "compilers allocate registers for loops in programs"}
WEIGHTS, CURVES = "model/model.safetensors", "curves.parquet"


def paper_texts(count: int = 24) -> dict[int, tuple[str, str]]:
    """Title and abstract of papers 0, 1, …: words of the topic that the number's parity names, in some order."""
    random = np.random.default_rng(5)
    texts = {}
    for paper in range(count):
        words = TOPICS[paper % 2].split()
        texts[paper] = tuple(" ".join(random.choice(words, size)) for size in (3, 12))
    return texts


def write_papers(path: Path, texts: dict[int, tuple[str | None, str | None]]) -> Path:
    write_table(path, "papers", papers_table(texts))
    return path


def write_queries(path: Path, splits: dict[int, str]) -> Path:
    write_table(path, "queries", pa.table({"corpusid": sorted(splits), "split": [splits[i] for i in sorted(splits)]}))
    return path


def write_documents(path: Path, texts: dict[str, tuple[str | None, ...]]) -> Path:
    names = sorted(texts)
    table = {
        "document": names,
        "title": pa.array([texts[name][0] for name in names], pa.string()),
        "abstract": pa.array([texts[name][1] for name in names], pa.string()),
        "more": pa.array([texts[name][2:] for name in names], pa.list_(pa.string())),
        "field": pa.nulls(len(names), pa.string()),
    }
    write_table(path, "documents", pa.table(table))
    return path


def built(corpus: Path, folder: Path, settings: AnyEncoder, *, seed: int = 1, source: Path | None = None) -> Path:
    """An untrained encoder from a corpus, in a folder."""
    tables = [corpus / "papers.parquet"], corpus / "queries.parquet"
    build_encoder(*tables, folder, settings=settings, seed=seed, source=source)
    return folder


def embedded(model: Path, source: Path, folder: Path, table: str = "documents", **how: Any) -> np.ndarray:
    """The vectors of a table of texts by an encoder, which are written into a folder."""
    embed_tables(
        model, [source], folder, table, **{"threads": 1, "state": folder / "state", "precision": "float32", **how}
    )
    declared = {"documents": "document_embeddings", "papers": "paper_embeddings"}[table]
    return vectors_of(read_table(folder / source.name, declared))


def vectors_by(folder: Path, texts: Sequence[str], **options: Any) -> np.ndarray:
    """The vectors of texts by the encoder in a folder."""
    opened = open_encoder(folder, **options)
    return embed(opened, tokenise(texts, opened.tokenizer))


def outputs_in(folder: Path) -> Outputs:
    """The files that a training writes into a folder."""
    files = {"model": "model", "curves": CURVES, "settings": "settings.json", "events": "tensorboard"}
    return Outputs(**{name: folder / file for name, file in files.items()})


def trained(
    folder: Path, inputs: Inputs, stopping: Stopping | None = None, *, training_seed: int = 1, **settings: Any
) -> Path:
    """Train in batches of four into a folder, in float32 if no precision is given."""
    how = {"precision": settings.pop("precision", "float32"), "stopping": stopping, "state": folder / "state"}
    how["memory_mb"] = settings.pop("memory_mb", None)
    given = TrainingSettings(**{"batch_size": 4, "lr": 3e-3, **settings})
    train_encoder(inputs, outputs_in(folder), given, seed=1, training_seed=training_seed, threads=1, **how)
    return folder


class AfterSteps(Stopping):
    """Stops a training once, after so many steps of a process."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def reason(self) -> str | None:
        """Why to stop, after that step."""
        self.left -= 1
        return None if self.left else "a test"


def assert_same_results(folder: Path, other: Path) -> None:
    """Assert that trainings left the same model, with all that it holds, the same curves and settings."""
    files, others = (
        {str(file.relative_to(left)) for file in (left / "model").rglob("*") if file.is_file()}
        for left in (folder, other)
    )
    assert files == others
    assert WEIGHTS in files
    for file in (*files, CURVES, "settings.json"):
        assert (folder / file).read_bytes() == (other / file).read_bytes(), file


def assert_goes_on(folder: Path, inputs: Inputs, *steps: int, **settings: Any) -> None:
    """Assert that a training that is stopped after so many steps, each time, leaves what one leaves that is not."""
    whole = trained(folder / "whole", inputs, **settings)
    for number in steps:
        with pytest.raises(Unfinished):
            trained(folder / "stopped", inputs, AfterSteps(number), **settings)
    assert_same_results(trained(folder / "stopped", inputs, **settings), whole)


def killed_and_run_again(folder: Path, inputs: Inputs, cuts: int = 0, **settings: Any) -> dict[str, list[int]]:
    """Train by the program `killed_training`, and assert that every training left what one left that ran through.

    Returns how the processes ended: at its moments, or at batches drawn at random.
    """
    examples = os.pathsep.join(str(files.table.parents[1]) for files in inputs.training)
    words = [str(inputs.encoder), examples, str(folder), str(cuts), json.dumps(settings)]
    command = [sys.executable, "-m", "tests.encoder.killed_training", *words]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    for moment in (path for path in folder.iterdir() if path.is_dir()):
        assert_same_results(moment, folder / "whole")
    return read_json(folder / "endings.json")
