"""Turn edges into what PyTorch-BigGraph trains from, with its own importer.

In come the two files of `split`; out goes a folder:

    entities/entity_count_paper_0.txt    number of papers
    entities/entity_names_paper_0.json   corpus ids in the order of the rows of the embedding
    training/edges_0_0.h5                edges as pairs of rows
    holdout/edges_0_0.h5

The papers of both files share one dictionary, so that a held-out edge can be scored.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchbiggraph.config import EntitySchema, RelationSchema
from torchbiggraph.converters.import_from_tsv import convert_input_data

from cocite.biggraph.configuration import ENTITIES, ENTITY, HOLDOUT, RELATION, TRAINING
from cocite.files import atomic_path
from cocite.randomness import derive_seed


def import_edges(*, training: Path, holdout: Path, seed: int, output: Path) -> None:
    """Make the folder `output`; the same edges and seed give the same bytes."""
    with atomic_path(output) as folder, _seeded_shuffle(derive_seed(seed, "import")):
        convert_input_data(
            {ENTITY: EntitySchema(num_partitions=1)},
            [RelationSchema(name=RELATION, lhs=ENTITY, rhs=ENTITY)],
            str(folder / ENTITIES),
            [str(folder / TRAINING), str(folder / HOLDOUT)],
            [training, holdout],
            lhs_col=0,
            rhs_col=1,
        )


@contextmanager
def _seeded_shuffle(seed: int) -> Iterator[None]:
    """The importer shuffles the papers with Python's global generator: seed that one, and put it back after."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
