"""Word vectors by gensim's fastText, and texts as sums of them weighted by tf–idf.

The folder of a model holds words.json: the words, sorted, with how often each occurs in the corpus; and
vectors.safetensors: their vectors, and the idf of each, 0 for words that are not summed. Parts of words are not kept: a
word that no paper of the corpus holds has no weight either.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.gensim_training import Arrays, gensim_seed, open_training, train_epochs
from cocite.baselines.steps import Embedding, Training
from cocite.baselines.words import Counted, Lines, Weights, check_frequent, weigh, write_words
from cocite.config.entries import as_json
from cocite.core.tables.files import read_json, write_json

if TYPE_CHECKING:
    from cocite.baselines.methods.fasttext import FastText

WORDS = "words.json"
VECTORS = "vectors.safetensors"


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """The vectors of words, and what else is known of them."""

    words: list[str]
    """Sorted."""
    counts: NDArray[np.int64]
    """How often each occurs in the corpus."""
    total: int
    """How many words there are in the corpus, each as often as it occurs."""
    vectors: NDArray[np.float32]
    idf: NDArray[np.float64]
    """0 for words that are not summed."""


def train_fasttext(fasttext: "FastText", training: Training) -> None:
    """Train, and write the folder of the model."""
    from gensim.models import FastText as Gensim

    open_training(training, as_json(fasttext))
    path = training.state / "words.txt"
    counted = write_words(training, path, fasttext.most_words, fasttext.accents)
    weights = weigh(counted, min_df=fasttext.min_df, max_df=fasttext.max_df)
    model = Gensim(
        vector_size=fasttext.dimension,
        sg=int(fasttext.architecture == "skipgram"),
        window=fasttext.window,
        min_count=fasttext.min_count,
        min_n=fasttext.min_n,
        max_n=fasttext.max_n,
        bucket=fasttext.parts,
        negative=fasttext.negative,
        sample=fasttext.sample,
        epochs=fasttext.epochs,
        alpha=fasttext.lr,
        min_alpha=fasttext.lr_end,
        seed=gensim_seed(training),
        workers=1,
    )
    check_frequent(counted, fasttext.min_count)
    model.build_vocab_from_freq(counted.occurrences, corpus_count=counted.papers)
    train_epochs(model, Lines(path), counted.papers, training.state, _weights)
    write_word_vectors(training.output, word_vectors_of(model, weights, counted))


def _weights(model: Any) -> Arrays:
    return {"words": model.wv.vectors_vocab, "parts": model.wv.vectors_ngrams, "outputs": model.syn1neg}


def word_vectors_of(model: Any, weights: Weights, counted: Counted) -> WordVectors:
    """The vectors of all words that were trained on or are summed; of the others, where their parts have vectors."""
    words = sorted({*model.wv.key_to_index, *(weights.words if model.wv.max_n else ())})
    idf = dict(zip(weights.words, weights.idf.tolist(), strict=True))
    counts = [counted.occurrences[word] for word in words]
    return WordVectors(
        words=words,
        counts=np.array(counts, dtype=np.int64),
        total=counted.words,
        vectors=np.stack([model.wv[word] for word in words]).astype(np.float32),
        idf=np.array([idf.get(word, 0.0) for word in words]),
    )


def write_word_vectors(folder: Path, known: WordVectors) -> None:
    """Write the folder of a model."""
    from safetensors.numpy import save_file

    write_json(folder / WORDS, {"words": known.words, "total": known.total})
    arrays: dict[str, NDArray[Any]] = {"vectors": known.vectors, "idf": known.idf, "counts": known.counts}
    save_file(arrays, folder / VECTORS)


def read_word_vectors(folder: Path) -> WordVectors:
    """Read the folder of a model."""
    from safetensors.numpy import load_file

    known, arrays = read_json(folder / WORDS), load_file(folder / VECTORS)
    return WordVectors(
        words=known["words"],
        total=known["total"],
        vectors=arrays["vectors"],
        idf=arrays["idf"],
        counts=arrays["counts"],
    )


def sums_by_tfidf(fasttext: "FastText", embedding: Embedding) -> Iterator[tuple[list[Any], NDArray[np.float32]]]:
    """The sums of the vectors of each document's words, weighted; those of documents with such words."""
    known = read_word_vectors(embedding.given("model"))
    summed = np.flatnonzero(known.idf)
    weights = Weights(
        words=[known.words[place] for place in summed],
        idf=known.idf[summed],
        norm=fasttext.norm,
        accents=fasttext.accents,
    )
    vectors = known.vectors[summed]
    for batch in embedding.documents():
        of_texts: Any = weights.of(batch.texts)
        rows = np.flatnonzero(np.diff(of_texts.indptr))
        yield [batch.names[row] for row in rows], (of_texts[rows] @ vectors).astype(np.float32)
