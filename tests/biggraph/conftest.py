"""Small graphs, split and imported."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from cocite.biggraph.configuration import GraphEmbeddingSettings
from cocite.biggraph.importing import import_edges
from cocite.biggraph.splitting import split_edges
from cocite.files import write_table

Pair = tuple[int, int]

COST = {"memory_mb": 500, "threads": 1}

SETTINGS = {
    "comparator": "dot",
    "dimension": 16,
    "epochs": 3,
    "lr": 0.1,
    "margin": 0.15,
    "max_norm": 1.0,
    "batch_size": 500,
    "batch_negatives": 50,
    "uniform_negatives": 50,
    "chunks": 2,
    "workers": 1,
}


@pytest.fixture(scope="session")
def settings() -> Callable[..., GraphEmbeddingSettings]:
    """Settings of a small training, with some of them changed."""
    return lambda **changed: GraphEmbeddingSettings(**{**SETTINGS, **changed})


@pytest.fixture(scope="session")
def graphs() -> SimpleNamespace:
    """Graphs, and what makes files of them."""
    return SimpleNamespace(random=random_pairs, write=write_edges, read=lines_of, imported=make_imported)


def write_edges(path: Path, pairs: Sequence[Pair]) -> Path:
    rows = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    weight = np.ones(len(rows), dtype=np.float32)
    write_table(path, "edges", pa.table({"source": rows[:, 0], "target": rows[:, 1], "weight": weight}))
    return path


def lines_of(path: Path) -> list[Pair]:
    return [(int(source), int(target)) for source, target in (line.split("\t") for line in path.open())]


def make_imported(folder: Path, pairs: Sequence[Pair], share: float) -> Path:
    training, holdout = folder / "training.tsv", folder / "holdout.tsv"
    edges = [write_edges(folder / "edges.parquet", pairs)]
    split_edges(edges, directed=False, share=share, seed=1, training=training, holdout=holdout, **COST)
    import_edges(training=training, holdout=holdout, seed=1, output=folder / "imported")
    return folder / "imported"


def random_pairs(papers: int, count: int) -> list[Pair]:
    """A graph without structure: each pair of papers is as likely as any other."""
    low, high = np.triu_indices(papers, k=1)
    chosen = np.random.default_rng(7).choice(len(low), size=count, replace=False)
    return [(int(low[at]), int(high[at])) for at in chosen]


def community_pairs(communities: int, papers: int) -> list[Pair]:
    """Papers 0, 1, … in communities; all within a community are joined, and no others."""
    return [
        (first + community * papers, second + community * papers)
        for community in range(communities)
        for first in range(papers)
        for second in range(first + 1, papers)
    ]


@pytest.fixture(scope="session")
def communities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 communities of 14 papers, imported."""
    return make_imported(tmp_path_factory.mktemp("communities"), community_pairs(60, 14), share=0.2)
