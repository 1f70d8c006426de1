"""The baseline `joined`: the vectors of several models side by side.

Each is scaled to length 1 and by the root of its share of the weights, so that the cosine of two joined vectors is the
weighted mean of the cosines. A document that one of the models has no vector for has none.
"""

from collections.abc import Iterator, Sequence
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

ROWS_AT_ONCE = 8192


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

        weights = np.array(self.weights or [1.0] * len(self.models))
        shares = np.sqrt(weights / weights.sum())
        first, *others = embedding.joined_vectors
        held = [_read(path) for path in others]
        for names, vectors in _batches(first):
            known = [place for place, name in enumerate(names) if all(name in rows for rows, _ in held)]
            kept = [names[place] for place in known]
            of_each = [vectors[known], *(table[[rows[name] for name in kept]] for rows, table in held)]
            scaled = [share * _of_unit_length(some) for share, some in zip(shares, of_each, strict=True)]
            yield kept, np.concatenate(scaled, axis=1)


def _batches(path: Path) -> Iterator[tuple[Sequence[Any], "Vectors"]]:
    """Names of documents, or corpus ids, and their vectors without an adapter, some thousand at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from cocite.core.tables import TABLES
    from cocite.core.tables.files import open_table, table_in, vectors_of

    table = table_in(path)
    name = TABLES[table].key[-1]
    with open_table(path, table) as file:
        adapter = [key for key in ("adapter",) if key in file.schema_arrow.names]
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=[*adapter, name, "vector"]):
            own = batch.filter(pc.equal(batch["adapter"], "")) if adapter else batch
            yield own[name].to_pylist(), vectors_of(pa.Table.from_batches([own]))


def _read(path: Path) -> tuple[dict[Any, int], "Vectors"]:
    """The row of each document, and all vectors."""
    import numpy as np

    found = list(_batches(path))
    names = [name for some, _ in found for name in some]
    filled = [vectors for _, vectors in found if len(vectors)] or [np.empty((0, 1), np.float32)]
    return {name: row for row, name in enumerate(names)}, np.concatenate(filled)


def _of_unit_length(vectors: "Vectors") -> "Vectors":
    import numpy as np

    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
