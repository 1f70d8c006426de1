"""fastText and doc2vec on papers of hci, beside gensim called by hand."""

import gzip
import json

import numpy as np
import pytest
from tests.baselines import test_doc2vec, test_word_vectors
from tests.baselines.tables import embedded, trained
from tests.baselines.test_word_vectors import joined

from cocite.baselines import gensim_training
from cocite.baselines.methods.doc2vec import Doc2Vec
from cocite.baselines.methods.fasttext import FastText

PAPERS, ASKED = 4000, 300


@pytest.fixture(scope="module")
def hci(shared):
    """The first papers of the release, by corpus id."""
    folder = shared / "data" / "releases" / "hci"
    found = {}
    for table in ("papers", "abstracts"):
        for path in sorted((folder / table).glob("*.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for row in map(json.loads, lines):
                    found.setdefault(int(row["corpusid"]), {}).update(row)
    chosen = sorted(found)[: PAPERS + ASKED]
    return {paper: (found[paper]["title"], found[paper].get("abstract")) for paper in chosen}


@pytest.mark.long
def test_fasttext_reaches_on_hci_what_gensim_reaches_called_by_hand(hci, tmp_path, monkeypatch):
    monkeypatch.setattr(gensim_training, "gensim_seed", lambda training: 5)
    seen = dict(list(hci.items())[:PAPERS])
    asked = {f"{paper:09}": text for paper, text in list(hci.items())[PAPERS:]}
    settings = {"dimension": 50, "bucket": 20_000, "epochs": 2, "architecture": "cbow"}
    model = trained(FastText(kind="fasttext", **settings), tmp_path, seen)
    ours = embedded(FastText(kind="fasttext"), asked, tmp_path / "v.parquet", model=model)
    given = {"vector_size": 50, "bucket": 20_000, "epochs": 2, "min_count": 5, "sg": 0, "seed": 5}
    expected = test_word_vectors.by_hand(joined(seen), min_df=3, **given)(joined(asked))
    assert list(ours) == list(asked)
    assert np.stack(list(ours.values())) == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
def test_doc2vec_reaches_on_hci_what_gensim_reaches_called_by_hand(hci, tmp_path, monkeypatch):
    monkeypatch.setattr(gensim_training, "gensim_seed", lambda training: 5)
    seen = dict(list(hci.items())[:PAPERS])
    baseline = Doc2Vec(kind="doc2vec", dimension=50, epochs=5)
    ours = baseline.read_model(trained(baseline, tmp_path, seen))
    theirs = test_doc2vec.by_hand(joined(seen), vector_size=50, epochs=5, min_count=3)
    assert ours.wv.index_to_key == theirs.wv.index_to_key
    assert (ours.syn1neg == theirs.syn1neg).all()
