"""The section `probes`: estimates which triplets and losses are worth a training, before running one.

A probe trains a linear map of fixed vectors in place of an encoder. A grid has a set per combination of its values.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Strict, ValidationError, model_validator

from cocite.config import entries
from cocite.config.baseline import Choices, combinations
from cocite.config.benchmark import HoldoutSettings
from cocite.config.encoders import AnyLoss
from cocite.config.entries import Count, Entry, Name, Names, Positive, Refers, Seeds, ShortFor, Text, Whole
from cocite.config.loss import Loss
from cocite.config.sampler import Sampler
from cocite.config.settings import validated

FIXED = ("sampler", "group")  # the keys of a set that a grid cannot name


class SetGrid(Entry):
    """Variants of a set of triplets that differ in some keys, for a probe only."""

    of: Annotated[str, Refers("triplets")]
    """Name of the set whose other keys they have."""
    grid: Annotated[dict[Text, Choices], Field(min_length=1)]
    """Values to try for some of its keys, each key with a list. Every combination is a set, called after the grid with
    a number behind: bands-1, bands-2. They are one group: all are as large as the smallest."""


class MapTraining(Entry):
    """How the linear maps of a probe are trained."""

    losses: Annotated[
        tuple[Annotated[AnyLoss, ShortFor("kind")], ...],
        Strict(False),
        AfterValidator(entries.distinct),
        AfterValidator(entries.filled),
    ]
    """How examples are compared: names of losses, or names and their settings. A map is trained with each."""
    batch_sizes: Seeds = (128,)
    """Examples of a batch. A map is trained with each."""
    examples: Count | None = None
    """Examples of a set that are learned from at most: those of as many queries as fit, the same queries of all sets as
    far as these have them. Left out, all."""
    epochs: Count = 3
    """Passes over the examples."""
    max_steps: Count | None = None
    """Steps after which the training of a map ends, if it has not gone through its epochs by then."""
    lr: Positive = 1e-3
    """Largest learning rate (AdamW); it falls to zero along a line."""
    seeds: Seeds = (1, 2, 3)
    """Seeds of the order of the examples. A map is trained with each."""

    @model_validator(mode="after")
    def _compares_examples(self) -> "MapTraining":
        for number, loss in enumerate(self.losses):
            if loss.input_kind != "examples":
                raise entries.inconsistent(f".losses[{number}] ({loss.kind}) compares no examples, which a probe does.")
        return self


class Probe(MapTraining):
    """Sets of triplets and losses, tried on ready vectors: for each set and loss, a linear map of the vectors that an
    encoder has before fine-tuning is trained and scored on held-out papers."""

    encoder: Annotated[str, Refers("encoders")]
    """Name of the encoder whose vectors are mapped."""
    benchmark: Annotated[str, Refers("benchmarks")]
    """Name of a holdout benchmark with `selection`: sets and losses are ranked on its selection queries and scored on
    its test queries."""
    triplets: Annotated[Names, Refers("triplets")] = ()
    """Names of sets of triplets or of examples of papers."""
    grids: dict[Name, SetGrid] = Field(default={})
    """Sets that differ in some keys, by name; that name must be no set's."""

    @property
    def sets(self) -> list[str]:
        """The names of all sets, those of grids last."""
        grids = {name: len(combinations(grid.grid)) for name, grid in self.grids.items()}
        return [*self.triplets, *(point_name(name, number) for name in grids for number in range(grids[name]))]

    @model_validator(mode="after")
    def _has_sets(self) -> "Probe":
        if not (self.triplets or self.grids):
            raise entries.inconsistent(" has no sets; name some under triplets, or make some under grids.")
        return self

    def check_references(self, key: str, config: Whole) -> Iterator[str]:
        """A benchmark by which nothing can be chosen, or sets that have no vectors."""
        benchmark = config.benchmarks[self.benchmark]
        if benchmark.made_by is not HoldoutSettings:
            yield f"{key}.benchmark names {self.benchmark!r}, which is not of the kind holdout."
        elif benchmark.selection is None:
            lacks = f"names {self.benchmark!r}, which has no selection queries"
            yield f"{key}.benchmark {lacks}; set its selection, the share of held-out papers used for selection."
        for name in filter(config.triplets.__contains__, self.sets):
            entry = config.triplets[name]
            for loss in self.losses:
                if loss.needs_negatives and not entry.has_negatives and not entry.parts:
                    yield f"{key}: the loss {loss.kind} needs negatives, and triplets.{name} has none."
            if any(each.brings_texts for each in config.set_with_parts(name).values()):
                yield f"{key}: triplets.{name} has texts that are no papers, of which there are no vectors."


def point_name(grid: str, number: int) -> str:
    """What a set of a grid is called; they are numbered from 0."""
    return f"{grid}-{number + 1}"


def with_grids(config: Whole) -> tuple[Whole, list[str]]:
    """The configuration with the sets of the grids of its probes, and a sentence on each that cannot be one."""
    found, faults = dict[str, Any](), list[str]()
    of_grids = _of_grids(config)
    groups = {getattr(entry, "group", None) for name, entry in config.triplets.items() if name not in of_grids}
    for probe, entry in config.probes.items():
        for name, grid in entry.grids.items():
            key = f"Configuration key probes.{probe}.grids.{name}"
            if grid.of in of_grids:
                faults.append(f"{key}.of names {grid.of!r}, a set of a grid; name one of triplets.")
            if grid.of not in config.triplets:
                continue  # it is refused as a name that is not declared
            if name in groups:
                faults.append(f"{key}: {name!r} is a group of triplets; give the grid another name.")
            try:
                sets = _sets_of(name, grid, config.triplets[grid.of])
            except ValueError as error:
                faults.append(f"{key}.grid{error}")
                continue
            for each, made in sets.items():
                if {**config.triplets, **found}.get(each, made) != made:
                    faults.append(f"{key}: the set {each} exists already; give the grid another name.")
                found[each] = made
    return config.model_copy(update={"triplets": {**config.triplets, **found}}), faults


def _sets_of(name: str, grid: SetGrid, entry: Sampler) -> dict[str, Any]:
    """The sets of a grid by name, which differ from an entry. Raises `ValueError`, a sentence that follows its key."""
    sets, base, keys = {}, entries.as_json(entry), entries.fields_of(type(entry))
    for key in grid.grid:
        if key not in keys or key in FIXED:
            known = ", ".join(each for each in keys if each not in FIXED)
            raise ValueError(f" names {key!r}; of {grid.of} it can name {known}.")
    for number, point in enumerate(combinations(grid.grid)):
        try:
            sets[point_name(name, number)] = validated(type(entry), {**base, **point, "group": name})
        except ValidationError as error:
            values = ", ".join(f"{key}: {value}" for key, value in point.items())
            why = error.errors()[0]["msg"].strip(" .")
            raise ValueError(f": {values} makes no set ({why}).") from None
    return sets


def named_sets(config: Whole) -> dict[str, Sampler]:
    """The sets of triplets that a configuration names itself, without those that grids of probes make."""
    generated = _of_grids(config)
    return {name: entry for name, entry in config.triplets.items() if name not in generated}


def _of_grids(config: Whole) -> set[str]:
    return {name for probe in config.probes.values() for name in probe.sets[len(probe.triplets) :]}


def described_loss(loss: Loss) -> str:
    """A loss with its settings, as tables name it, whatever their order: `triplet margin=1.0`."""
    settings: dict[str, Any] = entries.as_json(loss)
    return " ".join([loss.kind, *(f"{key}={json.dumps(value)}" for key, value in settings.items() if key != "kind")])
