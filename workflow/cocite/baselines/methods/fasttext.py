"""The baselines `fasttext`, texts as sums of word vectors by gensim weighted by tf–idf, and `sif`, means of the same by
smooth inverse frequency, without their common component.

A model's folder has words.json, the sorted words, and their arrays as safetensors: of `fasttext` vectors, counts and
idf, of `sif` weighted vectors and the component. The idf of a word that is not summed is 0. Subwords are not kept: a
word that occurs in no paper has no weight. The common component is the
first right singular vector of the means of all papers, not centred, as published: of the sum of their outer products.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from cocite.config.baseline import Seeded, Trained
from cocite.config.entries import Count, Natural, NonNegative, Positive, Refers, Whole, as_json, inconsistent
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError
from cocite.core.progress import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cocite.baselines.gensim_training import Accents
    from cocite.baselines.steps import Batch, Embedding, Training

    Vectors = NDArray[np.floating]

WORDS, VECTORS, WEIGHTED = "words.json", "vectors.safetensors", "sif.safetensors"


class FastText(Seeded):
    """The sum of a text's word vectors, each weighted by its tf–idf.

    The vectors are those of gensim's fastText, trained on the corpus, the weights those of scikit-learn's
    TfidfVectorizer (SPECTER, 2020).
    """

    kind: Literal["fasttext"]
    dimension: Annotated[int, Field(ge=1, le=4096)] = 300
    """Number of dimensions of the vectors."""
    architecture: Literal["skipgram", "cbow"] = "skipgram"
    """Training task: predict the words around a word, or the word from those around it (several times as fast)."""
    window: Count = 5
    """Words on either side of a word that count as around it."""
    min_count: Count = 5
    """Least count of a word to train on. Rarer words have the vectors of their subwords."""
    min_n: Natural = 3
    """Letters of the shortest subword with a vector."""
    max_n: Natural = 6
    """Letters of the longest; 0 uses no subwords, as word2vec."""
    bucket: Count = 2_000_000
    """Number of hash buckets that subwords share (gensim's `bucket`)."""
    negative: Count = 5
    """Negative samples per word."""
    sample: NonNegative = 1e-3
    """Share of all words above which a frequent word is randomly skipped."""
    epochs: Count = 5
    """Passes over the corpus."""
    lr: Positive = 0.025
    """Initial learning rate."""
    lr_end: Positive = 0.0001
    """Final learning rate, reached linearly."""
    min_df: Count = 3
    """Least number of papers that must contain a word for it to be summed."""
    max_df: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Largest share of papers that may contain it."""
    norm: Literal["l2", "none"] = "l2"
    """l2 scales the weights of a text to the norm 1; none leaves them (SPECTER's published option)."""
    accents: Literal["unicode", "ascii"] = "unicode"
    """How accents are removed; ascii also drops all letters without a counterpart in ASCII (SPECTER's published
    option)."""
    max_vocab_size: Count = 2_000_000
    """Distinct words that are counted at a time; with more, the rarest are dropped."""
    trained_on = ("papers",)

    @model_validator(mode="after")
    def _parts_have_letters(self) -> "FastText":
        if self.max_n and not 1 <= self.min_n <= self.max_n:
            raise inconsistent(f".min_n ({self.min_n}) must be at least 1 and not exceed max_n ({self.max_n}).")
        return self

    def training_memory(self, sources_mb: float) -> float:
        """Vectors of words and parts, and counts of words; the corpus is not held."""
        words = min(self.max_vocab_size, 20_000 * (1 + sources_mb / 10))
        return 1000 + 1.3 * ((3 * words + self.bucket) * self.dimension * 4 / 1e6)

    def training_minutes(self, sources_mb: float) -> float:
        """By measured speed, with a margin."""
        return 30 + self.epochs * sources_mb * (1.5 if self.architecture == "skipgram" else 0.5)

    def train(self, training: "Training") -> None:
        """Train the vectors of words, and weigh the words."""
        import numpy as np
        from gensim.models import FastText as Gensim
        from safetensors.numpy import save_file

        from cocite.baselines import gensim_training as by_gensim

        by_gensim.open_training(training, as_json(self))
        path = training.state / "words.txt"
        counted = by_gensim.write_words(training, path, self.max_vocab_size, self.accents)
        weights = by_gensim.weigh(counted, min_df=self.min_df, max_df=self.max_df)
        shared = by_gensim.gensim_settings(self, by_gensim.gensim_seed(training))
        subwords = {"min_n": self.min_n, "max_n": self.max_n, "bucket": self.bucket}
        model = Gensim(sg=int(self.architecture == "skipgram"), **subwords, **shared)
        by_gensim.check_frequent(counted, self.min_count)
        model.build_vocab_from_freq(counted.occurrences, corpus_count=counted.papers)

        def learned() -> dict[str, Any]:
            return {"words": model.wv.vectors_vocab, "parts": model.wv.vectors_ngrams, "outputs": model.syn1neg}

        by_gensim.train_epochs(model, by_gensim.Lines(path), counted.papers, training.state, learned)
        # All words that were trained on or are summed; of the latter, those whose parts have vectors.
        words = sorted({*model.wv.key_to_index, *(weights.words if model.wv.max_n else ())})
        idf = dict(zip(weights.words, weights.idf.tolist(), strict=True))
        arrays = {
            "vectors": np.stack([model.wv[word] for word in words]).astype(np.float32),
            "idf": np.array([idf.get(word, 0.0) for word in words]),
            "counts": np.array([counted.occurrences[word] for word in words], dtype=np.int64),
        }
        write_json(training.output / WORDS, {"words": words, "total": counted.words, "accents": self.accents})
        save_file(arrays, training.output / VECTORS)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Sum the weighted vectors of the words; a text without a known word has none."""
        import numpy as np

        from cocite.baselines.gensim_training import Weights

        known = read_word_vectors(embedding.given("model"))
        summed = np.flatnonzero(known.idf)
        words = [known.words[place] for place in summed]
        weights = Weights(words=words, idf=known.idf[summed], norm=self.norm, accents=self.accents)
        vectors = known.vectors[summed]
        for batch in embedding.documents():
            of_texts = weights.of(batch.texts)
            rows = np.flatnonzero(np.diff(of_texts.indptr))
            yield [batch.names[row] for row in rows], (of_texts[rows] @ vectors).astype(np.float32)


class WordVectors(NamedTuple):
    """The contents of the folder of a model."""

    words: list[str]
    total: int
    counts: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"
    idf: "NDArray[np.float64]"
    accents: "Accents" = "unicode"


def read_word_vectors(folder: Path) -> WordVectors:
    """Read the folder of a model."""
    from safetensors.numpy import load_file

    arrays: Any = load_file(folder / VECTORS)
    return WordVectors(**read_json(folder / WORDS), **arrays)


class SIF(Trained):
    """The mean of a text's word vectors, rare words counting more, without what all texts have in common.

    A word that makes up the share p of the corpus counts a / (a + p); of the means, their first principal component is
    removed (smooth inverse frequency; Arora, Liang and Ma, 2017).
    """

    kind: Literal["sif"]
    of: Annotated[str, Refers("baselines")]
    """Name of the baseline of the kind fasttext whose word vectors it takes; it has that one's seeds."""
    a: Positive = 1e-3
    """How soon a frequent word counts less: the smaller, the sooner."""
    trained_on = ("papers", "baseline")

    def training_memory(self, sources_mb: float) -> float:
        """The vectors of words; papers come some thousand at a time."""
        return 1000 + 3 * sources_mb

    def training_minutes(self, sources_mb: float) -> float:
        """One pass over the corpus."""
        return 20 + 0.1 * sources_mb

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A baseline without word vectors."""
        yield from super().check_references(key, config)
        kind = config.baselines[self.of].kind
        if kind != "fasttext":
            yield f"{key}.of: the baseline {self.of} ({kind}) has no word vectors; those of the kind fasttext have."

    def train(self, training: "Training") -> None:
        """Weigh the words, and find the common component. Raises `InputError` if no paper has a known word."""
        import numpy as np
        from safetensors.numpy import save_file

        known = read_word_vectors(training.given("baseline"))
        weights = self.a / (self.a + known.counts / known.total)
        vectors = (known.vectors * weights[:, None]).astype(np.float32)
        products, seen = np.zeros((vectors.shape[1], vectors.shape[1])), 0
        batches = _means(training.seen(), known.words, vectors, known.accents)
        for papers, means in progress(batches, of="Means", unit="batch"):
            products += means.T @ means
            seen += len(papers)
        if not seen:
            raise InputError("No paper of the corpus that is not kept out has a word with a vector to train on.")
        # The direction, of length 1, in which the means of the papers are largest.
        component = np.linalg.eigh(products)[1][:, -1]
        component = component * np.sign(component[np.argmax(np.abs(component))])
        write_json(training.output / WORDS, {"words": known.words, "accents": known.accents})
        save_file({"vectors": vectors, "component": component}, training.output / WEIGHTED)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Take the means, and remove the component; a text without a known word has none."""
        import numpy as np
        from safetensors.numpy import load_file

        folder = embedding.given("model")
        arrays = load_file(folder / WEIGHTED)
        component, known = arrays["component"], read_json(folder / WORDS)
        for names, means in _means(embedding.documents(), vectors=arrays["vectors"], **known):
            yield names, means - np.outer(means @ component, component)


def _means(
    batches: Iterator["Batch"], words: list[str], vectors: "Vectors", accents: "Accents"
) -> Iterator[tuple[list[Any], "Vectors"]]:
    """The documents that have a known word, and the means of the weighted vectors of the known words of each."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    counter, weighted = CountVectorizer(strip_accents=accents, vocabulary=words), vectors.astype(np.float64)
    for batch in batches:
        counts: Any = counter.transform(batch.texts)
        rows = np.flatnonzero(np.diff(counts.indptr))
        known = counts[rows]
        means = (known @ weighted) / np.asarray(known.sum(axis=1)).reshape(-1, 1)
        yield [batch.names[row] for row in rows], means
