"""The baseline `sif`: means of word vectors weighted by smooth inverse frequency, without their common component.

A model's folder has words.json and sif.safetensors: the weighted vectors of the words, and the component that is
removed. This is the first right singular vector of the means of all papers, not centred, as published; it follows from
the sum of their outer products, dimension × dimension.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cocite.baselines.methods.fasttext import WORDS, read_word_vectors
from cocite.config.baseline import Trained
from cocite.config.entries import Positive, Refers, Whole
from cocite.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cocite.baselines.steps import Batch, Embedding, Training

    Vectors = NDArray[np.floating]

WEIGHTED = "sif.safetensors"


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

        from cocite.core.atomic import write_json
        from cocite.core.progress import progress

        known = read_word_vectors(training.given("baseline"))
        weights = self.a / (self.a + known.counts / known.total)
        vectors = (known.vectors * weights[:, None]).astype(np.float32)
        products, seen = np.zeros((vectors.shape[1], vectors.shape[1])), 0
        for papers, means in progress(_means(training.seen(), known.words, vectors), of="Means", unit="batch"):
            products += means.T @ means
            seen += len(papers)
        if not seen:
            raise InputError("No paper of the corpus that is not kept out has a word with a vector to train on.")
        # The direction, of length 1, in which the means of the papers are largest.
        component = np.linalg.eigh(products)[1][:, -1]
        component = component * np.sign(component[np.argmax(np.abs(component))])
        write_json(training.output / WORDS, known.words)
        save_file({"vectors": vectors, "component": component}, training.output / WEIGHTED)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """Take the means, and remove the component; a text without a known word has none."""
        import numpy as np
        from safetensors.numpy import load_file

        from cocite.core.atomic import read_json

        folder = embedding.given("model")
        arrays = load_file(folder / WEIGHTED)
        component = arrays["component"]
        for names, means in _means(embedding.documents(), read_json(folder / WORDS), arrays["vectors"]):
            yield names, means - np.outer(means @ component, component)


def _means(batches: Iterator["Batch"], words: list[str], vectors: "Vectors") -> Iterator[tuple[list[Any], "Vectors"]]:
    """The documents that have a known word, and the means of the weighted vectors of the known words of each."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    counter, weighted = CountVectorizer(strip_accents="unicode", vocabulary=words), vectors.astype(np.float64)
    for batch in batches:
        counts: Any = counter.transform(batch.texts)
        rows = np.flatnonzero(np.diff(counts.indptr))
        known = counts[rows]
        means = (known @ weighted) / np.asarray(known.sum(axis=1)).reshape(-1, 1)
        yield [batch.names[row] for row in rows], means
