"""The baseline `fasttext`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cocite.config.baseline import Seeded
from cocite.config.entries import Count, Natural, NonNegative, Positive, inconsistent

if TYPE_CHECKING:
    from cocite.baselines.steps import Embedding, Training


class FastText(Seeded):
    """The sum of a text's word vectors, each weighted by its tf–idf.

    The vectors are those of gensim's fastText, trained on the corpus, the weights those of scikit-learn's
    TfidfVectorizer (SPECTER, 2020).
    """

    kind: Literal["fasttext"]
    dimension: Annotated[int, Field(ge=1, le=4096)] = 300
    """Length of the vectors."""
    architecture: Literal["skipgram", "cbow"] = "skipgram"
    """What is learned: the words around a word, or the word from those around it, which is several times as fast."""
    window: Count = 5
    """Words on either side of a word that count as around it."""
    min_count: Count = 5
    """How often a word has to occur to be trained on. Rarer ones have the vectors of their parts."""
    min_n: Natural = 3
    """Letters of the shortest part of a word that has a vector."""
    max_n: Natural = 6
    """Letters of the longest; 0 leaves the parts out, as in word2vec."""
    parts: Count = 2_000_000
    """Vectors that the parts share: a part has the one that its hash says (gensim's `bucket`)."""
    negative: Count = 5
    """Random words that a word is told from."""
    sample: NonNegative = 1e-3
    """Share of all words from which a frequent one is skipped now and then."""
    epochs: Count = 5
    """Passes over the corpus."""
    lr: Positive = 0.025
    """Learning rate at the start."""
    lr_end: Positive = 0.0001
    """Learning rate at the end, to which it falls in a straight line."""
    min_df: Count = 3
    """How many papers have to hold a word for it to be summed."""
    max_df: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Share of the papers that may hold it."""
    norm: Literal["l2", "none"] = "l2"
    """l2 scales the weights of a text to the norm 1; none leaves them (SPECTER's published option)."""
    accents: Literal["unicode", "ascii"] = "unicode"
    """How accents are removed; ascii also drops all letters that have no counterpart in ASCII (SPECTER's published
    option)."""
    most_words: Count = 2_000_000
    """Distinct words that are counted at a time; with more, the rarest are dropped."""
    trained_on = ("papers",)

    @model_validator(mode="after")
    def _parts_have_letters(self) -> "FastText":
        if self.max_n and not 1 <= self.min_n <= self.max_n:
            raise inconsistent(f".min_n ({self.min_n}) must be at least 1 and not exceed max_n ({self.max_n}).")
        return self

    def training_memory(self, sources_mb: float) -> float:
        """Vectors of words and parts, and counts of words; the corpus is not held."""
        vectors = (3 * min(self.most_words, 20_000 * (1 + sources_mb / 10)) + self.parts) * self.dimension * 4 / 1e6
        return 1000 + 1.3 * vectors

    def training_minutes(self, sources_mb: float) -> float:
        """By measured speed, with a margin."""
        return 30 + self.epochs * sources_mb * (1.5 if self.architecture == "skipgram" else 0.5)

    def train(self, training: "Training") -> None:
        """Train the vectors of words, and weigh the words."""
        from cocite.baselines.word_vectors import train_fasttext

        train_fasttext(self, training)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Sum the weighted vectors of the words; a text without a known word has none."""
        from cocite.baselines.word_vectors import sums_by_tfidf

        yield from sums_by_tfidf(self, embedding)
