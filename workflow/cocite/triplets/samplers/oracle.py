"""The sampler `oracle`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Count, Names, Refers, Whole, all_parts, as_json
from cocite.config.mining import sets_behind_model
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled

CALLED = "oracle"
"""What the names of all that learns from an oracle have in them, so that no table shows it without saying so."""
ANSWERED = ("binary", "multiclass", "multilabel", "ranking", "clicks", "search", "retrieval")
"""Kinds of tasks whose answers say which documents belong together."""


class Oracle(Sampler):
    """The answers of a benchmark: documents of one class, and what is relevant to a query, are near; others are far.

    What learns from it bounds what can be reached on that benchmark and is no result. Each task has as many queries as
    the others. Documents are texts of their own, also where the corpus has papers of these titles.
    """

    sampler: Literal["oracle"]
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True
    benchmark: Annotated[str, Refers("benchmarks")]
    """Name of the benchmark that is given away."""
    tasks: Annotated[Names, Field(min_length=1)] | None = None
    """Names of its tasks that are; left out, all that have classes or judgements."""
    per_query: Count = 5
    """Triplets of each query and task."""
    queries: Count | None = None
    """Queries of each task at most, drawn at random. Left out, those of the task with the fewest."""
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the queries that validate."""

    def faults_of_references(self, key: str, config: Whole) -> Iterator[str]:
        """Tasks without answers; and a name or a group that would hide what it is."""
        from cocite.config.benchmarks import tasks_of

        name = key.removeprefix("triplets.")
        there = tasks_of(as_json(config.benchmarks[self.benchmark]))
        answered = [task.name for task in there if task.kind in ANSWERED]
        if not answered:
            yield f"{key}.benchmark: {self.benchmark} has no task with classes or judgements, and so no answers."
        for task in self.tasks or ():
            if task not in answered:
                yield f"{key}.tasks names {task!r}; tasks of {self.benchmark} with answers are {', '.join(answered)}."
        sets = config.triplets
        made_of_it = [each for each in sets if name in (each, *all_parts(each, lambda part: sets[part].parts))]
        yield from _unnamed("triplets", made_of_it)
        for each, other in sets.items():
            if other.group in {sets[made].group for made in made_of_it} and not _is_oracle(each, config):
                yield (
                    f"triplets.{each}.group ({other.group}) is that of an oracle, and the sets of a group share a "
                    f"validation set; give {name} a group of its own."
                )
        learn = [each for each in config.models if name in sets_behind_model(each, config, with_groups=False)]
        yield from _unnamed("models", learn)

    def sample(self, block: "Block") -> "Sampled":
        """Triplets of the benchmark's documents, by the tables that it was prepared into.

        Raises `InputError` where these are missing, or hold no answers.
        """
        from cocite.triplets.oracle import sample_answers

        return sample_answers(
            block, self.tasks, per_query=self.per_query, queries=self.queries, validation=self.validation
        )


def _is_oracle(name: str, config: Whole) -> bool:
    """Whether a set is an oracle, or made of one."""
    sets = config.triplets
    return any(isinstance(sets[each], Oracle) for each in (name, *all_parts(name, lambda part: sets[part].parts)))


def _unnamed(section: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if CALLED not in name:
            yield (
                f"{section}.{name} learns from the answers of a benchmark; call it {name}-{CALLED}, or anything with "
                f"{CALLED} in it, so that no table shows it as something else."
            )
