"""What PyTorch-BigGraph's own importer makes of the edges."""

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from cocite.embeddings.engines.biggraph.tsv import import_tsv
from cocite.embeddings.imported import ImportedFolder
from cocite.ground.checkpoints import fingerprint_of


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
