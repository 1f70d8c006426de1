"""What PyTorch-BigGraph's importer makes of the edges."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import h5py

from cocite.biggraph.checkpoints import fingerprint
from cocite.biggraph.importing import import_edges


def write_lines(path: Path, edges: list[tuple[int, int]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in edges))
    return path


def edges_of(imported: Path, part: str) -> list[tuple[int, int]]:
    names = json.loads((imported / "entities" / "entity_names_paper_0.json").read_text())
    with h5py.File(imported / part / "edges_0_0.h5") as file:
        return [(int(names[a]), int(names[b])) for a, b in zip(file["lhs"], file["rhs"], strict=True)]


def test_imported_edges_are_the_edges_of_the_files(tmp_path: Path, graphs: SimpleNamespace) -> None:
    pairs = graphs.random(50, 300)
    training, holdout = (
        write_lines(tmp_path / "t", pairs[:250]),
        write_lines(tmp_path / "h", [*pairs[250:], (777, 888)]),
    )
    import_edges(training=training, holdout=holdout, seed=1, output=tmp_path / "imported")
    assert edges_of(tmp_path / "imported", "training") == graphs.read(training)
    assert edges_of(tmp_path / "imported", "holdout") == graphs.read(holdout)


def test_the_same_seed_gives_the_same_bytes_and_leaves_the_global_generator_alone(
    tmp_path: Path, graphs: SimpleNamespace
) -> None:
    training, holdout = write_lines(tmp_path / "t", graphs.random(50, 300)), write_lines(tmp_path / "h", [(1, 2)])
    hashes = []
    for run, seed in enumerate((1, 1, 2)):
        random.seed(run)
        before = random.getstate()
        import_edges(training=training, holdout=holdout, seed=seed, output=tmp_path / str(run))
        assert random.getstate() == before
        hashes.append(fingerprint(tmp_path / str(run)))
    assert hashes[0] == hashes[1] != hashes[2]
