"""Titles, abstracts and citing sentences, put together from templates and the vocabulary of a paper's topic.

A text shows its topic only in part: it uses one of two names for each concept, shares the words of its field with
other topics, and mentions things from elsewhere.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from cocite.demo.literature import CONCEPTS_PER_SUBTOPIC, FIELD_WORDS, FINDINGS, METHODS, Literature

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
