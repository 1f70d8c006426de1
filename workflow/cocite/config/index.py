"""What an index is to the configuration: what finds papers for a text, and how these are ranked."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import model_validator

from cocite.config.benchmarks.holdout import Holdout
from cocite.config.entries import Entry, Name, Names, Refers, Whole, inconsistent

WORDS, VOTES, CITATIONS = "words", "votes", "citations"
SIGNALS = (WORDS, VOTES, CITATIONS)  # what weights can name beside models
Rank = Literal["learned", "sum", "reciprocal"]


class Lists(Entry):
    """What an index finds papers by."""

    models: Annotated[Names, Refers("models", or_in="encoders")] = ()
    """Names of models, or of encoders as they are before fine-tuning, whose vectors of all papers are searched. An
    index has the seeds that all its models were trained with."""
    words: bool = True
    """Whether papers are found by their words as well (BM25)."""


class Ranking(Entry):
    """How an index ranks the papers that it finds."""

    rank: Rank | dict[Name, float] = "learned"
    """learned: by a logistic regression on what the selection queries of the benchmark cite (its `selection`), or by
    weights that come with the program if there are fewer than 25 of them; sum: by the sum of what compares texts, votes
    and citations, standardised; reciprocal: by reciprocal rank fusion. Or weights of that sum, by the names of models,
    and words, votes and citations; what is left out has none."""
    known: Literal["more", "balanced", "less"] = "balanced"
    """How much well-known papers are preferred. more: citations weigh what `rank` gives them. balanced: papers that
    training never sees cited, and those that it sees cited one to three times, get offsets that find each of these two
    classes no worse than any list alone, and the most of all papers, on the selection queries. less: offsets that are
    larger by half a deviation of the score."""


class Index(Lists, Ranking):
    """Finds papers for a text by what it says, and by who cites whom among the papers of the corpus.

    An index is scored on hold-outs with `search: true`, like a model. On `screening`, papers are classified by the
    vectors of its models and by words, if it finds papers by them.
    """

    graph: Annotated[Name | None, Refers("graphs")] = None
    """Name of the graph whose links vote: the first hits for the papers that they are linked with."""
    of: Annotated[Name | None, Refers("indexes")] = None
    """Name of another index whose papers this one ranks in another way; in place of models, words and graph."""

    @model_validator(mode="after")
    def _finds_papers(self) -> "Index":
        if self.of is not None and (self.models or self.graph or not self.words):
            raise inconsistent(".of names the index that finds its papers; leave out models, words and graph.")
        if self.of is None and not (self.models and self.graph):
            raise inconsistent(" needs models and graph, or of, an index that has them.")
        if isinstance(self.rank, Mapping) and not any(self.rank.values()):
            raise inconsistent(".rank has no weight other than 0, so that it ranks nothing.")
        return self

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """The name of a model or a baseline, or no benchmark that an index can be scored on."""
        name = key.removeprefix("indexes.")
        for section in ("models", "baselines"):
            if name in getattr(config, section):
                yield f"{key}: {section} has that name, and both are scored; give the index another."
        if not any(searches(entry) or entry.screens for entry in config.benchmarks.values()):
            yield f"{key} is scored on hold-outs with search: true, and on screening; benchmarks has neither."

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """An index of an index of another one, a model with adapters, answers or another seed, a weight of nothing."""
        from cocite.config.runs import UNTRAINED, adapters_of, seeds_of_index
        from cocite.config.sampler import oracle_models

        if self.of is not None and config.indexes[self.of].of is not None:
            yield f"{key}.of names {self.of}, which finds no papers itself; name {config.indexes[self.of].of}."
            return
        lists = self if self.of is None else config.indexes[self.of]
        oracles = oracle_models(config)
        for name in lists.models:
            if name in oracles:
                yield f"{key}.models names {name}, which has learned from the answers of {', '.join(oracles[name])}."
            if adapters_of(config, name if name in config.models else f"{UNTRAINED}{name}"):
                yield f"{key}.models names {name}, whose adapters give a paper several vectors."
        if not seeds_of_index(config, key.removeprefix("indexes.")):
            yield f"{key}.models have no training seed in common."
        known = (*lists.models, *SIGNALS)
        for name in self.rank if isinstance(self.rank, Mapping) else ():
            if name not in known:
                yield f"{key}.rank names {name!r}; it can name {', '.join(known)}."
            elif known.count(name) > 1:
                yield f"{key}.rank names {name!r}, which is a model of the index as well; give the model another name."


def searches(benchmark: Entry) -> bool:
    """Whether an index can be scored on a benchmark: its held-out papers search the whole corpus."""
    return isinstance(benchmark, Holdout) and benchmark.search
