"""The spaces of aspects: models that others open, vectors that are mapped, trainings that go on from the maps."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tests.encoder.building import trained
from tests.examples import HYBRID

from cocite.config.models import TrainingSettings
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table
from cocite.encoder import spaces
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.objective import new_learner
from cocite.encoder.spaces import read_space, spaces_in
from cocite.encoder.tokens import tokenise

TEXTS = ["bees collect nectar", "compilers allocate registers for loops", "flowers in the meadow"]


@pytest.fixture(scope="module")
def hybrid(aspects, tmp_path_factory):
    """The folder of a model with the spaces of two aspects."""
    return trained(tmp_path_factory.mktemp("hybrid"), aspects, objectives=HYBRID, epochs=1) / "model"


@pytest.fixture
def copied(hybrid, tmp_path):
    """A copy that a test may break."""
    return shutil.copytree(hybrid, tmp_path / "copied", symlinks=True)


def test_each_space_opens_in_sentence_transformers_with_the_same_vectors(copied):
    folder, encoder = copied, open_encoder(copied)
    plain = torch.from_numpy(embed(encoder, tokenise(TEXTS, encoder.tokenizer)))
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(TEXTS), plain, atol=1e-5)
    assert spaces_in(folder) == ["background", "result", "concatenated"]
    seen = {}
    for name in spaces_in(folder):
        seen[name] = read_space(folder, name)(plain).detach().numpy()
        vectors = SentenceTransformer(str(folder / "aspects" / name)).encode(TEXTS)
        np.testing.assert_allclose(vectors, seen[name], atol=1e-5)
    np.testing.assert_array_equal(seen["concatenated"], np.concatenate([seen["background"], seen["result"]], axis=1))


def written_vectors(path, vectors):
    """Write vectors as those of documents, and give the names of these."""
    names = [f"d{number}" for number in range(len(vectors))]
    table = pa.table({"adapter": [""] * len(names), "document": names, "vector": vector_column(vectors)})
    write_table(path, "document_embeddings", table)
    return names


def test_vectors_are_mapped_to_a_space_row_by_row(hybrid, tmp_path, monkeypatch):
    monkeypatch.setattr(spaces, "ROWS_AT_ONCE", 3)
    vectors = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    names = written_vectors(tmp_path / "embeddings.parquet", vectors)
    for name in ("result", "concatenated"):
        spaces.map_vectors(tmp_path / "embeddings.parquet", hybrid, name, tmp_path / f"{name}.parquet")
        found = read_table(tmp_path / f"{name}.parquet", "document_embeddings")
        expected = read_space(hybrid, name)(torch.from_numpy(vectors)).detach().numpy()
        assert found["document"].to_pylist() == names
        np.testing.assert_allclose(vectors_of(found), expected, rtol=1e-5, atol=1e-6)


def test_a_training_goes_on_from_the_maps_of_the_encoder_it_starts_from(hybrid, aspects, tmp_path):
    settings = TrainingSettings(objectives=HYBRID)
    learner = new_learner(open_encoder(hybrid), settings, 5, ("background", "result"), hybrid)
    assert torch.equal(learner.heads["result"].weight, read_space(hybrid, "result").weight)
    again = trained(tmp_path, replace(aspects, encoder=hybrid), objectives=HYBRID, lr=1e-9) / "model"
    torch.testing.assert_close(read_space(again, "result").weight, read_space(hybrid, "result").weight)


def test_a_space_that_there_is_not_is_refused(copied):
    with pytest.raises(InputError, match="has no space methodology; it has background, result, concatenated"):
        read_space(copied, "methodology")


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


def test_examples_without_aspects_have_no_spaces(encoder):
    with pytest.raises(InputError, match="objective is in the space of aspects, and the examples have none"):
        new_learner(open_encoder(encoder), TrainingSettings(objectives=HYBRID), seed=1)
