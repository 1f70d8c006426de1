"""What PyTorch-BigGraph's own importer makes of the edges."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.checkpoints import fingerprint_of
from cocite.embeddings.engines.biggraph.tsv import import_tsv
from cocite.embeddings.imported import ImportedFolder


def write_lines(path: Path, edges: list[tuple[int, int]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in edges))
    return path


@pytest.mark.parametrize("partitions", [1, 2])
def test_imported_edges_are_the_edges_of_the_files(tmp_path: Path, graphs: SimpleNamespace, partitions: int) -> None:
    pairs = graphs.random(50, 300)
    training = write_lines(tmp_path / "t", pairs[:250])
    holdout = write_lines(tmp_path / "h", [*pairs[250:], (777, 888)])
    imported = tmp_path / "imported"
    import_tsv(training=training, holdout=holdout, partitions=partitions, seed=1, output=imported)
    in_order = list if partitions == 1 else sorted
    assert in_order(graphs.edges(imported, "training")) == in_order(graphs.read(training))
    assert in_order(graphs.edges(imported, "holdout")) == in_order(graphs.read(holdout))


def test_partitions_without_an_edge_between_them_have_an_empty_file(tmp_path: Path) -> None:
    training, holdout = write_lines(tmp_path / "t", [(1, 2)]), write_lines(tmp_path / "h", [(2, 1)])
    import_tsv(training=training, holdout=holdout, partitions=2, seed=1, output=tmp_path / "imported")
    assert sorted(ImportedFolder(tmp_path / "imported").count_edges("training").ravel()) == [0, 0, 0, 1]


def test_the_same_seed_gives_the_same_bytes_and_leaves_the_global_generator_alone(
    tmp_path: Path, graphs: SimpleNamespace
) -> None:
    training, holdout = write_lines(tmp_path / "t", graphs.random(50, 300)), write_lines(tmp_path / "h", [(1, 2)])
    hashes = []
    for run, seed in enumerate((1, 1, 2)):
        random.seed(run)
        before = random.getstate()
        import_tsv(training=training, holdout=holdout, partitions=1, seed=seed, output=tmp_path / str(run))
        assert random.getstate() == before
        hashes.append(fingerprint_of([tmp_path / str(run)]))
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize("way", ["arrow", "tsv"])
def test_the_command_imports_either_way_and_leaves_nothing_beside_the_folder(
    tmp_path: Path, graphs: SimpleNamespace, way: str
) -> None:
    graphs.write(tmp_path / "edges.parquet", graphs.random(50, 300))
    settings = json.dumps({"holdout": 0.2, "import": way})
    arguments = [
        "embeddings",
        "import",
        str(tmp_path / "edges.parquet"),
        "--undirected",
        "--settings",
        settings,
        "--seed",
        "1",
    ]
    arguments += ["--memory-mb", "500", "--threads", "1", "--output", str(tmp_path / "imported")]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"edges.parquet", "imported"}
    counts = [ImportedFolder(tmp_path / "imported").count_edges(side).sum() for side in ("training", "holdout")]
    assert sum(counts) == 2 * len({frozenset(pair) for pair in graphs.random(50, 300)})
