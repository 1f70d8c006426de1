"""Sets of triplets, what they are sampled from, and the groups that they are compared in."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from snakemake.io import expand

from cocite.config.probes import named_sets
from cocite.config.sampler import QUERIES_AT_ONCE, oracles
from cocite.plan.recorded import names_of
from cocite.plan.stage import PAPER_MB, Request, StagePlan, size_mb, whole

EXAMPLES = "sampled_examples"  # the table of sets that give examples; the others give `triplets`


class TripletPlan(StagePlan):
    """Sets of triplets and of examples."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.examples = [*self.config.triplets, *map(validation_of, names_of("group", "", self.config))]
        """The names of what is learned from and validated on: the sets, and a validation set for each group."""
        self.given_away = oracles(self.config)  # the sets with answers of benchmarks, with these benchmarks

    def sampled(self, name: str) -> str:
        """The triplets or the examples of a set, as its sampler gives them."""
        return f"<results>/triplets/{name}/{self.table(name)}.parquet"

    def table(self, name: str) -> str:
        """The table that a set is sampled into: examples if it, or one that it is made of, gives examples."""
        parts = self.config.set_with_parts(name).values()
        return EXAMPLES if any(each.gives == EXAMPLES for each in parts) else "triplets"

    def sets_in(self, table: str) -> list[str]:
        """The sets that are sampled into a table."""
        return [name for name in self.config.triplets if self.table(name) == table]

    def sets_with_texts(self, name: str) -> list[str]:
        """The set, and those that it combines, whose samplers supply texts."""
        return [each for each, entry in self.config.set_with_parts(name).items() if entry.brings_texts]

    def texts_of(self, names: Iterable[str]) -> list[str]:
        """The texts that are no papers of some sets: their own, and those of the sets that they are made of."""
        bringing = dict.fromkeys(each for name in names for each in self.sets_with_texts(name))
        return [f"<results>/triplets/{name}/texts.parquet" for name in bringing]

    def group_to_train(self, wildcards: Any) -> list[str]:
        """All sets of the group of a set, which are cut to the size of the smallest, and the texts of the set."""
        group = self.config.triplets[wildcards.triplets].group
        return [*map(self.sampled, self._in_group(group)), *self.texts_of([wildcards.triplets])]

    def group_to_validate(self, wildcards: Any) -> list[str]:
        """All sets of a group, and their texts."""
        names = self._in_group(wildcards.group)
        return [*map(self.sampled, names), *self.texts_of(names)]

    def _in_group(self, group: str) -> list[str]:
        return [name for name, entry in self.config.triplets.items() if entry.group == group]

    def by_sets(self, least: float, sets: float, others: float = 0) -> Request:
        """A constant, plus a factor for each MB of the sets of a group, and one for each MB of texts and papers."""

        def asked(wildcards: Any, input: Any, attempt: int) -> int:
            of_sets = size_mb([file for file in input.group if Path(file).name != "texts.parquet"])
            return whole(least + sets * of_sets + others * (size_mb(input) - of_sets)) * attempt

        return asked

    def materialised(self, name: str) -> list[str]:
        """A file or folder of each set of examples."""
        return [f"<results>/triplets/{each}/{name}" for each in self.examples]

    def checked(self, *tables: str) -> list[str]:
        """Tables of the checks of the sets that the configuration names itself, without those of grids of probes."""
        return expand("<results>/triplets/{triplets}/{table}.parquet", triplets=named_sets(self.config), table=tables)

    def sampling_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of sampling, MB: what a sampler holds of its sources, and the ids of all papers that it asks."""
        entry = self.config.triplets[wildcards.triplets]
        papers = size_mb(input.papers)
        ids = 0.05 * papers if entry.asks_all_papers else 0
        of_block = min(1, QUERIES_AT_ONCE * PAPER_MB / papers) if entry.asks_all_papers and papers else 1
        return whole(1900 + ids + of_block * entry.memory_of_source * size_mb(input.sources)) * attempt

    def ranks_in_use(self, wildcards: Any) -> str:
        """The last ranks that sets of triplets take from an embedding's neighbours, as JSON for `--settings`."""
        sets = [e for e in self.config.triplets.values() if getattr(e, "embedding", None) == wildcards.embedding]
        ends = [getattr(entry, key, None) for entry in sets for key in ("k_positive", "k_negative")]
        return json.dumps({"ranks": sorted({end if isinstance(end, int) else end[-1] for end in ends if end})})

    def ranked_neighbours(self, wildcards: Any) -> list[str]:
        """The neighbours by whose ranks a set of triplets was drawn; nothing for other sets."""
        entry: Any = self.config.triplets[wildcards.triplets]
        return self.plan.neighbours.of(entry.embedding) if entry.sampler == "neighbours" else []

    def of_mined(self, path: str) -> Callable[[Any], str | list[str]]:
        """A file of a set whose negatives are mined; nothing for other sets."""
        return lambda wildcards: path if self.config.triplets[wildcards.triplets].sampler == "mined" else []

    def oracles_and_validation(self) -> str:
        """The sets with answers of benchmarks, and the validation sets of their groups, as JSON."""
        groups = {validation_of(self.config.triplets[name].group): away for name, away in self.given_away.items()}
        return json.dumps({**self.given_away, **groups}, sort_keys=True)

    def documents_to_look_for(self, wildcards: Any) -> list[str]:
        """The documents of external benchmarks; papers of hold-outs are excluded from all triplets but an oracle's."""
        return self.documents_of(*self.given_away.get(wildcards.triplets, ()))

    def documents_of(self, *own: str) -> list[str]:
        """The documents of published benchmarks and of some own ones, and the papers that they are."""
        foreign = [name for name in self.config.benchmarks if name not in self.plan.evaluation.holdouts]
        names = list(dict.fromkeys([*foreign, *own]))
        documents = [f"<results>/evaluation/{name}/documents.parquet" for name in names]
        return documents + self.plan.corpus.papers_of_documents(names)


def validation_of(group: str) -> str:
    """The name of the validation set of a group."""
    return f"validation_{group}"
