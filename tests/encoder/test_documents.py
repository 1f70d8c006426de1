"""The embeddings of documents."""

import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from cocite.encoder import documents as embedding_step
from cocite.encoder import tokens, vector_file, windows
from cocite.encoder.documents import embed_tables
from cocite.encoder.embedding import TOKENS_AT_ONCE, embed_batch
from cocite.encoder.model import open_encoder
from cocite.ground.errors import InputError
from cocite.tables.files import read_table, vectors_of

TEXTS = {
    "a": ("bees collect", "nectar from flowers in the meadow bees bees bees collect flowers nectar meadow in the"),
    "b": ("compilers", None),
    "c": (None, None),
    "d": (None, "registers for loops"),
    "e": ("", ""),
    "f": ("loops", "in programs", "journal of compilers", "2019"),
}


class KilledError(Exception):
    """Ends an embedding in a test."""


@pytest.fixture
def documents(write_documents, tmp_path):
    return write_documents(tmp_path / "documents.parquet", TEXTS)


@pytest.fixture
def embed(encoder, tmp_path):
    """Embeds documents into a file of this name, and returns its path."""

    def run(documents, name="vectors", model=encoder, threads=1):
        embed_tables(model, [documents], tmp_path / name, threads=threads, state=tmp_path / "state")
        return tmp_path / name / documents.name

    return run


@pytest.fixture
def small_batches(monkeypatch):
    """Windows of four documents, batches of at most 12 tokens: a, b, d and f have 16, 3, 5 and 11 or more tokens."""
    monkeypatch.setattr(embedding_step, "WINDOW", 4)
    monkeypatch.setitem(TOKENS_AT_ONCE, "cpu", 12)


@pytest.fixture
def batches(monkeypatch):
    """The sizes of all batches that are embedded; raises `KilledError` instead of embedding one after `most`."""
    sizes = []

    def counting(model, documents, rows):
        if len(sizes) == counting.most:
            raise KilledError
        sizes.append(len(rows))
        return embed_batch(model, documents, rows)

    counting.most = None
    counting.sizes = sizes
    monkeypatch.setattr(embedding_step, "embed_batch", counting)
    return counting


def test_vectors_equal_those_of_sentence_transformers(encoder, documents, embed):
    table = read_table(embed(documents), "document_embeddings")
    model = SentenceTransformer(str(encoder), device="cpu")
    joined = ["[SEP]".join(part for part in TEXTS[name] if part) for name in "abdf"]
    assert table["document"].to_pylist() == list("abdf")
    np.testing.assert_allclose(vectors_of(table), model.encode(joined), atol=1e-6)


def test_documents_without_text_are_left_out_and_counted(documents, embed, capfd):
    embed(documents)
    assert "Embedded 4 of 6 documents; 2 have no text." in capfd.readouterr().err


def test_documents_may_all_be_without_text(write_documents, embed, encoder, tmp_path):
    empty = write_documents(tmp_path / "empty.parquet", {"a": (None, None), "b": ("", " ")})
    table = read_table(embed(empty), "document_embeddings")
    assert len(table) == 0
    assert table.schema.field("vector").type.list_size == open_encoder(encoder).dimension


def test_windows_change_nothing_but_noise(documents, embed, monkeypatch):
    vectors = []
    for size in (1, 2, 100):
        monkeypatch.setattr(embedding_step, "WINDOW", size)
        vectors.append(vectors_of(read_table(embed(documents), "document_embeddings")))
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    np.testing.assert_allclose(vectors[1], vectors[2], atol=1e-6)


def test_how_much_is_read_and_written_at_once_changes_no_vector(documents, embed, monkeypatch):
    whole = read_table(embed(documents), "document_embeddings")
    for size in (1, 2, 3):
        monkeypatch.setattr(windows, "ROWS", size)
        monkeypatch.setattr(embedding_step, "ROWS", size)
        assert read_table(embed(documents), "document_embeddings").equals(whole)


def test_the_same_documents_give_the_same_bytes_again(documents, embed):
    assert embed(documents, "first").read_bytes() == embed(documents, "second").read_bytes()


def test_several_tables_in_one_go_give_the_bytes_of_each_by_itself(
    write_documents, documents, embed, encoder, tmp_path
):
    others = write_documents(tmp_path / "others.parquet", {"b": ("bees", None), "x": ("loops in programs", None)})
    alone = [embed(documents, "first").read_bytes(), embed(others, "second").read_bytes()]
    (tmp_path / "benchmark").mkdir()
    others.rename(tmp_path / "benchmark/documents.parquet")
    sources = [documents, tmp_path / "benchmark"]
    embed_tables(encoder, sources, tmp_path / "both", threads=1, state=tmp_path / "state")
    assert [(tmp_path / "both" / f"{name}.parquet").read_bytes() for name in ("documents", "benchmark")] == alone
    assert not (tmp_path / "state").exists()


def test_more_threads_give_the_same_bytes(documents, embed, small_batches):
    assert embed(documents, "one", threads=1).read_bytes() == embed(documents, "three", threads=3).read_bytes()


@pytest.mark.parametrize("done", range(4))
def test_an_embedding_killed_at_any_batch_goes_on_there_and_gives_the_same_bytes(
    documents, embed, small_batches, batches, monkeypatch, tmp_path, done
):
    monkeypatch.setattr(vector_file, "SECONDS_BETWEEN_SYNCS", 0.0)
    whole = embed(documents, "whole").read_bytes()
    # The first window has a, d and b: a alone is longer than 12 tokens, d and b have 2 × 5; the second has f alone.
    assert batches.sizes == [1, 2, 1]
    batches.sizes.clear()
    batches.most = done
    if done < 3:
        with pytest.raises(KilledError):
            embed(documents, "resumed")
        assert not (tmp_path / "resumed/documents.parquet").exists()
    batches.most = None
    assert embed(documents, "resumed").read_bytes() == whole
    assert batches.sizes == [1, 2, 1]
    assert not (tmp_path / "state").exists()


def test_what_was_not_yet_on_the_disk_is_embedded_again(documents, embed, small_batches, batches):
    whole = embed(documents, "whole").read_bytes()
    batches.sizes.clear()
    batches.most = 2
    with pytest.raises(KilledError):
        embed(documents, "resumed")
    batches.most = None
    assert embed(documents, "resumed").read_bytes() == whole
    assert batches.sizes == [1, 2, 1, 2, 1]


def test_other_documents_are_embedded_from_the_start(
    documents, embed, small_batches, batches, monkeypatch, write_documents
):
    monkeypatch.setattr(vector_file, "SECONDS_BETWEEN_SYNCS", 0.0)
    batches.most = 2
    with pytest.raises(KilledError):
        embed(documents)
    write_documents(documents, {**TEXTS, "a": ("compilers", "allocate")})
    batches.most = None
    batches.sizes.clear()
    resumed = embed(documents, "resumed").read_bytes()
    assert sum(batches.sizes) == 4
    assert resumed == embed(documents, "afresh").read_bytes()


def test_a_vector_that_is_not_finite_is_told_with_its_document(documents, embed, monkeypatch):
    def broken(model, tokens, rows):
        vectors = embed_batch(model, tokens, rows)
        vectors[tokens.lengths_of(rows) == 3, 5] = np.inf
        return vectors

    # Only b has a text of one word, and with it three tokens.
    monkeypatch.setattr(embedding_step, "embed_batch", broken)
    with pytest.raises(InputError, match="gives document 'b' a vector that is not finite"):
        embed(documents)


def test_a_folder_that_is_no_encoder_is_named(documents, embed, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match=r"has no modules\.json"):
        embed(documents, model=tmp_path)


def test_weights_that_are_cut_short_are_named(encoder, documents, embed, tmp_path):
    broken = shutil.copytree(encoder, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match="broken: cannot be opened as an encoder"):
        embed(documents, model=broken)


def test_texts_are_tokenised_some_at_a_time_and_none_is_lost(encoder, monkeypatch):
    monkeypatch.setattr(tokens, "AT_ONCE", 2)
    tokenised = tokens.tokenise(
        ["bees", "collect nectar", "loops", "bees bees", "programs"], tokens.open_tokenizer(encoder)
    )
    # Each word of the corpus is a token; [CLS] and [SEP] are two more.
    assert tokenised.lengths.tolist() == [3, 4, 3, 4, 3]
