"""Train linear maps of ready vectors in place of an encoder, to see what triplets and losses are worth.

In: a set of examples (table training_examples) and the vectors of papers before fine-tuning (table paper_embeddings).
Out: for each loss, batch size and seed a map W, dimension × dimension, that starts as the identity and learns by the
encoder's losses, with W h in place of the vector h of a document.
"""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import torch
import typer
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import Parameter

from cocite.config.loss import Loss
from cocite.config.models import TrainingSettings
from cocite.config.probes import MapTraining, described_loss
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.options import Output, Seed, Threads
from cocite.core.progress import progress
from cocite.core.randomness import derive_seed, priorities
from cocite.core.tables.files import read_table, vectors_of_papers
from cocite.core.tables.places import NORMALISE, Trained, name_of_map
from cocite.encoder.batch import PairIndices, compared_by, frequencies_of
from cocite.encoder.documents import Numbers
from cocite.encoder.examples import Numbered, numbered_examples
from cocite.encoder.model import is_normalised
from cocite.encoder.schedule import Schedule

TOGETHER = 8
"""Triplets of a query that stay together in a batch of a loss that asks for none."""
LARGEST_NORM = 1.0
"""Gradients of a map are clipped to this norm."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Examples over ready vectors."""

    examples: Numbered
    vectors: Tensor
    """The vector of each document, documents × dimension, float32."""
    normalise: bool = False
    """Whether mapped vectors are scaled to length 1, like those of the encoder."""

    def batch(self, numbers: Numbers, loss: Loss) -> tuple[Tensor, PairIndices]:
        """The vectors of the distinct documents of some examples, and what the examples compare."""
        query = self.examples.queries[numbers]
        near, far = self.examples.positives.of(numbers), self.examples.negatives.of(numbers)
        documents, places = np.unique(np.concatenate([query, near.documents, far.documents]), return_inverse=True)
        query, positive, negative = np.split(places, np.cumsum([len(query), len(near.documents)]))
        linked = replace(near, documents=positive), replace(far, documents=negative)
        compared = compared_by(query, *linked, frequencies=frequencies_of(self.examples, documents, loss))
        return self.vectors[documents], compared


def probe_examples(
    examples: Annotated[Path, typer.Argument(help="Table training_examples of the set.")],
    vectors: Annotated[Path, typer.Option(help="Folder of the table paper_embeddings of the encoder.")],
    settings: GivenAsJson[MapTraining],
    *,
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder: mapped vectors are normalised as its own are.")],
    seed: Seed,
    threads: Threads,
    output: Output,
) -> None:
    """Train linear maps of ready vectors on a set, with each loss of a probe, as one safetensors file.

    Raises `InputError` if the vectors are missing, lack a paper, or are not finite.
    """
    torch.set_num_threads(threads)
    normalise = is_normalised(encoder)
    ready = open_ready(examples, vectors, settings.examples, normalise=normalise, seed=seed)
    asked = list(product(settings.losses, settings.batch_sizes, settings.seeds))
    maps = {}
    for loss, batch_size, number in progress(asked, of="Trained", unit="map"):
        name, drawn = name_of_map(Trained(described_loss(loss), batch_size, number)), derive_seed(seed, "probe", number)
        maps[name] = train_map(ready, loss, batch_size, settings, seed=drawn)
    with atomic_path(output) as temporary:
        save_file(maps, temporary, {NORMALISE: str(normalise)})


def open_ready(examples: Path, vectors: Path, most: int | None, *, normalise: bool = False, seed: int) -> Ready:
    """The examples of a set, at most `most`, with the vectors of their papers."""
    table = read_table(examples, "training_examples").combine_chunks()
    if most is not None and most < len(table):  # those of the first queries by seeded priority, as many as fit
        queries, which, counts = np.unique(table["query"].to_numpy(), return_inverse=True, return_counts=True)
        order = np.argsort(priorities(seed, "probed queries", queries), kind="stable")
        is_chosen = np.empty(len(queries), dtype=bool)
        is_chosen[order] = np.cumsum(counts[order]) <= most
        table = table.filter(pa.array(is_chosen[which]))
    numbered, _ = numbered_examples(table, examples)
    rising, place = np.unique(numbered.ids, return_inverse=True)
    found, is_there = vectors_of_papers(vectors, "paper_embeddings", rising)
    if len(missing := rising[~is_there]):
        others = len(missing) - 1
        raise InputError(f"{vectors}: has no vector of paper {missing[0]}, nor of {others:,} others of the set.")
    if len(broken := rising[~np.isfinite(found).all(axis=1)]):
        raise InputError(f"{vectors}: the vector of paper {broken[0]} holds values that are not finite.")
    return Ready(examples=numbered, vectors=torch.from_numpy(found[place]), normalise=normalise)


def train_map(ready: Ready, loss: Loss, batch_size: int, settings: MapTraining, *, seed: int) -> Tensor:
    """Train a map of the vectors, dimension × dimension, from the identity on."""
    dimension = ready.vectors.shape[1]
    weight = Parameter(torch.eye(dimension))
    optimiser = torch.optim.AdamW([weight], lr=settings.lr, weight_decay=0.0)
    schedule = schedule_of(ready, loss, batch_size, settings, seed)
    for step in range(1, schedule.steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = schedule.learning_rate(step)
        for chosen in schedule.batches_of(step):
            vectors, compared = ready.batch(chosen.numbers, loss)
            mapped = vectors @ weight.T
            loss(torch.nn.functional.normalize(mapped, dim=1) if ready.normalise else mapped, compared).backward()
        torch.nn.utils.clip_grad_norm_([weight], LARGEST_NORM)
        optimiser.step()
        optimiser.zero_grad()
    return weight.detach()


def schedule_of(ready: Ready, loss: Loss, batch_size: int, settings: MapTraining, seed: int) -> Schedule:
    """The steps of a map's training: those of an encoder with the same settings, without a warm-up."""
    how: dict[str, Any] = {"epochs": settings.epochs, "max_steps": settings.max_steps, "warmup": 0.0, "lr": settings.lr}
    block = loss.together if loss.together > 1 else TOGETHER
    training = TrainingSettings(loss=loss, batch_size=batch_size, block=block, **how)
    return Schedule(queries=[ready.examples.queries], settings=training, seed=seed)
