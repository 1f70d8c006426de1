"""Sentences that are embedded by themselves: their sum, normalised, is the vector of the document."""

import json

import numpy as np
import pytest
from tests.encoder.building import embedded
from tests.papers import papers_table

from cocite.config.encoders import EncoderSettings
from cocite.config.settings import parse_settings
from cocite.core.tables.files import read_table, write_table
from cocite.encoder import embedding, model
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.papers import embed_papers, embed_sums, tokenise_sentences
from cocite.encoder.tokens import sentences_of, tokenise

WORDS = ("bees", "collect", "nectar", "flowers", "meadow", "compilers", "allocate", "registers", "loops", "programs")


def papers_of(count):
    """Papers whose abstracts have none to six sentences of one to nine words; every tenth has no title."""
    random = np.random.default_rng(3)
    texts = {}
    for paper in range(count):
        sentences = [" ".join(random.choice(WORDS, random.integers(1, 10))) for _ in range(random.integers(0, 7))]
        abstract = " ".join(f"{sentence.capitalize()}." for sentence in sentences) or None
        texts[paper] = (None if paper % 10 == 5 else " ".join(random.choice(WORDS, 3)), abstract)
    return texts


@pytest.fixture(scope="module")
def sentence_wise(encoder, tmp_path_factory):
    """The small encoder, by sentence."""
    folder = tmp_path_factory.mktemp("sentence-wise") / "model"
    settings = {"model": str(encoder), "max_length": 16, "sentence_wise": True, "prompts": {"document": "loops "}}
    fetch_encoder(parse_settings(EncoderSettings, json.dumps(settings)), folder)
    return folder


def by_a_plain_loop(folder, papers):
    """The definition: each text is embedded alone; the vectors of a paper are added up and divided by their norm."""
    encoder = open_encoder(folder)
    vectors = []
    for title, abstract in papers:
        parts = [part.strip() for part in [title, *sentences_of(abstract)] if part and part.strip()]
        total = sum(embed(encoder, tokenise([f"loops {part}"], encoder.tokenizer))[0] for part in parts)
        vectors.append(total / np.sqrt((total**2).sum()))
    return np.array(vectors)


def test_vectors_are_those_of_a_plain_loop(sentence_wise, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "WINDOW", 16)
    monkeypatch.setitem(model.TOKENS_IN_BATCH, "cpu", 64)
    texts = papers_of(60)
    write_table(tmp_path / "in/0.parquet", "papers", papers_table(texts))
    vectors = embedded(sentence_wise, tmp_path / "in/0.parquet", tmp_path, "papers", threads=2)
    table = read_table(tmp_path / "0.parquet", "paper_embeddings")
    there = [paper for paper, parts in texts.items() if any(parts)]
    assert table["corpusid"].to_pylist() == there
    expected = by_a_plain_loop(sentence_wise, [texts[paper] for paper in there])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(embed_papers(sentence_wise, [texts[paper] for paper in there]), expected, atol=1e-5)


def test_a_batch_has_no_more_tokens_than_a_batch_of_whole_texts(sentence_wise, tmp_path, monkeypatch):
    asked = []

    def noted(encoder, documents, rows):
        asked.append(int(documents.lengths[rows].max() * len(rows)))
        return plain(encoder, documents, rows)

    plain = model.embed_batch
    monkeypatch.setattr(model, "embed_batch", noted)
    monkeypatch.setitem(model.TOKENS_IN_BATCH, "cpu", 64)
    write_table(tmp_path / "in/0.parquet", "papers", papers_table(papers_of(40)))
    embedded(sentence_wise, tmp_path / "in/0.parquet", tmp_path, "papers")
    assert asked
    assert max(asked) <= 64


def test_short_queries_are_one_text_and_normalised_as_well(sentence_wise):
    encoder = open_encoder(sentence_wise)
    text = encoder.tokenizer.short_query("q", "Bees collect. Nectar flowers.")
    [vector] = embed_sums(encoder, tokenise_sentences([text], encoder.tokenizer), np.array([0]))
    [alone] = embed(encoder, tokenise(["Bees collect. Nectar flowers."], encoder.tokenizer, [True]))
    np.testing.assert_allclose(vector, alone / np.linalg.norm(alone), atol=1e-6)
