"""What is made of the edges by sorted arrays, and that PyTorch-BigGraph takes it for its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from torchbiggraph.graph_storages import EDGE_STORAGES, ENTITY_STORAGES

from cocite.config.entries import as_json
from cocite.core.checkpoints import fingerprint_of
from cocite.core.errors import InputError
from cocite.embeddings import importing
from cocite.embeddings.engines.biggraph.tsv import import_tsv, split_edges
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.importing import import_edges

BEYOND_DOUBLES = 2**57 + 11


@pytest.mark.parametrize(
    ("directed", "of", "partitions"),
    [(True, "pairs", 1), (True, "edges", 1), (False, "edges", 1), (False, "pairs", 2)],
)
def test_both_ways_in_lead_to_the_same_edges_between_the_same_papers(
    tmp_path: Path, graphs: SimpleNamespace, directed: bool, of: str, partitions: int
) -> None:
    edges = [graphs.write(tmp_path / "0.parquet", [(a * BEYOND_DOUBLES, b) for a, b in graphs.random(60, 500)])]
    chosen = graphs.settings(holdout_of=of, partitions=partitions)
    import_edges(edges, chosen, directed=directed, seed=1, output=tmp_path / "arrow")
    files = {"training": tmp_path / "training.tsv", "holdout": tmp_path / "holdout.tsv"}
    split_edges(edges, chosen, directed=directed, seed=1, memory_mb=500, threads=1, **files)
    import_tsv(**files, partitions=partitions, seed=1, output=tmp_path / "tsv")
    assert sorted(ImportedFolder(tmp_path / "arrow").papers()) == sorted(ImportedFolder(tmp_path / "tsv").papers())
    for side, lines in files.items():
        expected = Counter(graphs.read(lines))
        assert (
            Counter(graphs.edges(tmp_path / "arrow", side)) == Counter(graphs.edges(tmp_path / "tsv", side)) == expected
        )


def test_the_files_are_those_of_pytorch_biggraph(tmp_path: Path, graphs: SimpleNamespace) -> None:
    imported = graphs.imported(tmp_path, graphs.random(50, 300), partitions=2)
    entities = ENTITY_STORAGES.make_instance(str(imported / "entities"))
    assert [entities.load_count("paper", part) for part in (0, 1)] == [25, 25]
    assert [entities.load_names("paper", part) for part in (0, 1)] == [
        [str(paper) for paper in ImportedFolder(imported).papers()[rows]] for rows in (slice(0, 25), slice(25, 50))
    ]
    edges = EDGE_STORAGES.make_instance(str(imported / "training"))
    loaded = [edges.load_edges(lhs, rhs) for lhs in (0, 1) for rhs in (0, 1)]
    assert [len(part) for part in loaded] == ImportedFolder(imported).count_edges("training").ravel().tolist()
    assert all(part.rel.eq(0).all() and part.lhs.tensor.lt(25).all() for part in loaded)
    with h5py.File(imported / "training" / "edges_0_1.h5") as file:
        assert file.attrs["format_version"] == 1
        assert {name: data.dtype for name, data in file.items()} == dict.fromkeys(("lhs", "rel", "rhs"), np.int64)


def test_neither_buckets_nor_blocks_nor_piles_change_a_byte_but_the_seed_does(
    tmp_path: Path, graphs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = sorted(graphs.random(60, 400))
    buckets = [graphs.write(tmp_path / f"{at}.parquet", pairs[at::3]) for at in range(3)]
    one = [graphs.write(tmp_path / "one.parquet", pairs)]

    def imported(name: str, edges: list[Path], seed: int = 1) -> str:
        import_edges(edges, graphs.settings(), directed=False, seed=seed, output=tmp_path / name)
        return fingerprint_of([tmp_path / name])

    expected = imported("whole", one)
    assert imported("buckets", buckets) == expected
    assert imported("seed", one, seed=2) != expected
    monkeypatch.setattr(importing, "BLOCK_ROWS", 7)
    monkeypatch.setattr(importing, "EDGES_IN_PILE", 50)
    assert imported("piles", one) == expected


def test_the_order_of_edges_has_nothing_to_do_with_their_papers(tmp_path: Path, graphs: SimpleNamespace) -> None:
    """Sources come in rising order; after the shuffle the correlation of place and source is that of chance."""
    imported = graphs.imported(tmp_path, graphs.random(300, 10_000))
    sources = [source for source, _ in graphs.edges(imported, "training")]
    assert abs(np.corrcoef(np.arange(len(sources)), sources)[0, 1]) < 4 / np.sqrt(len(sources))


def test_an_import_that_was_killed_leaves_nothing_and_ends_like_one_that_was_not(
    tmp_path: Path, graphs: SimpleNamespace
) -> None:
    edges = graphs.write(tmp_path / "edges.parquet", graphs.random(3000, 400_000))
    chosen = graphs.settings(partitions=2)
    import_edges([edges], chosen, directed=False, seed=1, output=tmp_path / "whole")
    output = tmp_path / "killed"
    options = ["--undirected", "--settings", json.dumps(as_json(chosen)), "--seed", "1", "--output", str(output)]
    options += ["--memory-mb", "500", "--threads", "1"]
    command = [
        sys.executable,
        "-c",
        "from cocite.cli import app; app()",
        "embeddings",
        "import",
        str(edges),
        *options,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while not list(tmp_path.glob(".killed.*.tmp/training/edges_1_1.h5")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not output.exists()
    subprocess.run(command, check=True, capture_output=True)
    assert fingerprint_of([output]) == fingerprint_of([tmp_path / "whole"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "killed", "whole"]


def test_a_graph_without_edges_is_refused(tmp_path: Path, graphs: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="has no edges; lower its min_count"):
        graphs.imported(tmp_path, [])
    assert not (tmp_path / "imported").exists()


def test_a_graph_too_small_to_hold_anything_out_is_refused(tmp_path: Path, graphs: SimpleNamespace) -> None:
    with pytest.raises(InputError, match="leaves none to hold out with a holdout of 1e-06"):
        graphs.imported(tmp_path, [(1, 2), (3, 4)], holdout=1e-6)
    assert not (tmp_path / "imported").exists()


def test_more_partitions_than_papers_are_refused(tmp_path: Path, graphs: SimpleNamespace) -> None:
    with pytest.raises(InputError, match=r"has 3 papers with an edge, fewer than partitions \(4\)"):
        graphs.imported(tmp_path, [(1, 2), (2, 3)], partitions=4)


def test_more_papers_than_int32_can_number_are_refused(
    tmp_path: Path, graphs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert importing.MOST_PAPERS + 1 == 2**31
    monkeypatch.setattr(importing, "MOST_PAPERS", 2)
    with pytest.raises(InputError, match="has 3 papers with an edge, but no more than 2 can be numbered"):
        graphs.imported(tmp_path, [(1, 2), (2, 3)])
