"""Paragraph vectors, beside gensim called by hand."""

import numpy as np
import pytest
from tests.baselines.tables import embedded, trained
from tests.baselines.test_word_vectors import corpus, joined, killed_after

from cocite.baselines import gensim_training
from cocite.baselines.gensim_training import analyser
from cocite.baselines.methods.doc2vec import Doc2Vec, first_vector, infer
from cocite.core.errors import InputError
from cocite.core.randomness import derive_seed

SMALL = {"dimension": 8, "epochs": 4, "min_count": 2}


def by_hand(texts, **more):
    """gensim's Doc2Vec in one call."""
    from gensim.models import Doc2Vec as Gensim
    from gensim.models.doc2vec import TaggedDocument

    tagged = [TaggedDocument(found, [number]) for number, found in enumerate(filter(None, map(analyser(), texts)))]
    asked = {"dm": 0, "negative": 5, "alpha": 0.025, "min_alpha": 0.0001, "sample": 0, "workers": 1, "seed": 5}
    return Gensim(tagged, **asked, **{"vector_size": 8, "min_count": 2, "epochs": 4} | more)


@pytest.mark.parametrize("words", [False, True])
def test_a_training_is_that_of_gensim_called_by_hand(tmp_path, monkeypatch, words):
    monkeypatch.setattr(gensim_training, "gensim_seed", lambda training: 5)
    baseline = Doc2Vec(kind="doc2vec", **SMALL, words=words)
    model = baseline.read_model(trained(baseline, tmp_path, corpus()))
    theirs = by_hand(joined(corpus()), dbow_words=int(words))
    assert model.wv.index_to_key == theirs.wv.index_to_key
    assert (model.cum_table == theirs.cum_table).all()
    assert (model.syn1neg == theirs.syn1neg).all()


def test_an_inference_is_that_of_gensim_from_the_same_start(tmp_path, monkeypatch):
    baseline = Doc2Vec(kind="doc2vec", **SMALL)
    model = baseline.read_model(trained(baseline, tmp_path, corpus()))
    words = ["graph", "theory", "we", "sailing"]
    ours = infer(model, words, seed=3)
    start = first_vector(model, " ".join(words), 3)
    monkeypatch.setattr("gensim.models.doc2vec.pseudorandom_weak_vector", lambda size, seed_string: start.copy())
    model.random = np.random.RandomState(derive_seed(3, "words", " ".join(words)) % 2**32)
    assert (model.infer_vector(words) == ours).all()


def test_a_vector_depends_on_the_words_and_the_seed_alone(tmp_path):
    baseline = Doc2Vec(kind="doc2vec", **SMALL)
    model = trained(baseline, tmp_path, corpus())
    asked = {"a": ("Graph theory", None), "b": ("Sailing", "boats"), "c": ("xylophone", None)}
    some = embedded(baseline, asked, tmp_path / "1.parquet", model=model)
    asked |= {"0": ("Deep learning", None), "d": (None, "graph THEORY")}
    more = embedded(baseline, asked, tmp_path / "2.parquet", model=model)
    assert some.keys() == {"a", "b"}
    assert more.keys() == {"0", "a", "b", "d"}
    assert all((some[name] == more[name]).all() for name in some)
    assert (more["a"] == more["d"]).all()
    other = trained(baseline, tmp_path / "other", corpus(), training_seed=2)
    moved = embedded(baseline, asked, tmp_path / "3.parquet", model=other)
    assert not (moved["a"] == some["a"]).any()


@pytest.mark.parametrize("lost", [None, "reached/*", "reached/reached.json*", "reached/words.npy*", "words.txt*"])
def test_a_training_that_was_killed_ends_with_the_same_model(tmp_path, monkeypatch, capsys, lost):
    """Also where files of its state are gone, as where it was killed while the earlier ones were removed."""
    baseline = Doc2Vec(kind="doc2vec", **SMALL, words=True)
    whole = trained(baseline, tmp_path / "whole", corpus())
    epochs = killed_after(2, baseline, tmp_path / "killed", monkeypatch)
    for path in (tmp_path / "killed/state").glob(lost or "no file"):
        path.unlink()
    resumed = trained(baseline, tmp_path / "killed", corpus())
    starts_afresh = lost is not None and lost.startswith("reached")
    assert epochs == ([1, 2, 1, 2, 3] if starts_afresh else [1, 2, 3])
    assert ("is gone; the training starts afresh" in capsys.readouterr().err) == starts_afresh
    for file in ("outputs.safetensors", "words.json"):
        assert (whole / file).read_bytes() == (resumed / file).read_bytes()


def test_words_that_cannot_be_read_any_more_end_the_training(tmp_path, monkeypatch):
    monkeypatch.setattr(gensim_training, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(gensim_training, "_keep", lambda *_: (tmp_path / "state/words.txt").unlink())
    with pytest.raises(InputError, match=r"state: its words cannot be read .*words\.txt.*; start the training again"):
        trained(Doc2Vec(kind="doc2vec", **SMALL), tmp_path, corpus())
