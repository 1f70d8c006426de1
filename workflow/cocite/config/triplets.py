"""The section `triplets`: sets of triplets, or of examples, each found by a sampler."""

from typing import TYPE_CHECKING

from cocite.config.entries import names_in
from cocite.config.plugins import one_of
from cocite.config.sampler import Sampler

SAMPLERS = "cocite.triplets.samplers"

if TYPE_CHECKING:
    from cocite.config.configuration import Configuration

    TripletSet = Sampler
else:
    TripletSet = one_of(SAMPLERS, "sampler")


BY_ASPECT = "aspects"
"""The sampler whose examples know their aspect."""


def oracles(config: "Configuration") -> dict[str, list[str]]:
    """The sets that hold answers of benchmarks, themselves or by a set that they are made of, with these benchmarks."""
    given_away = {
        name: [each.gives_away for each in config.set_with_parts(name).values() if each.gives_away]
        for name in config.triplets
    }
    return {name: benchmarks for name, benchmarks in given_away.items() if benchmarks}


def oracle_models(config: "Configuration") -> dict[str, list[str]]:
    """The models that have learned from answers of benchmarks, themselves or before, with these benchmarks."""
    sets = oracles(config)
    if not sets:
        return {}

    def given_away(name: str) -> list[str]:
        model = config.models[name]
        earlier = given_away(model.from_) if model.from_ is not None else []
        return list(dict.fromkeys([*earlier, *(each for learned in model.learns_from for each in of_set(learned))]))

    def of_set(name: str) -> list[str]:
        by = config.triplets[name].mined_by_model
        return [*sets.get(name, []), *(given_away(by) if by else [])]

    return {name: found for name in config.models if (found := given_away(name))}


def sets_by_aspect(config: "Configuration") -> list[str]:
    """The sets whose examples are sampled by aspect."""
    return [name for name, entry in config.triplets.items() if entry.sampler == BY_ASPECT]


def graphs_of_aspects(config: "Configuration") -> list[str]:
    """The graphs that those are sampled from, each once."""
    sampled = (config.triplets[name] for name in sets_by_aspect(config))
    return list(dict.fromkeys(graph for entry in sampled for graph in names_in(entry, "graphs")))
