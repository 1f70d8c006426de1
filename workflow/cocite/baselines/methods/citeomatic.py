"""The baseline `citeomatic`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cocite.config.baseline import Seeded
from cocite.config.entries import Count, Name, Positive, Refers

if TYPE_CHECKING:
    from cocite.baselines.steps import Embedding, Training


class SummedWords(Seeded):
    """Learned sums of words, close to the document embeddings of Citeomatic (Bhagavatula et al., 2018).

    A word has a direction, and a weight in titles and another one in abstracts. Titles and abstracts are the weighted
    sums of their words, of length 1; a document is the weighted sum of both, of length 1. They are trained on the
    examples of a set, by a margin between cosines. The negatives of a pair are dynamic: one that the set gives, a
    random document, and one of those that are nearest to the query as the model is at the beginning of the epoch.
    """

    kind: Literal["citeomatic"]
    triplets: Annotated[Name, Refers("triplets")]
    """Name of the set of triplets or examples to learn from."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 75
    """Length of the vectors."""
    min_count: Count = 3
    """Documents of the set that a word must be in."""
    margin: Positive = 0.1
    """How much nearer the positive should be than a negative, by cosine."""
    nearest: Count = 20
    """Rank among the documents nearest to the query up to which a negative is drawn."""
    epochs: Count = 10
    """How many times training goes through all pairs of a query and a positive."""
    batch_size: Count = 256
    """Pairs of a step."""
    lr: Positive = 0.01
    """Learning rate (Adam)."""
    trained_on = ("examples",)
    training_cores = 2

    def training_memory(self, sources_mb: float) -> float:
        """Memory that a training takes, MB: the numbers of all words of the set, and torch."""
        return 1200 + 8 * sources_mb

    def train(self, training: "Training") -> None:
        """Learn from the set's examples."""
        from cocite.baselines.summed_words import train_sums

        train_sums(training, self)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """The vectors of documents that have a known word."""
        from cocite.baselines.summed_words import embed_sums

        return embed_sums(embedding)
