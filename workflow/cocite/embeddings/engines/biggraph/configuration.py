"""The settings of a graph embedding, and what they are called in PyTorch-BigGraph's configuration."""

from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args

import torchbiggraph.schema
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torchbiggraph.config import ConfigSchema

from cocite.embeddings.edges import TRAINING
from cocite.embeddings.engines.biggraph.imported import ENTITIES, ENTITY, RELATION, ImportedFolder
from cocite.ground.errors import InputError


@dataclass(frozen=True, kw_only=True)
class GraphEmbeddingSettings:
    """How a graph embedding is trained."""

    comparator: Literal["dot", "cos"]
    """Similarity that edges are scored with."""
    dimension: Annotated[int, Field(ge=2, le=4096)]
    """Length of the vectors."""
    epochs: PositiveInt
    """Passes over the edges."""
    lr: PositiveFloat
    """Learning rate of the row-wise Adagrad."""
    loss: Literal["ranking", "logistic", "softmax"]
    """Loss of an edge and its negatives."""
    margin: NonNegativeFloat
    """Margin of the ranking loss."""
    max_norm: PositiveFloat | None
    """Largest norm of a vector; none where there is no bound."""
    batch_size: PositiveInt
    """Edges in a batch."""
    batch_negatives: NonNegativeInt
    """Negatives from the batch, for each edge and side."""
    uniform_negatives: NonNegativeInt
    """Negatives from all papers, for each edge and side."""
    chunks: PositiveInt
    """Pieces that an epoch's edges are loaded in; a checkpoint follows each."""
    workers: PositiveInt
    """Processes that train at once without locks."""

    def __post_init__(self) -> None:
        """Raise `InputError` for settings that nothing can be trained with."""
        if self.batch_negatives + self.uniform_negatives == 0:
            raise InputError("--settings: batch_negatives and uniform_negatives are both 0; one must be more.")
        if self.batch_negatives and self.batch_size % self.batch_negatives:
            raise InputError(
                f"--settings: batch_size ({self.batch_size}) must be a multiple of batch_negatives "
                f"({self.batch_negatives})."
            )


def biggraph_configuration(settings: GraphEmbeddingSettings, imported: Path, checkpoint: str) -> ConfigSchema:
    """PyTorch-BigGraph's own configuration, checked by it.

    One entity type and one relation without operator; nothing is held out here, because the import has done it.
    There is no embedding common to all papers, as in SciNCL. `checkpoint` is a URL.
    """
    return ConfigSchema.from_dict(
        {
            "entity_path": f"file://{imported.resolve() / ENTITIES}",
            "edge_paths": [f"file://{imported.resolve() / TRAINING}"],
            "checkpoint_path": checkpoint,
            "entities": {ENTITY: {"num_partitions": len(ImportedFolder(imported).starts()) - 1}},
            "relations": [{"name": RELATION, "lhs": ENTITY, "rhs": ENTITY, "operator": "none"}],
            "global_emb": False,
            "loss_fn": settings.loss,
            "eval_fraction": 0.0,
            "comparator": settings.comparator,
            "dimension": settings.dimension,
            "num_epochs": settings.epochs,
            "lr": settings.lr,
            "margin": settings.margin,
            "max_norm": settings.max_norm,
            "batch_size": settings.batch_size,
            "num_batch_negs": settings.batch_negatives,
            "num_uniform_negs": settings.uniform_negatives,
            "num_edge_chunks": settings.chunks,
            "workers": settings.workers,
        }
    )


def _unpack_optional(hint: Any) -> Any:
    """The type T of a hint Optional[T]; `TypeError` for any other hint."""
    arguments = get_args(hint)
    if len(arguments) != 2 or arguments[1] is not NoneType:
        raise TypeError("Not an optional type")
    return arguments[0]


# The original compares hints by identity, which holds only while a small cache of Python's typing module remembers
# them: once much else is imported, PyTorch-BigGraph no longer knows the types of its own configuration.
torchbiggraph.schema.unpack_optional = _unpack_optional
