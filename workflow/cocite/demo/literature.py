"""A small invented literature: papers with topics, years, authors, and references to one another.

Each paper has a topic, one of its sub-topics, a method, a finding, and a manner of naming things. Every topic has six
concepts, two for each of its three sub-topics, and each concept has two names without a word in common. A paper keeps
to one of the two manners of naming, so two papers on one thing need not share a word: an encoder can learn that from
citations and not from words. The words of a field occur in papers of all its topics; they are in vocabulary.yaml.
Methods and findings occur in papers of any topic, and have two names as well; they are in aspects.yaml.

References follow sub-topic, topic, field, method and finding, and go to older papers only. Half of them are copied from
the reference list of another paper, so that popular papers become more popular. This is preferential attachment
(Kleinberg et al., 1999, "The web as a graph"), and it makes papers be cited together. The oldest papers are cited but
have no record in the release, as in a real one.

The intent of a citation follows from what the two papers have in common: the topic is background, the method is
methodology, the finding is result.

Titles, abstracts and citing sentences are put together from templates and the vocabulary of a paper's topic. A text
shows its topic only in part: it uses one of two names for each concept, shares the words of its field with other
topics, and mentions things from elsewhere.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray

from cocite.config.aspects import INTENTS
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
_TITLES = (
    "{concept} and {concept}: evidence from {field}",
    "A study of {concept} with {field}",
    "Using {field} for the analysis of {concept}",
    "On the dependence of {concept} on {concept}",
    "On the role of {field} in {concept}",
    "{concept} revisited",
    "Towards a better account of {concept} and {concept}",
    "Comparing {concept} with {concept} by means of {field}",
    "The limits of {concept}",
    "From {concept} to {concept}",
    "New insights into {concept} from {field}",
    "{concept} beyond {elsewhere}",
)
_OPENINGS = (
    "Interest in {concept} has grown, but rarely with the help of {field}.",
    "The relation between {concept} and {concept} is still poorly understood.",
    "Much work on {concept} rests on {field}, with little regard for {concept}.",
    "We ask how far {concept} can be explained by {concept}.",
    "Earlier accounts of {concept} disagree with one another.",
)
_METHODS = (
    "We combine {field} with {field} to examine {concept}.",
    "Our approach treats {concept} and {concept} as parts of one problem.",
    "Data on {concept} were collected in {number} cases over several years.",
    "We compare {number} examples of {concept}, drawn from {field}.",
    "The design follows studies of {elsewhere}, adapted to {concept}.",
    "A simple model links {concept} to {field}.",
    "Both {concept} and {elsewhere} were recorded, the latter as a control.",
)
_RESULTS = (
    "The results show a clear effect of {concept} that went unnoticed in {field}.",
    "We found that {concept} explained {number} percent of the variation.",
    "Changes in {concept} preceded changes in {concept}.",
    "No such pattern was seen for {elsewhere}.",
    "The effect held across {field} and was strongest for {concept}.",
    "Contrary to expectation, {concept} did not matter once {field} had been considered.",
)
_CLOSINGS = (
    "The findings call for a new look at {concept}.",
    "Implications for {field} and for {elsewhere} are discussed.",
    "This suggests that more attention should be given to {concept}.",
    "We close with open questions about {concept} and {field}.",
    "All material is available for further work on {concept}.",
)
_OF_METHODS = (
    "Using {method} on {concept}.",
    "This is a study of {concept} by {method}.",
    "We apply {method} to {concept}.",
    "{concept} is examined through {method}.",
)
_OF_FINDINGS = (
    "It reveals {finding}.",
    "We observe {finding}.",
    "The outcome is {finding}.",
    "There is evidence of {finding}.",
)
_CONTEXTS = (
    "Earlier work examined {concept} in detail [{number}].",
    "We follow the procedure of [{number}] for {concept}.",
    "This agrees with what has been reported for {concept} [{number}].",
    "Unlike [{number}], we also consider {concept}.",
)
_SHARED_CONTEXTS = (
    "Several studies examined {concept} by means of {field} [{number}, {number}].",
    "The link between {concept} and {concept} has been described before [{number}–{number}].",
    "Both {concept} and {concept} have received attention [{number}, {number}].",
    "There is agreement that {concept} depends on {field} [{number}, {number}].",
)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: its field of study, its name, and its concepts in the order of its sub-topics."""

    field: str
    name: str
    concepts: tuple[tuple[str, str], ...]
    """Two names for each concept; `concepts[2 * s]` and `concepts[2 * s + 1]` belong to sub-topic s."""


def _words_in(name: str) -> dict[str, Any]:
    words: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return words


_FIELDS = _words_in("vocabulary.yaml")
_ASPECTS = _words_in("aspects.yaml")
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
        """The intents of a citation, by what the two papers have in common."""
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
    return Literature(
        topics=_ALL_TOPICS[:topics],
        unrecorded=unrecorded,
        corpusid=rng.permutation(100_000_000 + np.cumsum(rng.integers(1, 60, size=size))),
        time=last_year + 1 - _YEARS * np.sort(1 - np.sqrt(rng.random(size)))[::-1],
        topic=main,
        second=np.where(rng.random(size) < _SECOND_FIELD_SHARE, rng.integers(topics, size=size), main),
        subtopic=subtopic,
        manner=rng.integers(2, size=size),
        authors=_choose_authors(main * SUBTOPICS + subtopic, rng),
        method=rng.integers(len(METHODS), size=size),
        finding=rng.integers(len(FINDINGS), size=size),
    )


def cite_literature(literature: Literature, seed: int) -> list[list[int]]:
    """The references of each paper: numbers of older papers, each once; unrecorded papers have none."""
    rng = generator(seed, "demo", "references")
    shelves: dict[Shelf, list[int]] = {}
    references: list[list[int]] = []
    lengths = rng.poisson(rng.gamma(5.0, _MEAN_REFERENCES / 5.0, size=len(literature.corpusid)))
    for paper in range(len(literature.corpusid)):
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
        known = paper >= literature.unrecorded
        chosen = _choose_references(keys, int(lengths[paper]), shelves, references, rng) if known else []
        references.append(chosen)
        for name in keys.keys() - {"second"}:
            shelves.setdefault(keys[name], []).append(paper)
    return references


def _choose_authors(groups: Ints, rng: np.random.Generator) -> list[Ints]:
    """One to five authors for each paper, all from the community of its group (its sub-topic)."""
    community = max(5, round(3 * len(groups) / len(np.unique(groups)) / _PAPERS_PER_AUTHOR))
    numbers = [rng.choice(community, size=count, replace=False) for count in rng.integers(1, 6, size=len(groups))]
    return [group * community + number for group, number in zip(groups, numbers, strict=True)]


def _choose_references(
    keys: dict[str, Shelf],
    wanted: int,
    shelves: dict[Shelf, list[int]],
    references: list[list[int]],
    rng: np.random.Generator,
) -> list[int]:
    """Distinct older papers, found on shelves or in the reference lists of papers found there.

    Fewer than wanted if the shelves have too few: every reference gets three tries.
    """
    chosen: dict[int, None] = {}
    tries = 3 * wanted
    names = rng.choice(list(_SHELF_SHARES), size=tries, p=list(_SHELF_SHARES.values()))
    places, copies, copied_places = rng.random((3, tries))
    for name, place, copy, copied_place in zip(names, places, copies, copied_places, strict=True):
        shelf = shelves.get(keys[name], [])
        if len(chosen) == wanted:
            break
        if shelf:
            found = shelf[-1 - int(len(shelf) * place**2)]
            onward = references[found]
            chosen[onward[int(len(onward) * copied_place)] if onward and copy < _COPIED_SHARE else found] = None
    return list(chosen)


class Writer:
    """Writes about the papers of a literature; the text depends only on the generator."""

    def __init__(self, literature: Literature, rng: np.random.Generator) -> None:
        self._literature = literature
        self._rng = rng

    def title(self, paper: int) -> str:
        """A title of one line."""
        return self._fill(self._pick(_TITLES), paper)

    def abstract(self, paper: int) -> str:
        """An abstract of seven to nine sentences, which begins with its method and its finding."""
        parts = [_OPENINGS, _METHODS, _METHODS, _RESULTS, _RESULTS, _RESULTS, _CLOSINGS]
        dropped = int(self._rng.integers(3))
        kept = [_OF_METHODS, _OF_FINDINGS, *parts[dropped:]]
        return " ".join(self._fill(self._pick(templates), paper) for templates in kept)

    def context(self, cited: int) -> str:
        """A sentence that cites a paper."""
        return self._fill(self._pick(_CONTEXTS), cited)

    def shared_context(self, cited: int) -> str:
        """A sentence that cites several papers, about one of them."""
        return self._fill(self._pick(_SHARED_CONTEXTS), cited)

    def _fill(self, template: str, paper: int) -> str:
        """The template with a word for each slot, no word twice."""
        used: set[str] = set()

        def word_for(slot: re.Match[str]) -> str:
            word = self._word(slot[1], paper)
            while word in used:
                word = self._word(slot[1], paper)
            used.add(word)
            return word

        text = re.sub(r"\{(\w+)\}", word_for, template)
        return text[0].upper() + text[1:]

    def _word(self, slot: str, paper: int) -> str:
        literature = self._literature
        if slot == "concept":
            return self._concept(paper)
        if slot == "method":
            return self._named(METHODS[literature.method[paper]], paper)
        if slot == "finding":
            return self._named(FINDINGS[literature.finding[paper]], paper)
        if slot == "field":
            return self._pick(FIELD_WORDS[literature.topics[literature.topic[paper]].field])
        if slot == "elsewhere":
            return self._pick(self._pick(self._pick(literature.topics).concepts))
        return str(self._rng.integers(11, 98))

    def _concept(self, paper: int) -> str:
        """A concept of the paper's topic, most often of its own sub-topic and style of naming."""
        literature = self._literature
        topic = literature.second[paper] if self._rng.random() < _SECOND_TOPIC_SHARE else literature.topic[paper]
        concepts: Sequence[tuple[str, str]] = literature.topics[topic].concepts
        if self._rng.random() < _OWN_SUBTOPIC_SHARE:
            first = CONCEPTS_PER_SUBTOPIC * literature.subtopic[paper]
            concepts = concepts[first : first + CONCEPTS_PER_SUBTOPIC]
        own = self._rng.random() < _OWN_MANNER_SHARE
        return self._pick(concepts)[literature.manner[paper] if own else 1 - literature.manner[paper]]

    def _named(self, names: tuple[str, str], paper: int) -> str:
        manner = self._literature.manner[paper]
        return names[manner if self._rng.random() < _OWN_MANNER_SHARE else 1 - manner]

    def _pick(self, items: Sequence[Item]) -> Item:
        return items[int(self._rng.integers(len(items)))]
