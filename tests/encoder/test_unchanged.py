"""After an update of the corpus only papers whose text changed are embedded, and the table is that of a whole run."""

import numpy as np
import pytest
import torch
from tests.encoder.building import TOPICS, built, write_papers
from tests.encoder.published import fetched, published

from cocite.config.encoders import StaticSettings
from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table
from cocite.encoder import embedding
from cocite.encoder.documents import documents_of
from cocite.encoder.embedding import embed_tables
from cocite.encoder.fetch import fetch_encoder
from cocite.encoder.model import Encoder, embed_alike, open_encoder
from cocite.encoder.static import is_static

WORDS = " ".join(TOPICS.values()).split()


class KilledError(Exception):
    """Ends an embedding in a test."""


def texts(count, seed):
    random = np.random.default_rng(seed)
    return {
        2 * at: tuple(" ".join(random.choice(WORDS, size)) for size in random.integers(1, 12, 2)) for at in range(count)
    }


OLDER = {**texts(90, 1), 6: (None, None), 8: ("bees", None)}
NEWER = {paper: text for paper, text in OLDER.items() if paper not in (0, 40)}
NEWER |= {
    5: ("bees in", "programs"),
    6: ("loops", None),
    8: (None, ""),
    10: ("bees", "in loops"),
    999: ("flowers", None),
}
CHANGED = {5, 6, 10, 999}


@pytest.fixture(scope="module")
def static(corpus, tmp_path_factory):
    return built(corpus, tmp_path_factory.mktemp("static") / "model", StaticSettings(kind="static", dimension=12))


@pytest.fixture(scope="module")
def dense(layered, tmp_path_factory):
    return fetched(layered, tmp_path_factory.mktemp("dense") / "model")


@pytest.fixture(params=["encoder", "dense", "static"])
def model(request):
    """A transformer, one with a linear map, and a static encoder."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def embedded(monkeypatch):
    """How many documents were embedded into tables; raises `KilledError` after `most` batches."""
    sizes = []

    def counting(encoder, documents, rows):
        if len(sizes) == counting.most:
            raise KilledError
        sizes.append(len(rows))
        return embed_alike(encoder, documents, rows)

    counting.most, counting.sizes = None, sizes
    monkeypatch.setattr(embedding, "embed_alike", counting)
    monkeypatch.setattr(Encoder, "window", 32)
    monkeypatch.setattr(embedding, "SECONDS_BETWEEN_SYNCS", 0.0)
    return counting


@pytest.fixture
def embed(tmp_path):
    """Embeds the newer papers, and returns the bytes of the table."""

    def run(model, name, base=None, papers=NEWER):
        papers = write_papers(tmp_path / "newer/corpus/papers/0.parquet", papers)
        how = {"threads": 1, "state": tmp_path / "state", "precision": "float32", "base": base}
        embed_tables(model, [papers], tmp_path / name, "papers", **how)
        return (tmp_path / name / "0.parquet").read_bytes()

    return run


@pytest.fixture
def older(model, tmp_path):
    """The results of a run over the older papers, whose encoder was fetched from this folder under another name."""
    base = tmp_path / "older"
    papers = write_papers(base / "corpus/papers/0.parquet", OLDER)
    folder = base / "encoder/other/seed-3"
    if is_static(model):
        fetch_encoder(StaticSettings(kind="static", model=str(model)), folder / "model")
    else:
        fetched(model, folder / "model", max_length=read_json(model / "sentence_bert_config.json")["max_seq_length"])
    how = {"threads": 1, "state": tmp_path / "state", "precision": "float32"}
    embed_tables(folder / "model", [papers], folder / "papers", "papers", **how)
    return base


def test_only_new_and_changed_papers_are_embedded_and_the_bytes_are_those_of_a_whole_run(
    model, older, embed, embedded, capfd
):
    whole = embed(model, "whole")
    embedded.sizes.clear()
    assert embed(model, "updated", older) == whole
    assert sum(embedded.sizes) == len(CHANGED)
    assert f"{len(NEWER) - len(CHANGED) - 1} of {len(NEWER)} papers have the text" in capfd.readouterr().err


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_where_no_paper_kept_its_text_all_are_embedded(model, older, embed, embedded):
    added = {1001: ("bees", "in loops"), 1003: ("flowers", None)}
    whole = embed(model, "whole", papers=added)
    embedded.sizes.clear()
    assert embed(model, "updated", older, added) == whole
    assert sum(embedded.sizes) == len(added)


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_an_update_killed_at_any_batch_ends_with_the_same_bytes(model, older, embed, embedded):
    whole = embed(model, "whole")
    for most in range(3):
        embedded.sizes.clear()
        embedded.most = most
        with pytest.raises(KilledError):
            embed(model, f"killed-{most}", older)
        embedded.most = None
        assert embed(model, f"killed-{most}", older) == whole
        assert sum(embedded.sizes) == len(CHANGED)


@pytest.mark.parametrize("model", ["encoder", "static"], indirect=True)
def test_vectors_by_other_weights_or_computed_otherwise_are_not_taken(model, older, embed, embedded, capfd):
    whole = embed(model, "whole")
    [table] = older.glob("encoder/*/*/papers/0.parquet")
    vectors = read_table(table, "paper_embeddings")
    matrix = vectors_of(vectors)
    matrix[2] = np.nextafter(matrix[2], 1)
    write_table(table, "paper_embeddings", vectors.set_column(1, "vector", vector_column(matrix)))
    assert embed(model, "other-bits", older) == whole
    assert "other vectors than this encoder computes now; all papers are embedded" in capfd.readouterr().err
    [weights] = older.glob("encoder/*/*/model/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert embed(model, "other-weights", older) == whole
    assert "has no vectors of these papers by this encoder" in capfd.readouterr().err


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("kind", ["bert", "qwen3", "modernbert"])
def test_the_vector_of_a_document_depends_on_no_other_document(kind, tmp_path, one_thread):
    encoder = open_encoder(fetched(published(tmp_path / kind, kind), tmp_path / "fetched"))
    random = np.random.default_rng(1)
    documents = documents_of([random.integers(5, 60, size) for size in np.repeat(np.arange(1, 30), 4)])
    together = np.empty((len(documents), encoder.dimension), np.float32)
    for rows in encoder.batches(documents.lengths):
        assert len(set(documents.lengths[rows].tolist())) == 1
        together[rows] = embed_alike(encoder, documents, rows)
    alone = np.concatenate([embed_alike(encoder, documents, np.array([row])) for row in range(len(documents))])
    np.testing.assert_array_equal(together, alone)
