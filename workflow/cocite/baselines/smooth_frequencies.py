"""Means of word vectors weighted by smooth inverse frequency, without their first principal component.

The component is the first right singular vector of the means of all papers, as published, which are not centred. It
follows from the sum of their outer products, dimension × dimension, however many papers there are. A model's folder
holds words.json and sif.safetensors: the weighted vectors of the words, and the component.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.steps import Embedding, Training
from cocite.baselines.word_vectors import read_word_vectors
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.tables.files import read_json, write_json

WORDS, VECTORS = "words.json", "sif.safetensors"


class Means:
    """The weighted vectors of words, and from them the means of texts."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Take the words, sorted, with the vector of each times its weight."""
        from sklearn.feature_extraction.text import CountVectorizer

        self.counter = CountVectorizer(strip_accents="unicode", vocabulary=list(words))
        self.vectors = vectors

    def of(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows of the texts that have a known word, and the mean over the known words of each."""
        counts: Any = self.counter.transform(texts)
        rows = np.flatnonzero(np.diff(counts.indptr))
        known = counts[rows]
        return rows, (known @ self.vectors.astype(np.float64)) / np.asarray(known.sum(axis=1)).reshape(-1, 1)


def train_sif(a: float, training: Training) -> None:
    """Write the folder of the model. Raises `InputError` where no paper has a known word."""
    from safetensors.numpy import save_file

    known = read_word_vectors(training.given("baseline"))
    weights = a / (a + known.counts / known.total)
    vectors = (known.vectors * weights[:, None]).astype(np.float32)
    component = first_component(Means(known.words, vectors), training)
    write_json(training.output / WORDS, known.words)
    arrays: dict[str, NDArray[Any]] = {"vectors": vectors, "component": component}
    save_file(arrays, training.output / VECTORS)


def first_component(means: Means, training: Training) -> NDArray[np.float64]:
    """The direction, of length 1, in which the means of the papers are largest."""
    dimension = means.vectors.shape[1]
    products, seen = np.zeros((dimension, dimension)), 0
    for batch in progress(training.seen(), of="Means", unit="batch"):
        rows, of_papers = means.of(batch.texts)
        products += of_papers.T @ of_papers
        seen += len(rows)
    if not seen:
        raise InputError("No paper of the corpus that is not kept out has a word with a vector; nothing to train on.")
    component: NDArray[np.float64] = np.linalg.eigh(products)[1][:, -1]
    return component * np.sign(component[np.argmax(np.abs(component))])


def means_without_component(embedding: Embedding) -> Iterator[tuple[list[Any], NDArray[np.float64]]]:
    """The means of the documents that have a known word, less their part along the component."""
    means, component = read_model(embedding.given("model"))
    for batch in embedding.documents():
        rows, found = means.of(batch.texts)
        yield [batch.names[row] for row in rows], found - np.outer(found @ component, component)


def read_model(folder: Path) -> tuple[Means, NDArray[np.float64]]:
    """What a folder holds: the vectors of words, and the component."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / VECTORS)
    return Means(read_json(folder / WORDS), arrays["vectors"]), arrays["component"]
