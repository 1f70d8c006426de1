"""`cocite publish`: a model with its card, scores, report and vectors in one folder, which is opened to check it."""

import os
import shutil
import time

import numpy as np
import pyarrow as pa
import pytest
import yaml
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer
from tests.configurations import with_changes
from tests.papers import papers_table
from tests.rows import write_rows
from tests.tools.builders import invoke, write_vectors
from tests.workflow.conftest import SMALL

from cocite.config.configuration import resolve
from cocite.config.encoders import EncoderSettings, StaticSettings
from cocite.core.atomic import write_json
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table
from cocite.encoder.build import build_encoder, repool
from cocite.encoder.model import embed, open_encoder
from cocite.encoder.poolings import pooling_in
from cocite.encoder.tokens import tokenise

TEXTS = {1: ("Bees", "They collect nectar."), 2: ("Compilers", "Registers for loops."), 3: ("Flowers", None)}
OF_DOCUMENTS = "encoder/cocite/seed-1/embeddings/holdout.parquet"
CARD = "---\nlibrary_name: sentence-transformers\n---\n# An encoder\n\nWhat it is.\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What a run has left of a model, its documents and its scores."""
    folder = tmp_path_factory.mktemp("run") / "results"
    (folder / "corpus/papers").mkdir(parents=True)
    configured(folder, resolve(SMALL))
    write_table(folder / "corpus/papers/0.parquet", "papers", papers_table(TEXTS))
    write_rows(folder / "corpus/queries.parquet", "queries", "corpusid split", [(1, "train")])
    settings = EncoderSettings(**SMALL["encoders"]["small"] | {"build": {"layers": 1, "hidden": 16, "vocabulary": 220}})
    build(folder, settings)
    row = {"benchmark": "holdout", "task": "cite", "metric": "map", "mode": "both", "model": "cocite", "seed": 1}
    row |= {"evaluation_seed": 1, "value": 71.25, "documents": 3, "missing": 0}
    row |= {"format": "proximity", "scored": 1, "unscored": 0, **dict.fromkeys(("searched", "copies", "unfindable"))}
    path = folder / "evaluation/holdout/scores/small/cocite-1.parquet"
    write_rows(path, "scores", " ".join(row), [tuple(row.values())])
    (folder / "report/cards/cocite/seed-1").mkdir(parents=True)
    (folder / "report/cards/cocite/seed-1/README.md").write_text(CARD)
    (folder / "report/index.html").write_text("<p>The report.</p>")
    return folder


def configured(results, config):
    """Record a configuration, and that a run on papers of Semantic Scholar was finished with it."""
    (results / "configuration.yaml").write_text(yaml.safe_dump(config))
    write_json(results / "provenance.json", {"configuration": config | {"corpus": {"source": "s2"}}})


@pytest.fixture
def results(made, tmp_path):
    return shutil.copytree(made, tmp_path / "results")


def build(results, settings):
    """An encoder of the papers of a run, with what it has embedded of the documents and the papers."""
    model = results / "encoder/cocite/seed-1/model"
    build_encoder(
        [results / "corpus/papers/0.parquet"], results / "corpus/queries.parquet", model, settings=settings, seed=1
    )
    documents = [(str(paper), *text, [], None) for paper, text in TEXTS.items()]
    columns = "document title abstract more field"
    write_rows(results / "evaluation/holdout/documents.parquet", "documents", columns, documents)
    encoder = open_encoder(model)
    vectors = embed(encoder, tokenise(texts_for(encoder), encoder.tokenizer))
    embedded = {"adapter": [""] * len(TEXTS), "document": [str(paper) for paper in TEXTS]}
    write_table(results / OF_DOCUMENTS, "document_embeddings", pa.table({**embedded, "vector": vector_column(vectors)}))
    papers = results / "encoder/cocite/seed-1/papers/0.parquet"
    write_vectors(papers, dict(zip(TEXTS, vectors, strict=True)))
    later = time.time() + 10
    os.utime(papers, (later, later))


def texts_for(encoder):
    return [encoder.tokenizer.document(0, {"title": title, "abstract": rest}).text for title, rest in TEXTS.values()]


def publish(results, output, *arguments, name="cocite"):
    return invoke("publish", name, "--licence", "apache-2.0", "--results", results, "--output", output, *arguments)


def test_the_folder_has_all_that_is_published_and_embeds_as_the_run_did(results, tmp_path):
    output = tmp_path / "published"
    said = publish(results, output, "--vectors")
    assert said.exit_code == 0
    assert "gives 3 documents of the run the vectors that they had there" in said.stderr
    data = ModelCard.load(output / "README.md").data
    assert (data.license, data.model_name, data.library_name) == ("apache-2.0", "cocite", "sentence-transformers")
    [score] = data.eval_results
    assert (score.dataset_type, score.dataset_config, score.metric_type) == ("holdout", "cite", "map")
    assert score.metric_value == 71.25
    assert not (output / "mteb").exists()  # A hold-out is no test of mteb.
    assert (output / "report.html").read_text() == "<p>The report.</p>"
    stored = read_table(output / "vectors/0.parquet", "paper_embeddings")
    found = SentenceTransformer(str(output)).encode(["Flowers"])
    np.testing.assert_allclose(vectors_of(stored)[2], found[0], atol=1e-5)
    assert "| `vector` |" in (output / "vectors/README.md").read_text()


def test_a_model_with_another_pooling_is_published_with_the_vectors_of_that_pooling_only(results, tmp_path):
    """The model is scored with its first token's vectors as well."""
    configured(results, resolve(with_changes(SMALL, models__cocite__poolings=["cls"])))
    model = results / "encoder/cocite/seed-1/model"
    repool(model, "cls", results / "encoder/cocite_in_cls/seed-1/model")
    shutil.copytree(results / "report/cards/cocite", results / "report/cards/cocite_in_cls")
    embedded = read_table(results / OF_DOCUMENTS, "document_embeddings")
    theirs, texts = SentenceTransformer(str(model), device="cpu"), texts_for(open_encoder(model))
    first = np.stack([tokens[0].numpy() for tokens in theirs.encode(texts, output_value="token_embeddings")])
    path = results / "encoder/cocite_in_cls/seed-1/embeddings/holdout.parquet"
    write_table(path, "document_embeddings", embedded)  # the vectors of the first pooling
    with pytest.raises(InputError, match="another vector than in the run"):
        publish(results, tmp_path / "published", name="cocite_in_cls")
    write_table(path, "document_embeddings", embedded.set_column(2, "vector", vector_column(first)))
    said = publish(results, tmp_path / "published", name="cocite_in_cls")
    assert said.exit_code == 0
    assert "gives 3 documents of the run the vectors that they had there" in said.stderr
    assert pooling_in(tmp_path / "published") == "cls"
    assert not (tmp_path / "published/model.safetensors").samefile(model / "model.safetensors")


def test_scores_on_generated_documents_are_no_metadata(results, tmp_path):
    write_json(results / "provenance.json", {"configuration": resolve(SMALL)})
    said = publish(results, tmp_path / "published")
    assert "Left out of the metadata are scores on generated documents (holdout, scirepeval)" in said.stderr
    assert not (tmp_path / "published/mteb").exists()
    assert not (tmp_path / "published/vectors").exists()
    assert "model-index" not in (tmp_path / "published/README.md").read_text()


def test_an_encoder_without_scores_is_published_without_them(results, tmp_path):
    shutil.rmtree(results / "evaluation/holdout/scores")
    publish(results, tmp_path / "published")
    assert "model-index" not in (tmp_path / "published/README.md").read_text()


@pytest.mark.parametrize(("factors", "document"), [([-1, 1, 1], 1), ([1, np.nan, 1], 2)])
def test_an_encoder_that_embeds_otherwise_than_in_the_run_is_not_published(results, tmp_path, factors, document):
    embedded = read_table(results / OF_DOCUMENTS, "document_embeddings")
    others = (vectors_of(embedded).T * factors).T.astype(np.float32)
    write_table(results / OF_DOCUMENTS, "document_embeddings", embedded.set_column(2, "vector", vector_column(others)))
    another = f"Opened by CoCite, the encoder gives document {document} another vector than in the run"
    with pytest.raises(InputError, match=another):
        publish(results, tmp_path / "published")
    assert not (tmp_path / "published").exists()


def test_a_table_whose_counts_others_do_not_read_is_published_and_that_is_said(results, tmp_path):
    shutil.rmtree(results / "encoder/cocite/seed-1/model")
    build(results, StaticSettings(kind="static", dimension=8, vocabulary=220))
    said = publish(results, tmp_path / "published").stderr
    assert "Other libraries count repeated word pieces fully" in said
    assert "gives 3 documents of the run the vectors that they had there" in said


def test_what_is_missing_is_said_before_anything_is_written(results, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists already"):
        publish(results, tmp_path / "there")
    (results / "encoder/cocite/seed-1/papers/0.parquet").unlink()
    with pytest.raises(InputError, match="The papers have no vectors of model cocite, seed 1"):
        publish(results, tmp_path / "published", "--vectors")
    (results / "provenance.json").unlink()
    with pytest.raises(InputError, match="finish the run first"):
        publish(results, tmp_path / "published")
    with pytest.raises(InputError, match="There is no model 'other'; MODEL can be cocite/1"):
        publish(results, tmp_path / "published", name="other")
