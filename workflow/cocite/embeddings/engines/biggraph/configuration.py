"""The settings of a graph embedding, and what they are called in PyTorch-BigGraph's configuration."""

from pathlib import Path
from types import NoneType
from typing import Any, get_args

import torchbiggraph.schema
from torchbiggraph.config import ConfigSchema

from cocite.embeddings.edges import TRAINING
from cocite.embeddings.engines.biggraph import BigGraph
from cocite.embeddings.imported import ENTITIES, ENTITY, RELATION, ImportedFolder


def biggraph_configuration(settings: BigGraph, imported: Path, checkpoint: str) -> ConfigSchema:
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
            "loss_fn": settings.loss.kind,
            "eval_fraction": 0.0,
            "comparator": settings.comparator,
            "dimension": settings.dimension,
            "num_epochs": settings.epochs,
            "lr": settings.lr,
            "margin": getattr(settings.loss, "margin", 0.0),
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
