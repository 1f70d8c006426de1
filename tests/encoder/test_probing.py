"""Linear maps of ready vectors: they start as the identity, learn by the encoder's losses, and repeat to the bit."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file
from torch.nn import Parameter

from cocite.config.probes import MapTraining
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table
from cocite.core.tables.places import Trained, training_of
from cocite.encoder.probing import open_ready, probe_examples, train_map

DIMENSION = 6
PAPERS = np.arange(10, 50)
"""Papers with an even id belong together, and so do those with an odd one."""


def asked(**settings) -> MapTraining:
    return MapTraining.model_validate_json(json.dumps({"losses": ["triplet"], "batch_sizes": [8], **settings}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Examples whose positives share the parity of the query, and vectors in which one number of six tells it."""
    draw = np.random.default_rng(1)
    vectors = draw.normal(size=(len(PAPERS), DIMENSION)).astype(np.float32)
    vectors[:, 3] = np.where(PAPERS % 2, 0.3, -0.3)
    for bucket in (0, 1):
        of_bucket = bucket == PAPERS % 2
        rows = {"corpusid": PAPERS[of_bucket], "vector": vector_column(vectors[of_bucket])}
        write_table(tmp_path / f"papers/{bucket}.parquet", "paper_embeddings", pa.table(rows))
    queries = np.repeat(PAPERS[:30], 3)
    positives = [[int(draw.choice(PAPERS[(q % 2 == PAPERS % 2) & (q != PAPERS)]))] for q in queries]
    negatives = [[int(draw.choice(PAPERS[q % 2 != PAPERS % 2]))] for q in queries]
    columns = {"query": queries, "positives": positives, "negatives": negatives}
    write_table(tmp_path / "examples.parquet", "training_examples", pa.table(columns))
    np.save(tmp_path / "vectors.npy", vectors)
    write_json(tmp_path / "modules.json", [])
    return tmp_path


def probe(folder: Path, output: str = "maps", **settings) -> dict[Trained, np.ndarray]:
    how = {"encoder": folder, "seed": 1, "threads": 1, "output": folder / output}
    probe_examples(folder / "examples.parquet", folder / "papers", asked(**settings), **how)
    return {training_of(name): weight for name, weight in load_file(folder / output).items()}


def test_there_is_a_map_for_each_loss_size_of_a_batch_and_seed(folder: Path) -> None:
    losses = ["triplet", {"kind": "mnrl", "scale": 10.0, "sampled_negatives": False}]
    maps = probe(folder, losses=losses, batch_sizes=[8, 16], seeds=[1, 2])
    names = ["triplet margin=1.0", "mnrl scale=10.0 sampled_negatives=false"]
    assert set(maps) == {(loss, size, seed) for loss in names for size in (8, 16) for seed in (1, 2)}
    assert all(weight.shape == (DIMENSION, DIMENSION) for weight in maps.values())
    assert not np.array_equal(*(maps[Trained(names[0], 8, seed)] for seed in (1, 2)))


def test_a_map_learns_what_tells_the_papers_apart(folder: Path) -> None:
    [weight] = probe(folder, lr=0.02, epochs=20, seeds=[1]).values()
    vectors = np.load(folder / "vectors.npy")
    mapped = vectors @ weight.T

    def near(rows: np.ndarray) -> float:
        """The share of the five nearest papers that have the parity of the paper."""
        distances = np.linalg.norm(rows[:, None] - rows[None, :], axis=2) + 1e9 * np.eye(len(rows))
        found = np.argsort(distances, axis=1)[:, :5]
        return float((PAPERS[found] % 2 == PAPERS[:, None] % 2).mean())

    assert near(vectors) < 0.7
    assert near(mapped) > 0.95


def test_vectors_behind_a_map_are_normalised_as_those_of_the_encoder(folder: Path) -> None:
    weights = []
    for modules in ([], [{"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}]):
        write_json(folder / "modules.json", modules)
        weights += probe(folder, seeds=[1]).values()
        with safe_open(folder / "maps", framework="numpy") as file:
            assert file.metadata() == {"normalise": str(bool(modules))}
    assert not np.allclose(*weights)


def test_a_step_is_that_of_adamw_on_the_loss_of_a_batch(folder: Path) -> None:
    """One step over all examples, beside the triplet loss as it is defined, with gradients by torch."""
    settings = asked(batch_sizes=[90], epochs=1, lr=0.01, seeds=[1])
    ready = open_ready(folder / "examples.parquet", folder / "papers", None, seed=1)
    weight = train_map(ready, settings.losses[0], 90, settings, seed=5)
    expected = Parameter(torch.eye(DIMENSION))
    parts = (ready.examples.queries, ready.examples.positives.documents, ready.examples.negatives.documents)
    query, positive, negative = (ready.vectors[numbers] @ expected.T for numbers in parts)
    near, far = ((query - other + 1e-6).norm(dim=1) for other in (positive, negative))
    torch.relu(near - far + 1).mean().backward()
    optimiser = torch.optim.AdamW([expected], lr=0.01, weight_decay=0.0)
    torch.nn.utils.clip_grad_norm_([expected], 1.0)
    optimiser.step()
    assert torch.allclose(weight, expected, atol=1e-6)


def test_the_same_seed_gives_the_same_bytes(folder: Path) -> None:
    probe(folder, "one", losses=["mnrl"])
    probe(folder, "other", losses=["mnrl"])
    assert (folder / "one").read_bytes() == (folder / "other").read_bytes()


def test_whole_queries_are_taken_up_to_the_number_of_examples(folder: Path) -> None:
    whole = open_ready(folder / "examples.parquet", folder / "papers", None, seed=1)
    part = open_ready(folder / "examples.parquet", folder / "papers", 20, seed=1)
    assert len(whole.examples.queries) == 90
    ids, counts = np.unique(part.examples.ids[part.examples.queries], return_counts=True)
    assert counts.tolist() == [3] * 6
    assert len(part.vectors) < len(whole.vectors)
    larger = open_ready(folder / "examples.parquet", folder / "papers", 41, seed=1)
    assert set(ids) < set(larger.examples.ids[larger.examples.queries])


def test_only_the_vectors_of_the_papers_in_the_set_are_held(folder: Path) -> None:
    ready = open_ready(folder / "examples.parquet", folder / "papers", None, seed=1)
    vectors = dict(zip(PAPERS.tolist(), np.load(folder / "vectors.npy"), strict=True))
    assert len(ready.vectors) == len(set(ready.examples.ids))
    assert all(np.array_equal(vectors[i], row) for i, row in zip(ready.examples.ids, ready.vectors, strict=True))


def with_a_gap(folder: Path) -> None:
    table = read_table(folder / "papers/0.parquet", "paper_embeddings")
    vectors = vectors_of(table)
    vectors[0, 2] = np.nan
    write_table(folder / "papers/0.parquet", "paper_embeddings", table.set_column(1, "vector", vector_column(vectors)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_a_gap, "the vector of paper 10 holds values that are not finite"),
        (lambda folder: (folder / "papers/1.parquet").unlink(), r"has no vector of paper \d+, nor of \d+ others"),
    ],
)
def test_vectors_that_are_not_there_or_not_finite_are_named(folder: Path, change, message: str) -> None:
    change(folder)
    with pytest.raises(InputError, match=message):
        open_ready(folder / "examples.parquet", folder / "papers", None, seed=1)
