"""Graph embeddings as teachers: the vectors that they have of the documents of a training.

The table graph_embeddings is read once, and only the vectors of these documents are kept.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cocite.config.models import TrainingSettings
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables.files import vectors_of_papers
from cocite.encoder.data import Examples, Numbers, Teacher


def read_teachers(text: str) -> dict[str, Path]:
    """The tables of teachers by their names, from JSON. Raises `InputError` for anything else."""
    try:
        return {str(name): Path(path) for name, path in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(f'--teachers is {text}; it should be names and paths as JSON, such as {{"a": "b"}}.') from None


def open_teachers(path: Path, sets: Sequence[Numbers]) -> list[Teacher]:
    """A teacher for each of some sets of documents, by their ids; they share their vectors.

    The first set is learned from; raises `InputError` if the embedding has no vector of it.
    """
    wanted = np.unique(np.concatenate(sets))
    vectors, is_there = vectors_of_papers(path, "graph_embeddings", wanted)
    row_of, of_taught = np.where(is_there, np.cumsum(is_there) - 1, -1), vectors[is_there]
    teachers = [Teacher(rows=row_of[np.searchsorted(wanted, ids)], vectors=of_taught) for ids in sets]
    if teachers[0].untaught == len(sets[0]):
        missing = f"has no vector of any of the {len(sets[0]):,} documents that are learned from"
        raise InputError(f"{path}: {missing}; a teacher is an embedding of a graph over these papers.")
    return teachers


def attach_teachers(
    sets: Sequence[Examples], teachers: Mapping[str, Path], settings: TrainingSettings
) -> list[Examples]:
    """Sets of examples, the one to learn from first, with their teachers. Raises `InputError` if one is missing."""
    sets = list(sets)
    for name in settings.teachers:
        if name not in teachers:
            raise InputError(f"The settings name the teacher {name}, and --teachers has no table of it.")
        known = open_teachers(teachers[name], [examples.ids for examples in sets])
        sets = [
            replace(examples, teachers={**examples.teachers, name: teacher})
            for examples, teacher in zip(sets, known, strict=True)
        ]
        report(f"The teacher {name} has no vectors of {known[0].untaught:,} of {len(sets[0].ids):,} documents.")
    return sets


def describe_missing_teacher_vectors(training: Examples, validation: Iterable[Examples]) -> dict[str, str]:
    """How many documents each teacher has no vectors of, in words."""
    said = {}
    for name, teacher in training.teachers.items():
        others = [(examples.teachers[name].untaught, len(examples.ids)) for examples in validation]
        untaught, documents = map(sum, zip(*others, strict=True))
        of_training = f"no vector of {teacher.untaught:,} of {len(training.ids):,} training documents"
        of_validation = f"of {untaught:,} of {documents:,} validation documents"
        said[name] = f"{of_training} and {of_validation}, which are left out of its pairs"
    return said
