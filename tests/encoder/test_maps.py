"""Linear maps behind the pooling: of published encoders, of probes, and to the spaces of aspects."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tests.encoder.building import trained, vectors_by
from tests.encoder.published import fetched
from tests.examples import HYBRID
from torch.nn import Parameter

from cocite.config.encoders import EncoderSettings, LearnedMap
from cocite.config.models import TrainingSettings
from cocite.config.probes import MapTraining
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table
from cocite.core.tables.places import Trained, name_of_map, training_of
from cocite.encoder import spaces
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.layers import IDENTITY, TANH, Dense, read_dense, save_dense
from cocite.encoder.losses import MultipleNegativesRanking
from cocite.encoder.model import open_encoder
from cocite.encoder.objective import new_learner
from cocite.encoder.probing import open_ready, probe_examples, train_map
from cocite.encoder.spaces import read_space, spaces_in

TEXTS = ["bees collect nectar", "compilers allocate registers for loops", "flowers in the meadow"]


def drawn_map(takes=16, gives=8, *, bias=True, seed=3) -> torch.nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Linear(takes, gives, bias=bias)


def published(encoder: Path, folder: Path, *maps: Dense) -> Path:
    """The encoder as sentence-transformers saves one: a transformer, a pooling, and these maps."""
    shutil.copytree(encoder, folder)
    modules = read_json(folder / "modules.json")
    for number, dense in enumerate(maps, len(modules)):
        save_dense(dense, folder / f"{number}_Dense")
        of_module = {"path": f"{number}_Dense", "type": "sentence_transformers.models.Dense"}
        modules.append({"idx": number, "name": str(number), **of_module})
    write_json(folder / "modules.json", modules)
    return folder


vectors = partial(vectors_by, texts=TEXTS)


def test_vectors_behind_the_map_of_a_published_encoder_can_be_cut(encoder, tmp_path):
    source = published(encoder, tmp_path / "published", Dense(drawn_map()))
    folder = fetched(source, tmp_path / "fetched", max_length=16)
    expected = SentenceTransformer(str(source)).encode(TEXTS)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-5)
    np.testing.assert_allclose(vectors(folder, dimension=5), expected[:, :5], atol=1e-5)
    with pytest.raises(InputError, match="gives vectors of 8 dimensions, and 9 are to be kept"):
        open_encoder(folder, dimension=9)


def test_a_chain_of_maps_is_kept(encoder, inputs, tmp_path):
    sizes, activations = ((16, 24), (24, 12), (12, 8)), (IDENTITY, TANH, TANH)
    maps = [Dense(drawn_map(*size, bias=size != (24, 12)), of) for size, of in zip(sizes, activations, strict=True)]
    source = published(encoder, tmp_path / "published", *maps)
    folder = fetched(source, tmp_path / "fetched", max_length=16)
    np.testing.assert_allclose(vectors(folder), SentenceTransformer(str(source)).encode(TEXTS), atol=1e-5)
    model = trained(tmp_path / "trained", replace(inputs, encoder=folder), loss="mnrl", max_steps=2) / "model"
    assert not np.allclose(vectors(model), vectors(folder), atol=1e-5)
    np.testing.assert_allclose(SentenceTransformer(str(model)).encode(TEXTS), vectors(model), atol=1e-5)


@pytest.mark.parametrize("sizes", [[(16, 12), (8, 8)], [(12, 8)]])
def test_maps_that_do_not_follow_one_another_are_refused(encoder, tmp_path, sizes):
    source = published(encoder, tmp_path / "published", *(Dense(drawn_map(*size)) for size in sizes))
    with pytest.raises(InputError, match="cannot embed a text: mat1 and mat2 shapes cannot be multiplied"):
        fetched(source, tmp_path / "fetched", max_length=16)


def test_a_model_that_is_trained_from_an_encoder_that_normalises_scales_its_vectors_as_well(encoder, inputs, tmp_path):
    from_it = replace(inputs, encoder=fetched(encoder, tmp_path / "fetched", max_length=16, normalise=True))
    model = trained(tmp_path / "trained", from_it, loss="mnrl", max_steps=2) / "model"
    learned, plain = vectors(model), vectors(encoder)
    np.testing.assert_allclose(np.linalg.norm(learned, axis=1), 1, atol=1e-6)
    assert not np.allclose(learned, plain / np.linalg.norm(plain, axis=1, keepdims=True))
    np.testing.assert_allclose(SentenceTransformer(str(model)).encode(TEXTS), learned, atol=1e-5)


@pytest.fixture
def mapped(encoder, tmp_path):
    """A function that fetches the encoder with the map of a probe behind it, and that map."""
    loss, weight = MultipleNegativesRanking(kind="mnrl"), drawn_map(16, 16, bias=False).weight.detach()
    maps = tmp_path / "maps.safetensors"
    save_file({name_of_map(Trained("mnrl scale=20.0 sampled_negatives=true", 128, 1)): weight}, maps)

    def fetch(seed=1):
        learned = LearnedMap(probe="which", triplets="specter", loss=loss, training_seed=seed)
        settings = EncoderSettings(model=str(encoder), max_length=16, linear_map=learned)
        fetch_encoder(settings, tmp_path / "mapped", maps=maps)
        return tmp_path / "mapped", weight.numpy()

    return fetch


def test_the_map_of_a_probe_is_put_behind_the_encoder(mapped, encoder):
    folder, weight = mapped()
    np.testing.assert_allclose(vectors(folder), vectors(encoder) @ weight.T, atol=1e-5)
    assert "the probe which learned from the triplets specter" in (folder / "README.md").read_text()
    with pytest.raises(InputError, match="holds no map"):
        mapped(seed=2)


def test_the_map_learns_with_the_encoder_and_is_saved_with_it(mapped, aspects, tmp_path):
    inputs = replace(aspects, encoder=mapped()[0])
    model = trained(tmp_path / "trained", inputs, objectives=HYBRID, epochs=1) / "model"
    before, after = (read_dense(folder / "2_Map").linear.weight for folder in (inputs.encoder, model))
    assert not torch.equal(before, after)
    np.testing.assert_allclose(SentenceTransformer(str(model)).encode(TEXTS), vectors(model), atol=1e-5)
    in_space = SentenceTransformer(str(model / "aspects/result")).encode(TEXTS)
    space = load_file(model / "aspects/result/2_Dense/model.safetensors")
    expected = vectors(model) @ space["linear.weight"].numpy().T + space["linear.bias"].numpy()
    np.testing.assert_allclose(in_space, expected, atol=1e-5)


def test_additions_of_low_rank_leave_the_map_as_it_is(mapped, inputs, tmp_path):
    started = replace(inputs, encoder=mapped()[0])
    model = trained(tmp_path / "added", started, trainable="lora") / "model"
    assert torch.equal(*(read_dense(folder / "2_Map").linear.weight for folder in (started.encoder, model)))


@pytest.fixture(scope="module")
def hybrid(aspects, tmp_path_factory):
    """The folder of a model with the spaces of two aspects."""
    return trained(tmp_path_factory.mktemp("hybrid"), aspects, objectives=HYBRID, epochs=1) / "model"


def test_each_space_of_a_copied_model_opens_in_sentence_transformers_with_the_same_vectors(hybrid, tmp_path):
    folder = shutil.copytree(hybrid, tmp_path / "copied", symlinks=True)
    plain = torch.from_numpy(vectors(folder))
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(TEXTS), plain, atol=1e-5)
    assert spaces_in(folder) == ["background", "result", "concatenated"]
    seen = {}
    for name in spaces_in(folder):
        seen[name] = read_space(folder, name)(plain).detach().numpy()
        in_space = SentenceTransformer(str(folder / "aspects" / name)).encode(TEXTS)
        np.testing.assert_allclose(in_space, seen[name], atol=1e-5)
    np.testing.assert_array_equal(seen["concatenated"], np.concatenate([seen["background"], seen["result"]], axis=1))


def written_vectors(path, vectors):
    """Write vectors as those of documents, and give the names of these."""
    names = [f"d{number}" for number in range(len(vectors))]
    table = pa.table({"adapter": [""] * len(names), "document": names, "vector": vector_column(vectors)})
    write_table(path, "document_embeddings", table)
    return names


def test_vectors_are_mapped_to_a_space_row_by_row(hybrid, tmp_path, monkeypatch):
    monkeypatch.setattr(spaces, "ROWS_AT_ONCE", 3)
    before = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    names = written_vectors(tmp_path / "embeddings.parquet", before)
    for name in ("result", "concatenated"):
        spaces.map_vectors(tmp_path / "embeddings.parquet", hybrid, name, tmp_path / f"{name}.parquet")
        found = read_table(tmp_path / f"{name}.parquet", "document_embeddings")
        expected = read_space(hybrid, name)(torch.from_numpy(before)).detach().numpy()
        assert found["document"].to_pylist() == names
        np.testing.assert_allclose(vectors_of(found), expected, rtol=1e-5, atol=1e-6)


def test_a_training_goes_on_from_the_maps_of_the_encoder_it_starts_from(hybrid, aspects, tmp_path):
    settings = TrainingSettings(objectives=HYBRID)
    learner = new_learner(open_encoder(hybrid), settings, 5, ("background", "result"), hybrid)
    assert torch.equal(learner.heads["result"].weight, read_space(hybrid, "result").weight)
    again = trained(tmp_path, replace(aspects, encoder=hybrid), objectives=HYBRID, lr=1e-9) / "model"
    torch.testing.assert_close(read_space(again, "result").weight, read_space(hybrid, "result").weight)


def test_a_space_that_there_is_not_is_refused_and_examples_without_aspects_have_none(hybrid, encoder):
    with pytest.raises(InputError, match="has no space methodology; it has background, result, concatenated"):
        read_space(hybrid, "methodology")
    with pytest.raises(InputError, match="objective is in the space of aspects, and the examples have none"):
        new_learner(open_encoder(encoder), TrainingSettings(objectives=HYBRID), seed=1)


def test_vectors_are_mapped_without_torch(tmp_path):
    write_json(tmp_path / "modules.json", [])
    spaces.save_spaces({"result": torch.nn.Linear(4, 4)}, tmp_path)
    written_vectors(tmp_path / "embeddings.parquet", np.ones((2, 4)))
    code = """
import sys
from pathlib import Path
from cocite.encoder.spaces import map_vectors
embeddings, model, output = map(Path, sys.argv[1:])
map_vectors(embeddings, model=model, space="result", output=output)
print({"torch", "transformers"} & {*sys.modules})
"""
    paths = (tmp_path / "embeddings.parquet", tmp_path, tmp_path / "mapped.parquet")
    ran = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


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
    return {training_of(name): weight.numpy() for name, weight in load_file(folder / output).items()}


def ready_in(folder: Path, most: int | None = None):
    return open_ready(folder / "examples.parquet", folder / "papers", most, seed=1)


def test_there_is_a_map_for_each_loss_size_of_a_batch_and_seed_with_the_same_bytes_again(folder):
    losses = ["triplet", {"kind": "mnrl", "scale": 10.0, "sampled_negatives": False}]
    maps, _ = (probe(folder, name, losses=losses, batch_sizes=[8, 16], seeds=[1, 2]) for name in ("maps", "again"))
    assert (folder / "maps").read_bytes() == (folder / "again").read_bytes()
    names = ["triplet margin=1.0", "mnrl scale=10.0 sampled_negatives=false"]
    assert set(maps) == {(loss, size, seed) for loss in names for size in (8, 16) for seed in (1, 2)}
    assert all(weight.shape == (DIMENSION, DIMENSION) for weight in maps.values())
    assert not np.array_equal(*(maps[Trained(names[0], 8, seed)] for seed in (1, 2)))


def test_a_map_learns_what_tells_the_papers_apart(folder):
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


def test_vectors_behind_a_map_are_normalised_as_those_of_the_encoder(folder):
    weights = []
    for modules in ([], [{"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}]):
        write_json(folder / "modules.json", modules)
        weights += probe(folder, seeds=[1]).values()
        with safe_open(folder / "maps", framework="numpy") as file:
            assert file.metadata() == {"normalise": str(bool(modules))}
    assert not np.allclose(*weights)


def test_a_step_is_that_of_adamw_on_the_loss_of_a_batch(folder):
    """One step over all examples, beside the triplet loss as it is defined, with gradients by torch."""
    settings = asked(batch_sizes=[90], epochs=1, lr=0.01, seeds=[1])
    ready = ready_in(folder)
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


def test_a_loss_that_corrects_for_popularity_is_told_how_often_papers_occur_in_the_whole_set(folder):
    ready = ready_in(folder)
    of_set = [ready.examples.ids[of.documents].tolist() for of in (ready.examples.positives, ready.examples.negatives)]
    counted, numbers = Counter(chain(*of_set)), np.arange(7)
    _, compared = ready.batch(numbers, MultipleNegativesRanking(kind="mnrl", log_q=0.5))
    queries, near, far = ready.examples.queries, ready.examples.positives, ready.examples.negatives
    distinct = np.unique(np.concatenate([queries[numbers], near.of(numbers).documents, far.of(numbers).documents]))
    assert compared.frequencies.tolist() == [counted[paper] for paper in ready.examples.ids[distinct].tolist()]


def test_whole_queries_are_taken_up_to_the_number_of_examples_and_only_vectors_of_their_papers_are_held(folder):
    whole, part, larger = (ready_in(folder, most) for most in (None, 20, 41))
    assert len(whole.examples.queries) == 90
    ids, counts = np.unique(part.examples.ids[part.examples.queries], return_counts=True)
    assert counts.tolist() == [3] * 6
    assert len(part.vectors) < len(whole.vectors)
    assert set(ids) < set(larger.examples.ids[larger.examples.queries])
    vectors = dict(zip(PAPERS.tolist(), np.load(folder / "vectors.npy"), strict=True))
    for ready in (whole, part):
        assert len(ready.vectors) == len(set(ready.examples.ids))
        assert all(np.array_equal(vectors[i], row) for i, row in zip(ready.examples.ids, ready.vectors, strict=True))


def with_a_gap(folder):
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
def test_vectors_that_are_not_there_or_not_finite_are_named(folder, change, message):
    change(folder)
    with pytest.raises(InputError, match=message):
        ready_in(folder)
