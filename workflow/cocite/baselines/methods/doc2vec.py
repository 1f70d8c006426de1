"""The baseline `doc2vec`: paragraph vectors by gensim, trained on the corpus, inferred for documents.

The vectors of the papers are in a file of the state, mapped into memory; a model does not need them, but the words
and their counts, in gensim's order, and the weights that predict them. An inference starts from a vector that depends
only on the text and the seed; gensim's own starts from Python's hash of the text, which differs from run to run.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cocite.config.baseline import Seeded
from cocite.config.entries import Count, NonNegative, Positive, as_json
from cocite.core.atomic import read_json, write_json
from cocite.core.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cocite.baselines.steps import Embedding, Training

WORDS, OUTPUTS = "words.json", "outputs.safetensors"
SEEDS = "settings.json"
ROWS_DRAWN = 65_536


class Doc2Vec(Seeded):
    """Paragraph vectors that predict the words of a text (distributed bag of words; Le and Mikolov, 2014), by gensim.

    The vector of a document is inferred from its words, whether or not the training had it (SPECTER, 2020).
    """

    kind: Literal["doc2vec"]
    dimension: Annotated[int, Field(ge=1, le=4096)] = 300
    """Number of dimensions of the vectors."""
    words: bool = False
    """Whether word vectors are learned together with text vectors, by skip-gram."""
    window: Count = 5
    """Words on either side of a word that count as around it; it has an effect only with `words`."""
    min_count: Count = 3
    """How often a word has to occur to count."""
    negative: Count = 5
    """Random words that a word is told from."""
    sample: NonNegative = 0
    """Share of all words from which a frequent one is skipped now and then; 0 skips none."""
    epochs: Count = 100
    """Passes over the corpus, and over a text whose vector is inferred."""
    lr: Positive = 0.025
    """Learning rate at the start."""
    lr_end: Positive = 0.0001
    """Learning rate at the end, to which it falls in a straight line."""
    max_vocab_size: Count = 2_000_000
    """Distinct words that are counted at a time; with more, the rarest are dropped."""
    trained_on = ("papers",)

    def training_memory(self, sources_mb: float) -> float:
        """Vectors and counts of words; those of the texts are on the disk."""
        words = min(self.max_vocab_size, 20_000 * (1 + sources_mb / 10))
        return 1500 + 3 * words * self.dimension * 4 / 1e6

    def training_minutes(self, sources_mb: float) -> float:
        """By measured speed, with a margin."""
        return 30 + self.epochs * sources_mb * (0.6 if self.words else 0.15)

    def embedding_minutes(self, sources_mb: float) -> float:
        """As many passes over the documents."""
        return 20 + self.epochs * sources_mb * 0.15

    def train(self, training: "Training") -> None:
        """Train the vectors of the papers, and keep what vectors are inferred with."""
        import numpy as np
        from safetensors.numpy import save_file

        from cocite.baselines import gensim_training as by_gensim

        by_gensim.open_training(training, as_json(self))
        path = training.state / "words.txt"
        counted = by_gensim.write_words(training, path, self.max_vocab_size)
        by_gensim.check_frequent(counted, self.min_count)
        model = self.gensim_model(by_gensim.gensim_seed(training))
        model.build_vocab_from_freq(counted.occurrences, corpus_count=counted.papers)
        # The vectors that gensim begins with, in a file that is mapped into memory.
        shape = counted.papers, self.dimension
        vectors = np.memmap(training.state / "papers.f32", np.float32, "w+", shape=shape)
        draw = np.random.default_rng(seed=model.seed + 7919)  # as gensim's init_weights
        for start in range(0, counted.papers, ROWS_DRAWN):
            some = vectors[start : start + ROWS_DRAWN]
            some[:] = (draw.random(some.shape, np.float32) * np.float32(2) - np.float32(1)) / np.float32(self.dimension)
        model.dv.index_to_key, model.dv.vectors = range(counted.papers), vectors

        def learned() -> dict[str, Any]:
            of_words = {"words": model.wv.vectors} if model.dbow_words else {}
            return {"papers": model.dv.vectors, "outputs": model.syn1neg, **of_words}

        lines = by_gensim.Lines(path, numbered=True)
        by_gensim.train_epochs(model, lines, counted.papers, training.state, learned)
        write_json(training.output / WORDS, [(word, counted.occurrences[word]) for word in model.wv.index_to_key])
        save_file({"outputs": model.syn1neg}, training.output / OUTPUTS)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Infer the vector of each document; a text without a known word has none."""
        import numpy as np

        from cocite.baselines.gensim_training import analyser
        from cocite.core.randomness import derive_seed
        from cocite.core.tables.files import count_rows

        folder = embedding.given("model")
        model, words_of, seeds = self.read_model(folder), analyser(), read_json(folder / SEEDS)
        seed = derive_seed(seeds["seed"], "infer", seeds["training_seed"])
        with progress_bar(of="Inferring", unit=embedding.table, total=count_rows(embedding.source)) as bar:
            for batch in embedding.documents():
                names, vectors = [], [np.empty((0, self.dimension), np.float32)]
                for name, text in zip(batch.names, batch.texts, strict=True):
                    words = [word for word in words_of(text) if word in model.wv.key_to_index]
                    if words:
                        names.append(name)
                        vectors.append(infer(model, words, seed)[None])
                bar.update(len(batch.names))
                yield names, np.concatenate(vectors)

    def gensim_model(self, seed: int, *, min_count: int | None = None) -> Any:
        """A model of gensim with these settings, without a vocabulary."""
        from gensim.models import Doc2Vec as Gensim

        from cocite.baselines.gensim_training import gensim_settings

        shared = gensim_settings(self, seed) | {"min_count": min_count or self.min_count}
        return Gensim(dm=0, dbow_words=int(self.words), **shared)

    def read_model(self, folder: Path) -> Any:
        """The model of a folder, as far as an inference needs it."""
        from safetensors.numpy import load_file

        model = self.gensim_model(1, min_count=1)
        counts = dict(read_json(folder / WORDS))
        model.build_vocab_from_freq(counts)
        # Sorting turns round what occurs equally often; the outputs are in the order of the training.
        model.wv.index_to_key = list(counts)
        model.wv.key_to_index = {word: place for place, word in enumerate(counts)}
        model.syn1neg = load_file(folder / OUTPUTS)["outputs"]
        return model


def infer(model: Any, words: Sequence[str], seed: int) -> "NDArray[np.float32]":
    """The vector of a text with these words, as gensim infers it; it depends only on the words and the seed."""
    import numpy as np
    from gensim.models.doc2vec_inner import train_document_dbow

    from cocite.core.randomness import derive_seed

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


def first_vector(model: Any, text: str, seed: int) -> "NDArray[np.float32]":
    """The vector that an inference begins with."""
    import numpy as np

    from cocite.core.randomness import generator

    drawn = generator(seed, "first", text).random(model.vector_size, dtype=np.float32)
    return (drawn - np.float32(0.5)) / np.float32(model.vector_size)
