"""Encoders that are built untrained."""

import pytest
from sentence_transformers import SentenceTransformer
from tests.encoder.building import built, paper_texts, write_papers, write_queries
from transformers import AutoModel, AutoTokenizer

from cocite.core.errors import InputError
from cocite.encoder.build import build_encoder


def test_both_libraries_open_a_built_encoder(encoder):
    model = SentenceTransformer(str(encoder))
    assert model.max_seq_length == 16
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]
    bert = AutoModel.from_pretrained(encoder)
    assert (bert.config.hidden_size, bert.config.num_hidden_layers, bert.config.intermediate_size) == (16, 1, 64)


def test_frequent_words_are_tokens_in_lower_case(encoder):
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    assert tokenizer.tokenize("Bees COLLECT") == ["bees", "collect"]
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("Bees collect")["input_ids"])
    assert tokens == ["[CLS]", "bees", "collect", "[SEP]"]


def test_papers_that_are_kept_out_leave_no_trace_in_the_vocabulary(encoder):
    vocabulary = AutoTokenizer.from_pretrained(encoder).get_vocab()
    assert "y" not in vocabulary
    assert not [token for token in vocabulary if "zy" in token or "ÿ" in token]


def test_buckets_and_runs_do_not_change_an_encoder(corpus, encoder, small_settings, tmp_path):
    texts = paper_texts()
    even, odd = (
        write_papers(tmp_path / f"{r}.parquet", {i: t for i, t in texts.items() if i % 2 == r}) for r in (0, 1)
    )
    build_encoder([odd, even], corpus / "queries.parquet", tmp_path / "model", settings=small_settings, seed=1)
    for file in ("tokenizer.json", "model.safetensors", "config.json"):
        assert (tmp_path / "model" / file).read_bytes() == (encoder / file).read_bytes()


def test_another_seed_gives_other_weights(corpus, encoder, small_settings, tmp_path):
    built(corpus, tmp_path / "model", small_settings, seed=2)
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (encoder / "tokenizer.json").read_bytes()
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != (encoder / "model.safetensors").read_bytes()


def test_a_corpus_without_texts_is_refused(small_settings, tmp_path):
    papers = write_papers(tmp_path / "papers.parquet", {1: (None, None), 2: ("held out", None)})
    queries = write_queries(tmp_path / "queries.parquet", {2: "holdout"})
    with pytest.raises(InputError, match="no titles and abstracts"):
        build_encoder([papers], queries, tmp_path / "model", settings=small_settings, seed=1)
    assert not (tmp_path / "model").exists()
