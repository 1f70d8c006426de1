"""A small invented literature: papers with topics, years, authors, and references to one another.

Each concept of a topic, method and finding has two names without a word in common, of which a paper prefers that of its
manner: so an encoder can learn from citations, and not from words, that two papers are on one thing. A text shows its
topic only in part, since it shares the words of its field with other topics and mentions things from elsewhere. The
words are in vocabulary.yaml and aspects.yaml, the sentences in templates.yaml.

References go to older papers on the same sub-topic, topic, field, method or finding. Half of them are copied from the
reference list of another paper, so that popular papers become more popular (preferential attachment; Kleinberg et al.,
1999, "The web as a graph") and papers are cited together. The oldest papers are cited but have no record, as in a real
release.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray

from cocite.config.graphs import INTENTS
from cocite.core.errors import InputError
from cocite.core.randomness import generator

Ints = NDArray[np.int64]
Shelf = tuple[str, object]
"""Papers that have a sub-topic, topic, field, method or finding in common, by its kind and itself."""

SUBTOPICS = 3
CONCEPTS_PER_SUBTOPIC = 2
_YEARS = 30
_UNRECORDED_SHARE = 0.07
_SECOND_FIELD_SHARE = 0.2
_MEAN_REFERENCES = 14.0
_COPIED_SHARE = 0.5
_SHELF_SHARES = {
    "subtopic": 0.5, "topic": 0.12, "second": 0.06, "field": 0.06, "method": 0.12, "finding": 0.12, "all": 0.02
}  # fmt: skip
_PAPERS_PER_AUTHOR = 3.0

Item = TypeVar("Item")
_OWN_SUBTOPIC_SHARE = 0.7
_OWN_MANNER_SHARE = 0.92
_SECOND_TOPIC_SHARE = 0.3


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: its field of study, its name, and its concepts in the order of its sub-topics."""

    field: str
    name: str
    concepts: tuple[tuple[str, str], ...]
    """Two names for each concept; `concepts[2 * s]` and `concepts[2 * s + 1]` belong to sub-topic s."""


_FIELDS, _ASPECTS, _TEMPLATES = (
    yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
    for name in ("vocabulary", "aspects", "templates")
)
METHODS, FINDINGS = (tuple(_ASPECTS[name].items()) for name in ("methods", "findings"))
"""Two names for each method and each finding."""
FIELD_WORDS = {field: tuple(entry["words"]) for field, entry in _FIELDS.items()}
_TOPICS = [
    [Topic(field=field, name=name, concepts=tuple(concepts.items())) for name, concepts in entry["topics"].items()]
    for field, entry in _FIELDS.items()
]
_ALL_TOPICS = [topic for topics in zip(*_TOPICS, strict=True) for topic in topics]


@dataclass(frozen=True, kw_only=True)
class Literature:
    """Papers by number, in order of publication; the first `unrecorded` have no record."""

    topics: list[Topic]
    unrecorded: int
    corpusid: Ints
    time: NDArray[np.float64]
    """When the paper was published, in years; the whole part is the calendar year."""
    topic: Ints
    second: Ints
    """A topic that the paper also belongs to; for most papers its own topic again."""
    subtopic: Ints
    manner: Ints
    """Which of the two names of each concept the paper uses, 0 or 1."""
    authors: list[Ints]
    method: Ints
    finding: Ints

    def intents(self, citing: int, cited: int) -> list[str]:
        """What two papers share: the topic is background, the method methodology, the finding result."""
        topics = [{int(self.topic[paper]), int(self.second[paper])} for paper in (citing, cited)]
        shared = (
            bool(topics[0] & topics[1]),
            self.method[citing] == self.method[cited],
            self.finding[citing] == self.finding[cited],
        )
        return [intent for intent, is_shared in zip(INTENTS, shared, strict=True) if is_shared]

    @cached_property
    def recorded(self) -> range:
        """The numbers of the papers that have a record."""
        return range(self.unrecorded, len(self.corpusid))

    def fields(self, paper: int) -> list[str]:
        """The fields of study of a paper, its main one first."""
        return list(dict.fromkeys(self.topics[topic].field for topic in (self.topic[paper], self.second[paper])))


def generate_literature(papers: int, topics: int, last_year: int, seed: int) -> Literature:
    """A literature with so many recorded papers, the last of them published in `last_year`, on topics of all fields.

    Raises `InputError` if there are not as many topics.
    """
    rng = generator(seed, "demo", "literature")
    if not 2 <= topics <= len(_ALL_TOPICS):
        raise InputError(f"--topics: is {topics}, must be from 2 to {len(_ALL_TOPICS)}.")
    unrecorded = round(_UNRECORDED_SHARE * papers)
    size = papers + unrecorded
    main = rng.integers(topics, size=size)
    subtopic = rng.integers(SUBTOPICS, size=size)
    corpusid = rng.permutation(100_000_000 + np.cumsum(rng.integers(1, 60, size=size)))
    time = last_year + 1 - _YEARS * np.sort(1 - np.sqrt(rng.random(size)))[::-1]
    second = np.where(rng.random(size) < _SECOND_FIELD_SHARE, rng.integers(topics, size=size), main)
    manner = rng.integers(2, size=size)
    # One to five authors for each paper, all from the community of its sub-topic.
    groups = main * SUBTOPICS + subtopic
    community = max(5, round(3 * size / len(np.unique(groups)) / _PAPERS_PER_AUTHOR))
    numbers = [rng.choice(community, size=count, replace=False) for count in rng.integers(1, 6, size=size)]
    return Literature(
        topics=_ALL_TOPICS[:topics],
        unrecorded=unrecorded,
        corpusid=corpusid,
        time=time,
        topic=main,
        second=second,
        subtopic=subtopic,
        manner=manner,
        authors=[group * community + number for group, number in zip(groups, numbers, strict=True)],
        method=rng.integers(len(METHODS), size=size),
        finding=rng.integers(len(FINDINGS), size=size),
    )


def cite_literature(literature: Literature, seed: int) -> list[list[int]]:
    """The references of each paper: numbers of older papers, each once; unrecorded papers have none.

    They are found on shelves, or in the reference lists of papers found there, with three tries for each.
    """
    rng = generator(seed, "demo", "references")
    shelves: dict[Shelf, list[int]] = {}
    references: list[list[int]] = []
    lengths = rng.poisson(rng.gamma(5.0, _MEAN_REFERENCES / 5.0, size=len(literature.corpusid))).tolist()
    for paper, wanted in enumerate(lengths):
        topic, second = int(literature.topic[paper]), int(literature.second[paper])
        keys: dict[str, Shelf] = {
            "subtopic": ("subtopic", (topic, int(literature.subtopic[paper]))),
            "topic": ("topic", topic),
            "second": ("topic", second),
            "field": ("field", literature.topics[topic].field),
            "method": ("method", int(literature.method[paper])),
            "finding": ("finding", int(literature.finding[paper])),
            "all": ("all", None),
        }
        chosen: dict[int, None] = {}
        if paper >= literature.unrecorded:
            names = rng.choice(list(_SHELF_SHARES), size=3 * wanted, p=list(_SHELF_SHARES.values()))
            for name, place, copy, copied_place in zip(names, *rng.random((3, 3 * wanted)), strict=True):
                shelf = shelves.get(keys[name])
                if len(chosen) == wanted:
                    break
                if shelf:
                    found = shelf[-1 - int(len(shelf) * place**2)]
                    onward = references[found]
                    is_copied = onward and copy < _COPIED_SHARE
                    chosen[onward[int(len(onward) * copied_place)] if is_copied else found] = None
        references.append(list(chosen))
        for name in keys.keys() - {"second"}:
            shelves.setdefault(keys[name], []).append(paper)
    return references


class Writer:
    """Writes about the papers of a literature; the text depends only on the generator."""

    def __init__(self, literature: Literature, rng: np.random.Generator) -> None:
        self._literature = literature
        self._rng = rng

    def sentence(self, kind: str, paper: int) -> str:
        """A sentence from the templates of a kind (templates.yaml), with a word for each slot, no word twice."""
        used: set[str] = set()

        def word_for(slot: re.Match[str]) -> str:
            word = self._word(slot[1], paper)
            while word in used:
                word = self._word(slot[1], paper)
            used.add(word)
            return word

        text = re.sub(r"\{(\w+)\}", word_for, self._pick(_TEMPLATES[kind]))
        return text[0].upper() + text[1:]

    def abstract(self, paper: int) -> str:
        """An abstract of seven to nine sentences, which begins with its method and its finding."""
        parts = ["openings", "methods", "methods", "results", "results", "results", "closings"]
        kinds = ["of_methods", "of_findings", *parts[int(self._rng.integers(3)) :]]
        return " ".join(self.sentence(kind, paper) for kind in kinds)

    def _word(self, slot: str, paper: int) -> str:
        literature = self._literature
        match slot:
            case "concept":  # most often of the paper's own topic and sub-topic
                topic = (
                    literature.second[paper] if self._rng.random() < _SECOND_TOPIC_SHARE else literature.topic[paper]
                )
                concepts = literature.topics[topic].concepts
                if self._rng.random() < _OWN_SUBTOPIC_SHARE:
                    first = CONCEPTS_PER_SUBTOPIC * literature.subtopic[paper]
                    concepts = concepts[first : first + CONCEPTS_PER_SUBTOPIC]
                manner = self._manner(paper)
                return self._pick(concepts)[manner]
            case "method":
                return METHODS[literature.method[paper]][self._manner(paper)]
            case "finding":
                return FINDINGS[literature.finding[paper]][self._manner(paper)]
            case "field":
                return self._pick(FIELD_WORDS[literature.topics[literature.topic[paper]].field])
            case "elsewhere":
                return self._pick(self._pick(self._pick(literature.topics).concepts))
        return str(self._rng.integers(11, 98))

    def _manner(self, paper: int) -> int:
        own = int(self._literature.manner[paper])
        return own if self._rng.random() < _OWN_MANNER_SHARE else 1 - own

    def _pick(self, items: Sequence[Item]) -> Item:
        return items[int(self._rng.integers(len(items)))]
