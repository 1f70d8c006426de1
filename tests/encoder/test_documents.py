"""The embeddings of documents."""

import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from cocite.encoder import texts
from cocite.encoder.documents import embed_documents
from cocite.encoder.folder import open_encoder
from cocite.errors import InputError
from cocite.files import read_table, vectors_of

TEXTS = {
    "a": ("bees collect", "nectar from flowers in the meadow bees bees bees collect flowers nectar meadow in the"),
    "b": ("compilers", None),
    "c": (None, None),
    "d": (None, "registers for loops"),
    "e": ("", ""),
    "f": ("loops", "in programs", "journal of compilers", "2019"),
}


@pytest.fixture
def documents(write_documents, tmp_path):
    return write_documents(tmp_path / "documents.parquet", TEXTS)


def test_vectors_equal_those_of_sentence_transformers(encoder, documents, tmp_path):
    embed_documents(encoder, documents, tmp_path / "vectors.parquet", threads=1)
    table = read_table(tmp_path / "vectors.parquet", "document_embeddings")
    model = SentenceTransformer(str(encoder), device="cpu")
    texts = ["[SEP]".join(part for part in TEXTS[name] if part) for name in "abdf"]
    assert table["document"].to_pylist() == list("abdf")
    np.testing.assert_allclose(vectors_of(table), model.encode(texts), atol=1e-6)


def test_documents_without_text_are_left_out_and_counted(encoder, documents, tmp_path, capfd):
    embed_documents(encoder, documents, tmp_path / "vectors.parquet", threads=1)
    assert "Embedded 4 of 6 documents; 2 have no text." in capfd.readouterr().err


def test_chunks_change_nothing_but_noise(encoder, documents, tmp_path):
    vectors = []
    for chunk in (1, 2, 100):
        embed_documents(encoder, documents, tmp_path / "vectors.parquet", threads=1, chunk=chunk)
        vectors.append(vectors_of(read_table(tmp_path / "vectors.parquet", "document_embeddings")))
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    np.testing.assert_allclose(vectors[1], vectors[2], atol=1e-6)


def test_the_same_documents_give_the_same_bytes_again(encoder, documents, tmp_path):
    for name in ("first", "second"):
        embed_documents(encoder, documents, tmp_path / name, threads=1)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_folder_that_is_no_encoder_is_named(documents, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match=r"has no modules\.json"):
        embed_documents(tmp_path, documents, tmp_path / "vectors.parquet", threads=1)


def test_weights_that_are_cut_short_are_named(encoder, documents, tmp_path):
    broken = shutil.copytree(encoder, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match="broken: cannot be opened as an encoder"):
        embed_documents(broken, documents, tmp_path / "vectors.parquet", threads=1)


def test_texts_are_tokenised_some_at_a_time_and_none_is_lost(encoder, monkeypatch):
    tokenizer = open_encoder(encoder).tokenizer
    asked = []

    def counting(texts, **options):
        asked.append(len(texts))
        return tokenizer(texts, **options)

    monkeypatch.setattr(texts, "AT_ONCE", 2)
    tokens = texts.tokenise(["bees", "collect nectar", "loops", "bees bees", "programs"], counting, 16)
    assert asked == [2, 2, 1]
    # Each word of the corpus is a token; [CLS] and [SEP] are two more.
    assert tokens.lengths.tolist() == [3, 4, 3, 4, 3]
