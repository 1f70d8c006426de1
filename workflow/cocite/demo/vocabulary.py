"""The words of the generated literature: fields of study, their topics, and two names for each concept.

Every topic has six concepts, two for each of its three sub-topics, and each concept has two names without a word in
common. A paper keeps to one of the two manners of naming, so two papers on one thing need not share a word:
that is what citations can teach an encoder and words alone cannot. The words of a field stand in papers of all its
topics. All of them are in vocabulary.yaml.
"""

from dataclasses import dataclass
from pathlib import Path

import yaml

from cocite.ground.errors import InputError

SUBTOPICS = 3
CONCEPTS_PER_SUBTOPIC = 2


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: its field of study, its name, and its concepts in the order of its sub-topics."""

    field: str
    name: str
    concepts: tuple[tuple[str, str], ...]
    """Two names for each concept; `concepts[2 * s]` and `concepts[2 * s + 1]` belong to sub-topic s."""


def choose_topics(count: int) -> list[Topic]:
    """So many topics, spread evenly over the fields. Raises `InputError` if there are not as many."""
    if not 2 <= count <= len(_ALL_TOPICS):
        raise InputError(f"--topics: is {count}, must be from 2 to {len(_ALL_TOPICS)}.")
    return _ALL_TOPICS[:count]


_FIELDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
FIELD_WORDS = {field: tuple(entry["words"]) for field, entry in _FIELDS.items()}
_TOPICS = [
    [Topic(field=field, name=name, concepts=tuple(concepts.items())) for name, concepts in entry["topics"].items()]
    for field, entry in _FIELDS.items()
]
_ALL_TOPICS = [topic for topics in zip(*_TOPICS, strict=True) for topic in topics]
