"""The baseline `joined`: the vectors of several models side by side.

Each is scaled to length 1 and by the root of its share of the weights, so that the cosine of two joined vectors is the
weighted mean of the cosines. A document that one of the models has no vector for has none.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, Strict, model_validator

from cocite.config.baseline import Baseline
from cocite.config.entries import Names, Positive, Refers, Seeds, Whole, inconsistent
from cocite.config.sampler import oracle_models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cocite.baselines.steps import Embedding

    Vectors = NDArray[np.float32]


class JoinedVectors(Baseline):
    """The vectors of several models side by side: a static encoder and a transformer know different things of a paper.

    The cosine of two joined vectors is the weighted mean of the cosines by each model.
    """

    kind: Literal["joined"]
    models: Annotated[Names, Field(min_length=2), Refers("models", or_in="encoders")]
    """Names of models, or of encoders as they are before fine-tuning, at least two."""
    weights: Annotated[tuple[Positive, ...], Strict(False)] | None = None
    """A weight for each of them, in the same order. Left out, they are equal."""
    seeds: Seeds = (1,)
    """Seeds of the models that were trained: each has a training with each of them."""
    embeds_with = ("joined_vectors",)

    @model_validator(mode="after")
    def _has_a_weight_for_each(self) -> "JoinedVectors":
        if self.weights is not None and len(self.weights) != len(self.models):
            raise inconsistent(f".weights are {len(self.weights)}, and models are {len(self.models)}.")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A model with adapters, one that knows answers, or a seed that one of them was not trained with."""
        from cocite.config.runs import UNTRAINED, adapters_of

        yield from super().check_references(key, config)
        oracles = oracle_models(config)
        for name in self.models:
            if name in oracles:
                yield f"{key}.models names {name}, which has learned from the answers of {', '.join(oracles[name])}."
            if adapters_of(config, name if name in config.models else f"{UNTRAINED}{name}"):
                yield f"{key}.models names {name}, whose adapters give a document several vectors."
            for seed in set(self.seeds).difference(config.models[name].seeds if name in config.models else self.seeds):
                yield f"{key}.seeds has {seed}, and models.{name} has no such training."

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """The joined vectors of the documents that all models have a vector for."""
        import numpy as np

        from cocite.baselines.steps import vector_batches
        from cocite.core.searching import of_unit_length

        weights = np.array(self.weights or [1.0] * len(self.models))
        shares = np.sqrt(weights / weights.sum())
        first, *others = embedding.joined_vectors
        held = [_read(path) for path in others]
        for column, vectors in vector_batches(first):
            names = column.to_pylist()
            known = [place for place, name in enumerate(names) if all(name in rows for rows, _ in held)]
            kept = [names[place] for place in known]
            of_each = [vectors[known], *(table[[rows[name] for name in kept]] for rows, table in held)]
            scaled = [share * of_unit_length(some) for share, some in zip(shares, of_each, strict=True)]
            yield kept, np.concatenate(scaled, axis=1)


def _read(path: Path) -> tuple[dict[Any, int], "Vectors"]:
    """The row of each document, and all vectors."""
    import numpy as np

    from cocite.baselines.steps import vector_batches

    found = list(vector_batches(path))
    names = [name for column, _ in found for name in column.to_pylist()]
    filled = [vectors for _, vectors in found if len(vectors)] or [np.empty((0, 1), np.float32)]
    return {name: row for row, name in enumerate(names)}, np.concatenate(filled)
