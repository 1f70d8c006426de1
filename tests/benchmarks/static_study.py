"""What else a static encoder could learn from, or by: variants of a model of a finished run, scored by its hold-outs.

python -m tests.benchmarks static_study .bench results/hci-static static

Variants that a configuration cannot name exist only here. A score is the mean over seeds of R@20 in a search of the
corpus, or of MAP among matched candidates. Differences are from the first variant, with a star where the 95% interval
over queries excludes 0. Trainings that are in `.bench` already are not repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from tests.benchmarks.measuring import say, say_header, say_row
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from cocite.config.configuration import Configuration
from cocite.config.models import TrainingSettings
from cocite.core.randomness import derive_seed
from cocite.encoder.batch import PairIndices, build_batch
from cocite.encoder.documents import Documents, Numbers, documents_of
from cocite.encoder.examples import ExampleFiles, Examples, joined_examples, open_examples
from cocite.encoder.losses import _related
from cocite.encoder.model import embed
from cocite.encoder.schedule import Schedule
from cocite.encoder.static import StaticEncoder, first_vectors, open_static
from cocite.encoder.tokens import open_tokenizer, texts_of, tokenise
from cocite.evaluation.metrics import measure_rankings
from cocite.plan.recorded import configuration_of

RESAMPLES = 2000
FIRST, RECALL = 20, "recall_cap_20"


class Variant(NamedTuple):
    """One change of the model."""

    settings: Mapping[str, Any] = MappingProxyType({})
    dimension: int | None = None
    loss: Mapping[str, Any] = MappingProxyType({})
    without_links: bool = False
    """Whether papers that the query is linked with in training are no negatives."""
    to_start: float = 0
    """How far a step moves the table back to where it started, in learning rates."""
    pairs: int = 0
    """Frequent pairs of neighbouring pieces that have vectors, too."""


VARIANTS = {
    "as configured": Variant(),
    "256 dimensions": Variant(dimension=256),
    "512 dimensions": Variant(dimension=512),
    "batches of 4,096": Variant(settings={"batch_size": 4096}),
    "batches of 4,096, lr 0.01": Variant(settings={"batch_size": 4096, "lr": 0.01}),
    "batches of 16,384, lr 0.01, 512 dimensions": Variant(settings={"batch_size": 16384, "lr": 0.01}, dimension=512),
    "log_q 0.25": Variant(loss={"log_q": 0.25}),
    "log_q 0.5": Variant(loss={"log_q": 0.5}),
    "log_q 1": Variant(loss={"log_q": 1}),
    "scale 20": Variant(loss={"scale": 20}),
    "scale 20, log_q 1": Variant(loss={"scale": 20, "log_q": 1}),
    "linked papers are no negatives": Variant(without_links=True),
    "back to the start, 0.1": Variant(to_start=0.1),
    "back to the start, 1": Variant(to_start=1),
    "30,000 pairs of pieces": Variant(pairs=30_000),
}


def main(
    kept: Path, results: Path, model: str, *, seeds: tuple[int, ...] = (1, 2), only: tuple[str, ...] = ("",)
) -> None:
    """Train the variants, or those whose names have one of some words, and print what they gain."""
    torch.set_num_threads(1)
    config = configuration_of(results)
    study = Study(config, results, model)
    folder = kept / "static_study" / results.name
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in VARIANTS if any(word in name for word in only)]
    found = {name: [_outcomes_of(study, folder, name, seed) for seed in seeds] for name in chosen}
    say_header("variant", *(f"{measure}, {benchmark}" for benchmark in study.benchmarks for measure in ("R@20", "MAP")))
    base = found[chosen[0]]
    for name, of_seeds in found.items():
        cells = [_cell(of_seeds, base, each, is_base=name == chosen[0]) for each in study.columns]
        say_row(name, *(" / ".join(cells[at : at + 2]) for at in range(0, len(cells), 2)))


def _outcomes_of(study: "Study", folder: Path, name: str, seed: int) -> dict[str, NDArray[np.float64]]:
    """The score of each query, by column, from a file or a training."""
    file = folder / f"{name.replace(' ', '-')}-{seed}.npz"
    if not file.exists():
        np.savez(file, **study.scores(*study.trained(VARIANTS[name], seed)))
        say(f"{name}, seed {seed}")
    with np.load(file) as saved:
        return dict(saved)


def _cell(of_seeds: Sequence[dict[str, Any]], base: Sequence[dict[str, Any]], column: str, *, is_base: bool) -> str:
    mine, other = (np.mean([each[column] for each in some], axis=0) for some in (of_seeds, base))
    if is_base:
        return f"{mine.mean():.1f}"
    difference = mine - other
    drawn = np.random.default_rng(1).integers(len(difference), size=(RESAMPLES, len(difference)))
    low, high = np.quantile(difference[drawn].mean(axis=1), [0.025, 0.975])
    return f"{difference.mean():+.1f}{'*' if low > 0 or high < 0 else ''}"


@dataclass
class Study:
    """A model of a finished run, its examples, and the hold-outs that score it."""

    config: Configuration
    results: Path
    model: str
    examples: Examples = field(init=False)
    settings: TrainingSettings = field(init=False)

    def __post_init__(self) -> None:
        entry = self.config.models[self.model]
        self.settings = TrainingSettings.model_validate(entry.model_dump(include=set(TrainingSettings.model_fields)))
        self.start = self.results / f"encoder/untrained_{entry.encoder}/seed-0"
        files = (
            ExampleFiles(table=self.results / f"triplets/{name}/examples.parquet", tokens=self.start / "tokens" / name)
            for name in entry.learns_from
        )
        self.examples = joined_examples([open_examples(of_set, (0, 0)) for of_set in files])

    @property
    def benchmarks(self) -> list[str]:
        """The hold-outs that search the corpus."""
        return [
            name for name in self.config.benchmarks if (self.results / f"evaluation/{name}/searches.parquet").exists()
        ]

    @property
    def columns(self) -> list[str]:
        """What is scored: cited and co-cited papers, by recall and among matched candidates, in each hold-out."""
        tasks = ("cite_search", "cocite_search", "cite_matched", "cocite_matched")
        return [f"{benchmark} {task}" for benchmark in self.benchmarks for task in tasks]

    @cached_property
    def papers(self) -> tuple[Numbers, Documents]:
        """The ids of papers with a text, and the pieces of these."""
        tokenizer = open_tokenizer(self.start / "model")
        files = sorted((self.results / "corpus/papers").glob("*.parquet"))
        known = [text for text in texts_of(files, tokenizer, "papers") if text.text]
        return np.array([text.id for text in known]), tokenise([text.text for text in known], tokenizer)

    @cached_property
    def links(self) -> Numbers:
        """The pairs of papers that are linked in training, in both directions, as sorted numbers."""
        near = self.examples.positives
        one, two = self.examples.queries[near.owners].astype(np.int64), near.documents.astype(np.int64)
        size = len(self.examples.ids)
        return np.unique(np.concatenate([one * size + two, two * size + one]))

    def trained(self, variant: Variant, seed: int) -> tuple[StaticEncoder, Documents]:
        """The encoder, and the pieces of all papers."""
        of_each = [each.model_dump() for each in self.settings.objectives or ()]
        terms = [{**each, "loss": {**each["loss"], **variant.loss}} for each in of_each]
        settings = TrainingSettings.model_validate(
            {**self.settings.model_dump(), **variant.settings} | ({"objectives": terms} if terms else {})
        )
        start = open_static(self.start / "model")
        table = start.transformer.weight.detach()
        wide, kept = table.shape[1], variant.dimension or table.shape[1]
        table = table[:, :kept] * (wide / kept) ** 0.5
        documents, papers = self.examples.documents, self.papers[1]
        if variant.pairs:
            frequent, counts = _frequent_pairs(documents, len(table), variant.pairs)
            more = first_vectors(counts, len(documents), table.shape[1], derive_seed(seed, "pairs"))
            documents, papers = (_with_pairs(some, frequent, len(table)) for some in (documents, papers))
            table = torch.cat([table, more])
        encoder = StaticEncoder(table.clone(), start.tokenizer, start.counts)
        self._train(encoder, documents, settings, variant, seed)
        return encoder, papers

    def _train(
        self, encoder: StaticEncoder, documents: Documents, settings: TrainingSettings, variant: Variant, seed: int
    ) -> None:
        examples = replace(self.examples, documents=documents)
        sizes = np.bincount(examples.objectives) if examples.objectives is not None else [len(examples)]
        drawing_seed = derive_seed(self.config.run_seed, "train", seed)
        schedule = Schedule(
            queries=np.split(examples.queries, np.cumsum(sizes)[:-1]), settings=settings, seed=drawing_seed
        )
        weight = encoder.transformer.weight
        start = weight.detach().clone()
        optimiser = torch.optim.AdamW(
            [weight], lr=settings.lr, eps=settings.epsilon, weight_decay=settings.weight_decay, fused=True
        )
        for step in range(1, schedule.steps + 1):
            [(numbers, rounds)] = schedule.batches_of(step)
            batch = build_batch(examples, numbers, epochs=rounds, seed=drawing_seed, comparisons=settings.comparisons)
            vectors = normalize(encoder(encoder.features_of(batch.tokens, np.arange(len(batch.tokens)))), dim=1)
            loss = 0 * vectors.sum()
            for comparison, parts in zip(settings.comparisons, batch.parts, strict=True):
                for part in parts:
                    linked = self._linked(batch.documents, part) if variant.without_links else None
                    of_part = comparison.loss(vectors, part) if linked is None else _unlinked(vectors, part, linked)
                    loss = loss + comparison.weight * part.share * of_part
            loss.backward()
            torch.nn.utils.clip_grad_norm_([weight], settings.max_grad_norm)
            optimiser.param_groups[0]["lr"] = schedule.learning_rate(step)
            optimiser.step()
            optimiser.zero_grad()
            if variant.to_start:
                with torch.no_grad():
                    weight.lerp_(start, min(1.0, variant.to_start * schedule.learning_rate(step)))

    def _linked(self, documents: Numbers, part: PairIndices) -> Tensor:
        """Whether the query of each pair is linked with the positive of each other one."""
        query, positive = (documents[of.numpy()].astype(np.int64) for of in part.positives.unbind(dim=1))
        keys = query[:, None] * len(self.examples.ids) + positive
        at = np.minimum(np.searchsorted(self.links, keys), len(self.links) - 1)
        return torch.from_numpy(self.links[at] == keys)

    def scores(self, encoder: StaticEncoder, papers: Documents) -> dict[str, NDArray[np.float64]]:
        """The score × 100 of each query of each column, in the order of queries."""
        vectors, place = embed(encoder, papers), {id: at for at, id in enumerate(self.papers[0].tolist())}
        found = {}
        for benchmark in self.benchmarks:
            folder = self.results / "evaluation" / benchmark
            searched = pl.read_parquet(folder / "popularity.parquet")["corpusid"]
            searched = searched.filter(searched.is_in([*place])).to_list()
            pool = vectors[[place[id] for id in searched]]
            searches = pl.read_parquet(folder / "searches.parquet").filter(pl.col("split") == "test")
            judged = pl.read_parquet(folder / "judgements.parquet").filter(pl.col("task").str.ends_with("_matched"))
            rows = pl.concat([searches.rename({"paper": "candidate"}), judged], how="diagonal_relaxed")
            for (task,), of_task in rows.sort("task", "query", "candidate").group_by("task", maintain_order=True):
                metric = RECALL if task.endswith("_search") else "map"
                judgements, ranked = {}, {}
                for (query,), of_query in of_task.group_by("query", maintain_order=True):
                    judgements[query] = dict(zip(of_query["candidate"], of_query["relevance"], strict=True))
                    of_pool = task.endswith("_search")
                    names = searched if of_pool else [int(name) for name in judgements[query]]
                    nearness = (pool if of_pool else vectors[[place[id] for id in names]]) @ vectors[place[int(query)]]
                    first = [at for at in np.argsort(-nearness)[: FIRST + 1] if names[at] != int(query)][:FIRST]
                    chosen = first if of_pool else range(len(names))
                    ranked[query] = {str(names[at]): float(nearness[at]) for at in chosen}
                values = measure_rankings(judgements, ranked, [metric])[metric]
                found[f"{benchmark} {task}"] = np.array([values[query] for query in judgements])
        return found


def _unlinked(vectors: Tensor, part: PairIndices, linked: Tensor, scale: float = 10) -> Tensor:
    """MNRL over the positives of a batch, without those that a query is linked with."""
    query, positive = part.positives.unbind(dim=1)
    left_out = (
        _related(part.papers[query], part.papers[part.positives], len(vectors))[:, part.papers[positive]] | linked
    )
    logits = scale * vectors[query] @ vectors[positive].T
    return cross_entropy(logits.masked_fill(left_out.fill_diagonal_(False), -torch.inf), torch.arange(len(query)))


def _pairs_of(documents: Documents, row: int, pieces: int) -> NDArray[np.int64]:
    of = documents[row].astype(np.int64)
    return of[:-1] * pieces + of[1:]


def _frequent_pairs(documents: Documents, pieces: int, most: int) -> tuple[Numbers, Numbers]:
    """The pairs of neighbouring pieces that most documents have, ascending, and the number of documents of each."""
    of_all = np.concatenate([np.unique(_pairs_of(documents, row, pieces)) for row in range(len(documents))])
    pairs, counts = np.unique(of_all, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    return pairs[kept], counts[kept]


def _with_pairs(documents: Documents, pairs: Numbers, pieces: int) -> Documents:
    """Documents that have their frequent pairs as further pieces."""
    more = []
    for row in range(len(documents)):
        of = _pairs_of(documents, row, pieces)
        at = np.minimum(np.searchsorted(pairs, of), len(pairs) - 1)
        more.append(np.concatenate([documents[row], pieces + at[pairs[at] == of]]).astype(np.int32))
    return documents_of(more)
