"""What is made of the edges of a graph before they are trained on: the keys of the import.

Held-out edges are the same for every engine, so that engines can be compared. How the weights of edges count depends on
the engine: it is given heavier edges more often, or a weight with each edge. An engine names the keys that go with it
(`config.engine.Engine.edges`), and the import takes them all.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Entry, Positive, inconsistent


class HeldOutEdges(Entry):
    """Which edges are kept from training."""

    holdout: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Share of the edges kept from training to measure link prediction."""
    holdout_of: Literal["pairs", "edges"] = "pairs"
    """What is held out. pairs keeps both directions of a pair from training; edges splits mirrored edges one by one, as
    published, so that the mirror of nearly every held-out edge is trained on (docs/graph-embeddings.md)."""


class RepeatedEdges(Entry):
    """How edges reach PyTorch-BigGraph, which knows no weights, and whose partitions are cut by the import."""

    import_: Literal["arrow", "tsv"] = Field(default="arrow", alias="import")
    """arrow takes the edges to PyTorch-BigGraph's files by sorted arrays, in bounded memory; tsv as published, by
    its own importer, which holds every paper and edge as Python objects."""
    partitions: Annotated[int, Field(ge=1, le=16)] = 1
    """Parts that the papers are cut into, two of which are in memory at a time in training. A chunk of an epoch then
    goes through all pairs of parts."""
    weights: bool = False
    """Train heavier edges more often. PyTorch-BigGraph knows no weights, so an edge is repeated once for each
    weight_unit of its weight, a fraction by chance; at least once, at most max_repetitions times. Held-out edges are
    measured once."""
    weight_unit: Positive | None = None
    """Weight that stands for one repetition; the smallest weight of the graph unless given."""
    max_repetitions: Annotated[int, Field(ge=1, le=1000)] = 10
    """Repetitions of one edge at most."""


class WeightedEdges(Entry):
    """How edges reach an engine that trains each with its weight."""

    weighted: bool = False
    """Keep the weights of edges as weights of the loss, divided by the mean weight of the edges to train on."""
    max_weight: Positive | None = None
    """Largest weight of an edge, in multiples of the mean weight; heavier edges count as much. null for none."""

    @model_validator(mode="after")
    def _bounds_weights_that_it_keeps(self) -> "WeightedEdges":
        if self.max_weight is not None and not self.weighted:
            raise inconsistent(".max_weight has no effect without weighted: true.")
        return self


class EdgeSettings(HeldOutEdges, RepeatedEdges, WeightedEdges):
    """What the import takes: the keys that go with any engine."""

    @model_validator(mode="after")
    def _weighs_once(self) -> "EdgeSettings":
        if self.weighted and self.weights:
            raise inconsistent(".weighted does not go with weights: true, which repeats edges by their weight.")
        if self.weighted and self.import_ == "tsv":
            raise inconsistent(".weighted does not go with import: tsv, whose files have no weights.")
        return self
