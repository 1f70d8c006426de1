"""fastText and doc2vec on papers of hci, beside gensim called by hand."""

import gzip
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.baselines.tables import embedded, trained

from cocite.baselines import gensim_training
from cocite.baselines.gensim_training import analyser
from cocite.baselines.methods.doc2vec import Doc2Vec
from cocite.baselines.methods.fasttext import FastText

PAPERS, ASKED, SEED = 4000, 300, 7


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
    from gensim.models import FastText as Gensim

    monkeypatch.setattr("cocite.baselines.gensim_training.gensim_seed", lambda training: SEED)
    seen = dict(list(hci.items())[:PAPERS])
    asked = {f"{paper:09}": text for paper, text in list(hci.items())[PAPERS:]}
    settings = {"dimension": 50, "parts": 20_000, "epochs": 2, "architecture": "cbow"}
    model = trained(FastText(kind="fasttext", **settings), tmp_path, seen)
    ours = embedded(FastText(kind="fasttext"), asked, tmp_path / "v.parquet", model=model)

    texts = [" ".join(filter(None, text)) for text in seen.values()]
    words = [analyser()(text) for text in texts]
    theirs = Gensim(vector_size=50, bucket=20_000, epochs=2, workers=1, seed=SEED)
    theirs.build_vocab(corpus_iterable=words)
    theirs.train(corpus_iterable=words, total_examples=len(words), epochs=2)
    weights = TfidfVectorizer(strip_accents="unicode", stop_words="english", min_df=3, max_df=0.75).fit(texts)
    vectors = np.stack([theirs.wv[word] for word in weights.get_feature_names_out()])
    expected = weights.transform([" ".join(filter(None, text)) for text in asked.values()]) @ vectors
    assert list(ours) == list(asked)
    assert np.stack(list(ours.values())) == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
def test_doc2vec_reaches_on_hci_what_gensim_reaches_called_by_hand(hci, tmp_path, monkeypatch):
    from gensim.models import Doc2Vec as Gensim
    from gensim.models.doc2vec import TaggedDocument

    monkeypatch.setattr(gensim_training, "gensim_seed", lambda training: SEED)
    seen = dict(list(hci.items())[:PAPERS])
    baseline = Doc2Vec(kind="doc2vec", dimension=50, epochs=5)
    ours = baseline.read_model(trained(baseline, tmp_path, seen))

    tagged = [
        TaggedDocument(analyser()(" ".join(filter(None, text))), [number]) for number, text in enumerate(seen.values())
    ]
    given = {"dm": 0, "min_count": 3, "negative": 5, "alpha": 0.025, "min_alpha": 0.0001, "sample": 0}
    theirs = Gensim(tagged, vector_size=50, epochs=5, workers=1, seed=SEED, **given)
    assert ours.wv.index_to_key == theirs.wv.index_to_key
    assert (ours.syn1neg == theirs.syn1neg).all()
