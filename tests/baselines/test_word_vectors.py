"""fastText, summed by tf–idf, and paragraph vectors, beside gensim and scikit-learn called by hand, on made papers and
on those of hci; and SIF, beside its plain definition."""

import gzip
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.baselines.tables import embedded, papers, queries, trained

from cocite.baselines import gensim_training
from cocite.baselines.gensim_training import Counted, analyser, weigh, write_words
from cocite.baselines.methods.doc2vec import Doc2Vec, first_vector, infer
from cocite.baselines.methods.fasttext import SIF, FastText
from cocite.baselines.steps import Training
from cocite.core.errors import InputError
from cocite.core.randomness import derive_seed

SMALL = {"dimension": 8, "bucket": 500, "epochs": 3, "min_count": 2, "min_df": 2}
PARAGRAPHS = {"dimension": 8, "epochs": 4, "min_count": 2}
PAPERS, ASKED = 4000, 300
SUBJECTS = ("naïve bayes", "café menus", "graph theory", "deep learning", "protein folding", "sailing boats")


def corpus(papers=60, seed=0):
    draw = np.random.default_rng(seed)
    words = np.array([word for subject in SUBJECTS for word in subject.split()] + ["the", "of", "and", "we", "show"])
    return {
        number: (SUBJECTS[number % 6].title(), " ".join(draw.choice(words, 12)) if number % 7 else None)
        for number in range(1, papers + 1)
    }


@pytest.fixture(scope="module")
def hci(shared):
    """The first papers of the release, by corpus id: those to train on, and others by their names."""
    found = {}
    for table in ("papers", "abstracts"):
        for path in sorted((shared / "data/releases/hci" / table).glob("*.gz")):
            for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()):
                found.setdefault(int(row["corpusid"]), {}).update(row)
    texts = [(paper, (found[paper]["title"], found[paper].get("abstract"))) for paper in sorted(found)]
    return dict(texts[:PAPERS]), {f"{paper:09}": text for paper, text in texts[PAPERS : PAPERS + ASKED]}


@pytest.fixture
def seed_of_gensim(monkeypatch):
    """The seed that calls by hand have."""
    monkeypatch.setattr(gensim_training, "gensim_seed", lambda training: 5)


def by_hand(texts, min_df=2, accents="unicode", norm="l2", **more):
    """The vectors of gensim's fastText in one call, and those of documents by scikit-learn's weights."""
    from gensim.models import FastText as Gensim

    words = [found for text in texts if (found := analyser(accents)(text))]
    asked = {"vector_size": 8, "bucket": 500, "epochs": 3, "min_count": 2, "sg": 1, "workers": 1, "seed": 5} | more
    model = Gensim(**asked)
    model.build_vocab(corpus_iterable=words)
    model.train(corpus_iterable=words, total_examples=len(words), epochs=asked["epochs"])
    chosen = {"stop_words": "english", "min_df": min_df, "max_df": 0.75}
    weights = TfidfVectorizer(strip_accents=accents, norm=norm, **chosen).fit(texts)
    vectors = np.stack([model.wv[word] for word in weights.get_feature_names_out()])
    return lambda asked: weights.transform(asked) @ vectors


def joined(texts):
    return [" ".join(filter(None, text)) for text in texts.values()]


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ({}, {}, "straße"),
        ({"norm": "none", "accents": "ascii"}, {"norm": None, "accents": "ascii"}, "strae"),  # as published
    ],
)
def test_documents_have_the_vectors_of_gensim_and_scikit_learn(tmp_path, seed_of_gensim, ours, theirs, word):
    texts = {number: (f"{title} straße", text) for number, (title, text) in corpus().items()}  # ß has no ASCII letter
    baseline = FastText(kind="fasttext", **ours, **SMALL)
    model = trained(baseline, tmp_path, texts)
    assert {"strae", "straße"} & set(json.loads((model / "words.json").read_text())["words"]) == {word}
    asked = {"a": ("Naïve cafe straße", "deep the and protein"), "b": (None, "sailing BAYES bayes"), "c": ("xy", None)}
    found = embedded(baseline, asked, tmp_path / "v.parquet", model=model)
    expected = by_hand(joined(texts), **theirs)(joined(asked))
    assert found.keys() == {"a", "b"}
    assert np.stack([found["a"], found["b"]]) == pytest.approx(expected[:2], abs=1e-6 if not ours else 1e-5)


@pytest.mark.long
def test_fasttext_reaches_on_hci_what_gensim_reaches_called_by_hand(hci, tmp_path, seed_of_gensim):
    seen, asked = hci
    settings = {"dimension": 50, "bucket": 20_000, "epochs": 2, "architecture": "cbow"}
    model = trained(FastText(kind="fasttext", **settings), tmp_path, seen)
    ours = embedded(FastText(kind="fasttext"), asked, tmp_path / "v.parquet", model=model)
    given = {"vector_size": 50, "bucket": 20_000, "epochs": 2, "min_count": 5, "sg": 0}
    expected = by_hand(joined(seen), min_df=3, **given)(joined(asked))
    assert list(ours) == list(asked)
    assert np.stack(list(ours.values())) == pytest.approx(expected, abs=1e-5)


def test_papers_that_are_kept_out_give_no_word(tmp_path):
    texts = corpus() | {100: ("zebrafish zebrafish", "zebrafish"), 101: ("zebrafish", None), 102: ("zebrafish", None)}
    splits = {100: "holdout", 101: "excluded", 102: "train"}
    model = trained(FastText(kind="fasttext", **SMALL), tmp_path, texts, splits)
    assert "zebrafish" not in json.loads((model / "words.json").read_text())["words"]


def killed_after(checkpoints, baseline, folder, monkeypatch):
    """Train until so many checkpoints are written; the epochs after which one is, then and later."""
    monkeypatch.setattr(gensim_training, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    keep, epochs = gensim_training._keep, []

    def die_after(model, done, path, learned):
        keep(model, done, path, learned)
        epochs.append(done)
        if len(epochs) == checkpoints:
            raise KeyboardInterrupt

    monkeypatch.setattr(gensim_training, "_keep", die_after)
    with pytest.raises(KeyboardInterrupt):
        trained(baseline, folder, corpus())
    assert not (folder / "model").exists()
    return epochs


def test_a_training_that_was_killed_ends_with_the_same_vectors_and_no_file_is_a_pickle(tmp_path, monkeypatch):
    fasttext = FastText(kind="fasttext", **SMALL, architecture="cbow")
    whole = trained(fasttext, tmp_path / "whole", corpus())
    epochs = killed_after(1, fasttext, tmp_path / "killed", monkeypatch)
    resumed = trained(fasttext, tmp_path / "killed", corpus())
    assert epochs == [1, 2]
    assert sorted(file.name for file in whole.iterdir()) == ["settings.json", "vectors.safetensors", "words.json"]
    for file in whole.iterdir():
        assert file.read_bytes() == (resumed / file.name).read_bytes()
    assert not (tmp_path / "killed" / "state").exists()


WORDS = st.sampled_from(["ab", "cd", "ef", "gh", "the", "and", "ÄB", "x"])


@given(
    texts=st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=9), low=st.integers(1, 3), high=st.floats(0.3, 1)
)
def test_weights_are_those_of_scikit_learn(texts, low, high):
    lines = [" ".join(words) for words in texts if analyser()(" ".join(words))]
    asked = [*lines, "ab ab cd", "unknown"]
    words = [analyser()(line) for line in lines]
    in_papers = {word: sum(word in of for of in words) for of in words for word in of}
    counted = Counted(papers=len(lines), words=0, occurrences=in_papers, in_papers=in_papers)
    theirs = TfidfVectorizer(strip_accents="unicode", stop_words="english", min_df=low, max_df=high)
    try:
        expected = theirs.fit(lines).transform(asked)
    except ValueError:
        with pytest.raises(InputError, match="No word is left"):
            weigh(counted, min_df=low, max_df=high)
        return
    ours = weigh(counted, min_df=low, max_df=high)
    assert list(ours.words) == theirs.get_feature_names_out().tolist()
    assert abs(ours.of(asked) - expected).max() < 1e-12


def test_words_are_counted_in_bounded_memory(tmp_path):
    texts = {number: (f"often often word{number}", None) for number in range(1, 9000)}
    source = papers(tmp_path / "0.parquet", texts)
    given = {"papers": [source], "queries": queries(tmp_path / "q.parquet", {}), "seed": 1, "training_seed": 1}
    training = Training(**given, memory_mb=1, state=tmp_path, output=tmp_path)
    counted = write_words(training, tmp_path / "words.txt", most=100)
    assert (counted.papers, counted.words) == (8999, 3 * 8999)
    assert counted.occurrences["often"] == 2 * 8999
    assert counted.in_papers["often"] == 8999
    assert len(counted.occurrences) <= 100


def test_a_resumed_training_reads_the_words_that_were_counted(tmp_path, monkeypatch):
    fasttext = FastText(kind="fasttext", **SMALL)

    def refuse(*_):
        raise RuntimeError("stopped")

    with monkeypatch.context() as stopping:
        stopping.setattr(gensim_training, "train_epochs", refuse)
        with pytest.raises(RuntimeError, match="stopped"):
            trained(fasttext, tmp_path, corpus())
    monkeypatch.setattr(gensim_training, "analyser", refuse)
    trained(fasttext, tmp_path, corpus())


@pytest.mark.parametrize(
    ("texts", "more", "said"),
    [
        ({1: ("one two", None), 2: ("three four", None)}, {}, "No word is left: of 4 words in 2 papers, none is in at"),
        ({1: (None, None)}, {}, "No paper of the corpus that is not kept out has a title or an abstract"),
        ({1: ("red", None), 2: ("red blue", None), 3: ("green", None)}, {"min_count": 3}, "min_count is 3; lower it"),
    ],
)
def test_a_corpus_that_is_too_small_is_refused(tmp_path, texts, more, said):
    with pytest.raises(InputError, match=said):
        trained(FastText(kind="fasttext", **(SMALL | more)), tmp_path, texts)


@pytest.fixture(scope="module")
def fasttext(tmp_path_factory):
    """The model of a fastText, of the papers of `corpus`."""
    return trained(FastText(kind="fasttext", **SMALL), tmp_path_factory.mktemp("fasttext"), corpus())


def plain(texts, word_vectors, share, a):
    """Arora, Liang and Ma (2017), algorithm 1, on texts that all have known words; and the component."""
    means = []
    for text in texts:
        words = [word for word in re.findall(r"\w\w+", text) if word in word_vectors]
        means.append(sum(a / (a + share[word]) * word_vectors[word].astype(float) for word in words) / len(words))
    matrix = np.array(means)
    component = np.linalg.svd(matrix)[2][0]
    return component, lambda some: some - some @ np.outer(component, component), matrix


@pytest.mark.parametrize("a", [1e-5, 1e-3, 1.0])
def test_vectors_are_those_of_the_definition(tmp_path, fasttext, a):
    texts = [text.lower().replace("naïve", "naive").replace("café", "cafe") for text in joined(corpus())]
    words = json.loads((fasttext / "words.json").read_text())["words"]
    vectors = dict(zip(words, load_file(fasttext / "vectors.safetensors")["vectors"], strict=True))
    all_words = [word for text in texts for word in re.findall(r"\w\w+", text)]
    share = {word: all_words.count(word) / len(all_words) for word in words}
    _, without, means = plain(texts, vectors, share, a)

    baseline = SIF(kind="sif", of="fasttext", a=a)
    model = trained(baseline, tmp_path, corpus(), baseline=fasttext)
    found = embedded(baseline, {f"{n:03}": text for n, text in corpus().items()}, tmp_path / "v.parquet", model=model)
    assert np.stack(list(found.values())) == pytest.approx(without(means), abs=1e-6)


def test_a_text_without_a_known_word_has_no_vector(tmp_path, fasttext):
    baseline = SIF(kind="sif", of="fasttext")
    model = trained(baseline, tmp_path, corpus(), baseline=fasttext)
    texts = {"a": ("xylophone", None), "b": (None, None), "c": ("Sailing", "boats")}
    assert embedded(baseline, texts, tmp_path / "v.parquet", model=model).keys() == {"c"}


def test_a_state_with_files_of_a_user_is_refused_by_a_baseline_that_needs_none(tmp_path, fasttext):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/letters").write_text("years of work")
    with pytest.raises(InputError, match="state: has files, and is not a state of CoCite"):
        trained(SIF(kind="sif", of="fasttext"), tmp_path, corpus(), baseline=fasttext)
    assert (tmp_path / "state/letters").exists()


def test_papers_without_a_known_word_give_no_component(tmp_path, fasttext):
    with pytest.raises(InputError, match="has a word with a vector"):
        trained(SIF(kind="sif", of="fasttext"), tmp_path, {1: ("xylophone", None)}, baseline=fasttext)


def test_words_have_the_accents_of_the_word_vectors(tmp_path):
    texts = {number: (f"{title} straße", text) for number, (title, text) in corpus().items()}  # ß has no ASCII letter
    words = trained(FastText(kind="fasttext", accents="ascii", **SMALL), tmp_path / "words", texts)
    baseline = SIF(kind="sif", of="fasttext")
    model = trained(baseline, tmp_path, texts, baseline=words)
    assert embedded(baseline, {"a": ("Straße", None)}, tmp_path / "v.parquet", model=model).keys() == {"a"}


def paragraphs_by_hand(texts, **more):
    """gensim's Doc2Vec in one call."""
    from gensim.models import Doc2Vec as Gensim
    from gensim.models.doc2vec import TaggedDocument

    tagged = [TaggedDocument(found, [number]) for number, found in enumerate(filter(None, map(analyser(), texts)))]
    asked = {"dm": 0, "negative": 5, "alpha": 0.025, "min_alpha": 0.0001, "sample": 0, "workers": 1, "seed": 5}
    return Gensim(tagged, **asked, **{"vector_size": 8, "min_count": 2, "epochs": 4} | more)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PARAGRAPHS, {"dbow_words": 0}),
        (PARAGRAPHS | {"words": True}, {"dbow_words": 1}),
        pytest.param(
            {"dimension": 50, "epochs": 5}, {"vector_size": 50, "epochs": 5, "min_count": 3}, marks=pytest.mark.long
        ),
    ],
)
def test_a_training_of_paragraphs_is_that_of_gensim_called_by_hand(request, tmp_path, seed_of_gensim, ours, theirs):
    texts = request.getfixturevalue("hci")[0] if "min_count" in theirs else corpus()
    baseline = Doc2Vec(kind="doc2vec", **ours)
    model = baseline.read_model(trained(baseline, tmp_path, texts))
    theirs = paragraphs_by_hand(joined(texts), **theirs)
    assert model.wv.index_to_key == theirs.wv.index_to_key
    assert (model.cum_table == theirs.cum_table).all()
    assert (model.syn1neg == theirs.syn1neg).all()


def test_an_inference_is_that_of_gensim_from_the_same_start(tmp_path, monkeypatch):
    baseline = Doc2Vec(kind="doc2vec", **PARAGRAPHS)
    model = baseline.read_model(trained(baseline, tmp_path, corpus()))
    words = ["graph", "theory", "we", "sailing"]
    ours = infer(model, words, seed=3)
    start = first_vector(model, " ".join(words), 3)
    monkeypatch.setattr("gensim.models.doc2vec.pseudorandom_weak_vector", lambda size, seed_string: start.copy())
    model.random = np.random.RandomState(derive_seed(3, "words", " ".join(words)) % 2**32)
    assert (model.infer_vector(words) == ours).all()


def test_a_vector_depends_on_the_words_and_the_seed_alone(tmp_path):
    baseline = Doc2Vec(kind="doc2vec", **PARAGRAPHS)
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
def test_a_training_of_paragraphs_that_was_killed_ends_with_the_same_model(tmp_path, monkeypatch, capsys, lost):
    """Also where files of its state are gone, as where it was killed while the earlier ones were removed."""
    baseline = Doc2Vec(kind="doc2vec", **PARAGRAPHS, words=True)
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
        trained(Doc2Vec(kind="doc2vec", **PARAGRAPHS), tmp_path, corpus())
