"""Smooth inverse frequency, beside its plain definition."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.baselines.tables import embedded, trained
from tests.baselines.test_fasttext import SMALL, corpus, joined

from cocite.baselines.methods.word_vectors import SIF, FastText
from cocite.core.errors import InputError


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


def test_papers_without_a_known_word_give_no_component(tmp_path, fasttext):
    with pytest.raises(InputError, match="has a word with a vector"):
        trained(SIF(kind="sif", of="fasttext"), tmp_path, {1: ("xylophone", None)}, baseline=fasttext)
