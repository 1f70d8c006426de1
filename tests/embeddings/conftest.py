"""Small graphs, split and imported."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cocite.config.engine import EdgeSettings, RankingLoss
from cocite.core.tables.files import write_table
from cocite.embeddings.engines import BigGraph
from cocite.embeddings.imported import ImportedFolder, import_edges
from cocite.embeddings.trained import Trained

Pair = tuple[int, int]

SETTINGS = {
    **{"engine": "biggraph", "comparator": "dot", "dimension": 16, "epochs": 3, "lr": 0.1, "max_norm": 1.0},
    **{"loss": RankingLoss(kind="ranking", margin=0.15), "batch_size": 500, "batch_negatives": 50},
    **{"uniform_negatives": 50, "chunks": 2, "workers": 1},
}


EDGE_SETTINGS = {"holdout": 0.2, "holdout_of": "pairs", "weights": False, "max_repetitions": 10, "partitions": 1}


def interrupted(*_: Any, **__: Any) -> None:
    """Stands in for a function in which a process is killed."""
    raise KeyboardInterrupt


def vectors_of(trained: Trained) -> np.ndarray[Any, Any]:
    return trained.vectors.of(np.arange(trained.vectors.starts[-1]))


@pytest.fixture(scope="session")
def settings():
    """Settings of a small training, with some of them changed."""
    return lambda **changed: BigGraph(**{**SETTINGS, **changed})


@pytest.fixture(scope="session")
def graphs():
    """Graphs, and what makes files of them."""
    return SimpleNamespace(
        random=random_pairs,
        communities=community_pairs,
        write=write_edges,
        read=lines_of,
        settings=lambda **changed: EdgeSettings(**{**EDGE_SETTINGS, **changed}),
        imported=make_imported,
        edges=imported_edges,
    )


def write_edges(path: Path, pairs: Sequence[Pair], weights: Sequence[float] | None = None) -> Path:
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    weight = np.ones(len(rows)) if weights is None else np.array(weights)
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    columns = {"source": rows[order, 0], "target": rows[order, 1], "weight": weight[order].astype(np.float32)}
    write_table(path, "edges", pa.table(columns))
    return path


def lines_of(path: Path) -> list[Pair]:
    return [(int(source), int(target)) for source, target in (line.split("\t") for line in path.open())]


def make_imported(
    folder: Path,
    pairs: Sequence[Pair],
    *,
    edge_weights: Sequence[float] | None = None,
    directed: bool = False,
    seed: int = 1,
    **changed: Any,
) -> Path:
    """Import an undirected graph, with some of the settings changed."""
    edges = [write_edges(folder / "edges.parquet", pairs, edge_weights)]
    settings = EdgeSettings(**{**EDGE_SETTINGS, **changed})
    import_edges(edges, settings, directed=directed, seed=seed, output=folder / "imported")
    return folder / "imported"


def imported_edges(imported: Path, side: str) -> list[Pair]:
    """The edges of an imported graph by corpus id, in their order."""
    papers = ImportedFolder(imported).papers()
    return [
        (int(papers[source]), int(papers[target]))
        for block in ImportedFolder(imported).edges(side)
        for source, target in zip(*block, strict=True)
    ]


def random_pairs(papers: int, count: int) -> list[Pair]:
    """A graph without structure: each pair of papers is as likely as any other."""
    low, high = np.triu_indices(papers, k=1)
    chosen = np.random.default_rng(7).choice(len(low), size=count, replace=False)
    return [(int(low[at]), int(high[at])) for at in chosen]


def community_pairs(communities: int, papers: int) -> list[Pair]:
    """Papers 0, 1, … in communities; all within a community are joined, and no others."""
    of_one = list(combinations(range(papers), 2))
    return [(one + at * papers, other + at * papers) for at in range(communities) for one, other in of_one]


@pytest.fixture(scope="session")
def communities(tmp_path_factory):
    return make_imported(tmp_path_factory.mktemp("communities"), community_pairs(60, 14))
