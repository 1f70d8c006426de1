"""The baseline `citeomatic`: learned sums of words (Bhagavatula et al., 2018, "Content-based citation recommendation",
section 3.1)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cocite.config.baseline import Seeded
from cocite.config.entries import Count, Name, Positive, Refers
from cocite.core.atomic import read_json, write_json
from cocite.core.progress import report

if TYPE_CHECKING:
    from cocite.baselines.steps import Embedding, Training

WEIGHTS, WORDS = "weights.safetensors", "words.json"


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
    """Number of dimensions of the vectors."""
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
        """Learn from the set's examples. Raises `InputError` if its documents have no word often enough."""
        import torch
        from safetensors.torch import save_file

        from cocite.baselines.summed_words import Learner, Sums, known_words, read_examples, read_words
        from cocite.core.checkpoints import open_state, sampled_fingerprint
        from cocite.core.randomness import derive_seed

        examples, folder = training.given("examples"), training.given("texts")
        inputs, seeds = sampled_fingerprint([examples, folder]), [training.seed, training.training_seed]
        open_state(training.state, {**self.model_dump(), "seeds": seeds, "inputs": inputs}, work="training")
        torch.set_num_threads(training.threads)
        texts = sorted(folder.glob("*.parquet"))
        known = known_words(texts, self.min_count)
        ids, words = read_words(texts, known)
        seed = derive_seed(training.seed, "citeomatic", training.training_seed)
        torch.manual_seed(seed)
        model = Sums(len(known), self.dimension)
        learner = Learner(model, words, read_examples(examples, ids), self, seed=seed)
        for epoch in range(learner.restore(training.state), self.epochs):
            loss = learner.learn(epoch)
            report(f"Epoch {epoch + 1} of {self.epochs}: loss {loss:.4f}.")
            learner.save(training.state, epoch + 1)
        save_file({name: values.contiguous() for name, values in model.state_dict().items()}, training.output / WEIGHTS)
        write_json(training.output / WORDS, list(known))

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """The vectors of documents that have a known word."""
        import numpy as np
        import torch
        from safetensors.torch import load_file

        from cocite.baselines.summed_words import Sums, words_of

        folder = embedding.given("model")
        known = {word: number for number, word in enumerate(read_json(folder / WORDS))}
        weights = load_file(folder / WEIGHTS)
        model = Sums(*weights["directions"].shape)
        model.load_state_dict(weights)
        torch.set_num_threads(embedding.threads)
        for batch in embedding.documents():
            with torch.inference_mode():
                vectors = model(words_of([batch], known)).numpy()
            has_words = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0.5)
            yield [batch.names[row] for row in has_words], vectors[has_words]
