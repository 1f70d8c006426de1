"""Paragraph vectors by gensim's Doc2Vec: trained on the corpus, inferred for documents.

The vectors of the papers lie in a file of the state, mapped into memory, however many there are; the model does without
them. Its folder holds words.json, the words with how often each occurs, in gensim's order, and outputs.safetensors, the
weights that predict them: all that an inference needs. An inference starts from a vector that depends on the text and
the seed alone; gensim's own `infer_vector` starts from Python's hash of the text, which differs from run to run.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.gensim_training import Arrays, gensim_seed, open_training, train_epochs
from cocite.baselines.steps import Embedding, Training
from cocite.baselines.words import Lines, analyser, check_frequent, write_words
from cocite.config.entries import as_json
from cocite.core.progress import progress_bar
from cocite.core.randomness import derive_seed, generator
from cocite.core.tables.files import count_rows, read_json, write_json

if TYPE_CHECKING:
    from cocite.baselines.methods.doc2vec import Doc2Vec

WORDS, OUTPUTS = "words.json", "outputs.safetensors"
SEEDS = "settings.json"
ROWS_DRAWN = 65_536
"""Vectors of papers that are drawn at a time."""


class Tagged:
    """The words of each paper with its number, as gensim takes them; read again with each pass."""

    def __init__(self, path: Path) -> None:
        self.lines = Lines(path)

    def __iter__(self) -> Iterator[Any]:
        """Read the file."""
        from gensim.models.doc2vec import TaggedDocument

        for number, words in enumerate(self.lines):
            yield TaggedDocument(words, [number])


def train_doc2vec(doc2vec: "Doc2Vec", training: Training) -> None:
    """Train, and write the folder of the model."""
    from safetensors.numpy import save_file

    open_training(training, as_json(doc2vec))
    path = training.state / "words.txt"
    counted = write_words(training, path, doc2vec.most_words)
    check_frequent(counted, doc2vec.min_count)
    model = gensim_model(doc2vec, gensim_seed(training))
    model.build_vocab_from_freq(counted.occurrences, corpus_count=counted.papers)
    _place_papers(model, counted.papers, training.state / "papers.f32")
    train_epochs(model, Tagged(path), counted.papers, training.state, _weights)
    words = {word: counted.occurrences[word] for word in model.wv.index_to_key}
    write_json(training.output / WORDS, list(words.items()))
    save_file({"outputs": model.syn1neg}, training.output / OUTPUTS)


def gensim_model(doc2vec: "Doc2Vec", seed: int, *, min_count: int | None = None) -> Any:
    """A model of gensim with these settings, without a vocabulary."""
    from gensim.models import Doc2Vec as Gensim

    return Gensim(
        vector_size=doc2vec.dimension,
        dm=0,
        dbow_words=int(doc2vec.words),
        window=doc2vec.window,
        min_count=min_count or doc2vec.min_count,
        negative=doc2vec.negative,
        sample=doc2vec.sample,
        epochs=doc2vec.epochs,
        alpha=doc2vec.lr,
        min_alpha=doc2vec.lr_end,
        seed=seed,
        workers=1,
    )


def _place_papers(model: Any, papers: int, path: Path) -> None:
    """Give the papers the vectors that gensim begins with, in a file that is mapped into memory."""
    vectors = np.memmap(path, np.float32, "w+", shape=(papers, model.vector_size))
    draw = np.random.default_rng(seed=model.seed + 7919)  # as gensim's init_weights
    for start in range(0, papers, ROWS_DRAWN):
        rows = draw.random(vectors[start : start + ROWS_DRAWN].shape, dtype=np.float32)
        vectors[start : start + ROWS_DRAWN] = (rows * np.float32(2) - np.float32(1)) / np.float32(model.vector_size)
    model.dv.index_to_key = range(papers)
    model.dv.vectors = vectors


def _weights(model: Any) -> Arrays:
    of_words = {"words": model.wv.vectors} if model.dbow_words else {}
    return {"papers": model.dv.vectors, "outputs": model.syn1neg, **of_words}


def inferred(doc2vec: "Doc2Vec", embedding: Embedding) -> Iterator[tuple[list[Any], NDArray[np.float32]]]:
    """The vectors of the documents that have a word which the model knows."""
    model, words_of = read_model(doc2vec, embedding.given("model")), analyser()
    seeds = read_json(embedding.given("model") / SEEDS)
    seed = derive_seed(seeds["seed"], "infer", seeds["training_seed"])
    with progress_bar(of="Inferring", unit=embedding.table, total=count_rows(embedding.source)) as bar:
        for batch in embedding.documents():
            names, vectors = [], []
            for name, text in zip(batch.names, batch.texts, strict=True):
                words = [word for word in words_of(text) if word in model.wv.key_to_index]
                if words:
                    names.append(name)
                    vectors.append(infer(model, words, seed))
            bar.update(len(batch.names))
            yield names, np.stack(vectors) if vectors else np.empty((0, doc2vec.dimension), np.float32)


def read_model(doc2vec: "Doc2Vec", folder: Path) -> Any:
    """The model of a folder, as far as an inference needs it."""
    from safetensors.numpy import load_file

    model = gensim_model(doc2vec, 1, min_count=1)
    counts = dict(read_json(folder / WORDS))
    model.build_vocab_from_freq(counts)
    # Sorting turns round what occurs equally often; the outputs are in the order of the training.
    model.wv.index_to_key = list(counts)
    model.wv.key_to_index = {word: place for place, word in enumerate(counts)}
    model.syn1neg = load_file(folder / OUTPUTS)["outputs"]
    return model


def infer(model: Any, words: Sequence[str], seed: int) -> NDArray[np.float32]:
    """The vector of a text with these words, as gensim infers it; it depends on the words and the seed alone."""
    from gensim.models.doc2vec_inner import train_document_dbow

    text = " ".join(words)
    vector = first_vector(model, text, seed).reshape(1, -1)
    model.random = np.random.RandomState(derive_seed(seed, "words", text) % 2**32)
    work, lock = np.zeros(model.layer1_size, np.float32), np.ones(1, np.float32)
    rate, step = model.alpha, (model.alpha - model.min_alpha) / max(model.epochs - 1, 1)
    for _ in range(model.epochs):
        train_document_dbow(
            model, words, [0], rate, work, learn_words=False, learn_hidden=False,
            doctag_vectors=vector, doctags_lockf=lock,
        )  # fmt: skip
        rate -= step
    return vector[0]


def first_vector(model: Any, text: str, seed: int) -> NDArray[np.float32]:
    """The vector that an inference begins with."""
    drawn = generator(seed, "first", text).random(model.vector_size, dtype=np.float32)
    return (drawn - np.float32(0.5)) / np.float32(model.vector_size)
