"""Short queries and documents have prompts and lengths of their own, which travel with the model."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from tests.encoder.building import built, embedded, trained, write_documents

from cocite.config.encoders import EncoderSettings
from cocite.config.settings import parse_settings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.encoder.documents import open_tokens
from cocite.encoder.embedding import embed_papers
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.tokens import open_tokenizer, tokenise, tokenise_table

PROMPTS = {"query": "bees: ", "document": "loops: "}
QUERIES = ["nectar", "collect nectar from flowers", "registers for loops"]
PAPERS = [("bees collect nectar", "from flowers in the meadow"), ("compilers", None)]


@pytest.fixture(scope="session")
def prompted(encoder, tmp_path_factory):
    """The small encoder with prompts; short queries are cut to 8 tokens, documents to 16."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    settings = {"model": str(encoder), "max_length": 16, "query_max_length": 8, "prompts": PROMPTS}
    fetch_encoder(parse_settings(EncoderSettings, json.dumps(settings)), folder)
    return folder


def test_sentence_transformers_gives_the_same_vectors_by_the_names_of_the_prompts(prompted):
    model, ours = SentenceTransformer(str(prompted), device="cpu"), open_encoder(prompted)
    texts = [ours.tokenizer.short_query(0, query).text for query in QUERIES]
    of_queries = embed(ours, tokenise(texts, ours.tokenizer, [True] * len(texts)))
    np.testing.assert_allclose(of_queries, model.encode(QUERIES, prompt_name="query"), atol=1e-5)
    joined = [f"{title}[SEP]{abstract}" if abstract else title for title, abstract in PAPERS]
    of_papers = embed_papers(prompted, PAPERS)
    np.testing.assert_allclose(of_papers, model.encode(joined, prompt_name="document"), atol=1e-5)
    assert np.abs(of_papers - model.encode(joined)).max() > 1e-3


def test_a_built_encoder_has_them_as_well(corpus, small_settings, tmp_path):
    given = small_settings.model_dump(exclude_none=True) | {"prompts": PROMPTS, "query_max_length": 9}
    built(corpus, tmp_path / "model", EncoderSettings.model_validate(given))
    tokenizer = open_tokenizer(tmp_path / "model")
    assert tokenizer.short_query(0, "nectar").text == "bees: nectar"
    assert tokenizer.reading.query_max_length == 9


def test_short_queries_are_cut_by_their_own_length(prompted):
    tokenizer = open_tokenizer(prompted)
    words = " ".join(["nectar"] * 40)
    long, short, other = tokenizer([words, words, "nectar"], [False, True, True])
    assert (len(long), len(short), len(other)) == (16, 8, 3)
    assert long[-1] == short[-1] == other[-1]
    assert [len(ids) for ids in tokenizer([words, words])] == [16, 16]


def test_training_documents_are_tokenised_by_what_they_are(prompted, tmp_path):
    words = " ".join(["nectar"] * 40)
    rows = {"corpusid": [-7, -5, 3], "title": [words] * 3, "abstract": pa.nulls(3, pa.string())}
    table = pa.table({**rows, "is_query": [True, False, False]})
    write_table(tmp_path / "documents/0.parquet", "training_documents", table)
    tokenizer = open_tokenizer(prompted)
    tokenise_table(tmp_path / "documents", encoder=prompted, threads=1, output=tmp_path / "tokens")
    ids, documents = open_tokens(tmp_path / "tokens")
    assert dict(zip(ids.tolist(), documents.lengths.tolist(), strict=True)) == {-7: 8, -5: 16, 3: 16}
    # [CLS], the two tokens of "bees:" or "loops:", and then the words.
    first = {name: tokenizer.backend.token_to_id(name) for name in ("bees", "loops")}
    assert [int(documents[row][1]) for row in range(3)] == [first["bees"], first["loops"], first["loops"]]


def test_documents_of_a_benchmark_are_embedded_by_what_they_are(prompted, tmp_path):
    path = write_documents(tmp_path / "plain.parquet", {"a": ("nectar", None), "b": ("nectar", None)})
    as_documents = embedded(prompted, path, tmp_path / "vectors")
    np.testing.assert_array_equal(as_documents[0], as_documents[1])
    marked = pq.read_table(path).append_column("is_query", pa.array([True, False]))
    pq.write_table(marked, tmp_path / "marked.parquet")
    vectors = embedded(prompted, tmp_path / "marked.parquet", tmp_path / "vectors")
    model = SentenceTransformer(str(prompted), device="cpu")
    np.testing.assert_allclose(vectors[0], model.encode("nectar", prompt_name="query"), atol=1e-5)
    np.testing.assert_array_equal(vectors[1], as_documents[1])


def test_a_trained_model_keeps_them_and_its_card_names_them(prompted, inputs, tmp_path):
    trained(tmp_path, replace(inputs, encoder=prompted), batch_size=8)
    tokenizer = open_tokenizer(tmp_path / "model")
    assert [tokenizer.reading.query_prompt, tokenizer.reading.document_prompt] == [*PROMPTS.values()]
    assert tokenizer.reading.query_max_length == 8
    card = (tmp_path / "model/README.md").read_text()
    assert 'abstract], prompt_name="document")' in card
    assert "'bees: ' before short queries, 'loops: ' before documents" in card
    assert SentenceTransformer(str(tmp_path / "model"), device="cpu").prompts["query"] == PROMPTS["query"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"query_max_length": 600}, r"query_max_length \(600\) must not exceed max_length \(512\)"),
        ({"prompts": {}}, "prompts needs query, document or both"),
        ({"prompts": {"queries": "q"}}, "queries"),
    ],
)
def test_what_would_have_no_effect_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        parse_settings(EncoderSettings, json.dumps({"model": "lab/encoder", **settings}))


def test_prompts_of_the_folder_that_is_fetched_are_not_taken_over(prompted, tmp_path):
    copied = shutil.copytree(prompted, tmp_path / "copied")
    fetch_encoder(EncoderSettings(model=str(copied), max_length=16), tmp_path / "model")
    assert open_tokenizer(tmp_path / "model").reading.query_prompt == ""
    assert "prompts" in read_json(copied / "config_sentence_transformers.json")
