"""Graph embeddings as teachers: the vectors that they have of the documents of a training.

The table graph_embeddings is read once from front to back, and only the vectors of these documents are kept, however
many papers the embedding has.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.vectors import vectors_of_papers

if TYPE_CHECKING:
    from cocite.encoder.examples import Examples

Numbers = NDArray[np.int64]
NONE = -1


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """What a graph embedding knows of some documents."""

    rows: Numbers
    """The row of each document's vector; NONE where it has none, as of texts that are no papers."""
    vectors: NDArray[np.float32]

    @property
    def untaught(self) -> int:
        """How many documents have no vector."""
        return int(np.count_nonzero(self.rows == NONE))


def read_teachers(given: str) -> dict[str, Path]:
    """The tables of teachers, by their names, from JSON. Raises `InputError` where it is not that."""
    try:
        return {str(name): Path(path) for name, path in json.loads(given).items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(
            f'--teachers is {given}; it should be names and paths as JSON, such as {{"a": "b"}}.'
        ) from None


def open_teachers(path: Path, sets: Sequence[Numbers]) -> list[Teacher]:
    """A teacher for each of some sets of documents, by their ids; they share their vectors. The first set is learned
    from.

    Raises `InputError` where the embedding has no vector of it.
    """
    wanted = np.unique(np.concatenate(sets))
    vectors, is_there = vectors_of_papers(path, "graph_embeddings", wanted)
    row_of, of_taught = np.where(is_there, np.cumsum(is_there) - 1, NONE), vectors[is_there]
    teachers = [Teacher(rows=row_of[np.searchsorted(wanted, ids)], vectors=of_taught) for ids in sets]
    if teachers[0].untaught == len(sets[0]):
        raise InputError(
            f"{path}: has no vector of any of the {len(sets[0]):,} documents that are learned from; a teacher is an "
            "embedding of a graph over these papers."
        )
    return teachers


def taught(
    training: "Examples", validation: Sequence["Examples"], teachers: Mapping[str, Path], settings: TrainingSettings
) -> list["Examples"]:
    """The examples to learn from, and those to validate on, with what the teachers know of their documents.

    Raises `InputError` where the table of a teacher is missing, or it knows nothing of what is learned from.
    """
    sets = [training, *validation]
    for name in settings.teachers:
        if name not in teachers:
            raise InputError(f"The settings name the teacher {name}, and --teachers has no table of it.")
        known = open_teachers(teachers[name], [examples.ids for examples in sets])
        sets = [
            replace(examples, teachers={**examples.teachers, name: teacher})
            for examples, teacher in zip(sets, known, strict=True)
        ]
        report(f"The teacher {name} has no vectors of {known[0].untaught:,} of {len(training.ids):,} documents.")
    return sets


def untaught_of(training: "Examples", validation: Iterable["Examples"]) -> dict[str, str]:
    """How many documents each teacher has no vectors of."""
    said = {}
    for name, teacher in training.teachers.items():
        others = [(examples.teachers[name].untaught, len(examples.ids)) for examples in validation]
        untaught, documents = map(sum, zip(*others, strict=True))
        said[name] = (
            f"no vector of {teacher.untaught:,} of {len(training.ids):,} training documents and of {untaught:,} of "
            f"{documents:,} validation documents, which are left out of its pairs"
        )
    return said
