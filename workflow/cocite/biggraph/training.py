"""Train a graph embedding with PyTorch-BigGraph, reproducibly, and go on exactly where a killed training stood.

PyTorch-BigGraph commits a checkpoint (vectors and the state of the optimiser) after each iteration, that is each
chunk of each epoch, and goes on from it. What it does not keep is randomness: it shuffles edges in the main process
and draws negatives in its workers, which it seeds with their process id. Here both are seeded anew for each
iteration from the run's seed and the iteration's number. An iteration then hangs on nothing but its checkpoint and
its number, and with one worker a training that was killed ends with the same bits as one that was not.
"""

import multiprocessing
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import torch
from torchbiggraph.config import ConfigSchema
from torchbiggraph.edgelist import EdgeList
from torchbiggraph.model import MultiRelationEmbedder, make_model
from torchbiggraph.stats import Stats
from torchbiggraph.train import Trainer, train_and_report_stats
from torchbiggraph.util import DummyOptimizer

from cocite.biggraph.checkpoints import TrainingState, fingerprint
from cocite.biggraph.configuration import TRAINING, GraphEmbeddingSettings, biggraph_configuration
from cocite.biggraph.link_prediction import HeldOut, load_held_out, measure
from cocite.errors import InputError
from cocite.progress import report
from cocite.randomness import derive_seed
from cocite.settings import settings_as_dict


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training leaves: the HDF5 file of its last checkpoint, and the scores of each epoch."""

    checkpoint: Path
    scores: list[dict[str, float]]


def train_graph_embedding(imported: Path, settings: GraphEmbeddingSettings, *, seed: int, state: Path) -> Trained:
    """Train to the end, from the checkpoint in `state` if it belongs to the same settings, seed and edges."""
    _check_chunks(imported, settings.chunks)
    kept = TrainingState(state)
    done = kept.open({**settings_as_dict(settings), "seed": seed, "edges": fingerprint(imported)})
    iterations = settings.epochs * settings.chunks
    if done:
        report(f"going on after iteration {done} of {iterations}")
    if done < iterations:
        with torch.random.fork_rng(devices=[]):
            _train(imported, settings, seed=seed, kept=kept, done=done)
    if kept.version() != iterations:
        raise InputError(
            f"{state}: holds {kept.version()} iterations of {iterations}; remove the folder and run again."
        )
    return Trained(checkpoint=kept.embeddings(), scores=kept.scores(settings.epochs))


def _check_chunks(imported: Path, chunks: int) -> None:
    with h5py.File(imported / TRAINING / "edges_0_0.h5") as file:
        edges = len(file["lhs"])
    if chunks > edges:
        raise InputError(
            f"--settings: chunks is {chunks}, but there are {edges} edges to train on; a chunk needs one at least."
        )


def _train(imported: Path, settings: GraphEmbeddingSettings, *, seed: int, kept: TrainingState, done: int) -> None:
    config = biggraph_configuration(settings, imported, kept.url)
    model = make_model(config)
    trainer = SeededTrainer(config, seed)
    held_out = load_held_out(imported, seed=seed)
    started = time.monotonic()
    trainer.begin(done)
    # Each item comes when an iteration is trained and before its checkpoint is committed: what is measured here is
    # measured again if the commit does not come to pass.
    for iteration, _, stats, _ in train_and_report_stats(config, model, trainer, subprocess_init=stop_with_parent):
        rate = stats.count / (time.monotonic() - started)
        epoch, chunk = divmod(iteration, settings.chunks)
        line = f"epoch {epoch} of {settings.epochs}" if chunk == 0 else f"epoch {epoch + 1}, chunk {chunk}"
        report(f"{line}: training loss {stats.metrics['loss']:.3f}, {rate:,.0f} edges/s")
        if chunk == 0:
            kept.keep_scores(epoch, _measured(model, held_out, settings))
        started = time.monotonic()
        trainer.begin(iteration)


def _measured(model: MultiRelationEmbedder, held_out: HeldOut, settings: GraphEmbeddingSettings) -> dict[str, float]:
    scores = measure(model, held_out, margin=settings.margin)
    told = ", ".join(f"{name} {scores[name]:.3f}" for name in ("loss", "mrr", "hits_at_10", "auc"))
    report(f"  on {scores['edges']:,} held-out edges: {told}")
    return scores


class SeededTrainer(Trainer):
    """PyTorch-BigGraph's trainer, whose negatives hang on the seed, the iteration and the edges it is given."""

    def __init__(self, config: ConfigSchema, seed: int) -> None:
        # Only the vectors are trained, and they have optimisers of their own: there is no operator, no common vector.
        super().__init__(DummyOptimizer(), config.loss_fn, config.margin, config.relations)
        self.seed = seed
        self.iteration = 0
        self.seeded = False

    def begin(self, iteration: int) -> None:
        """Seed what the main process draws in an iteration: the first vectors and the order of edges."""
        self.iteration = iteration
        torch.manual_seed(derive_seed(self.seed, "biggraph", "order", iteration))

    def process_one_batch(self, model: MultiRelationEmbedder, batch_edges: EdgeList) -> Stats:
        """Train on one batch. A worker gets a copy of the trainer for each iteration, and seeds itself once with it."""
        if not self.seeded:
            first = int(batch_edges.lhs.tensor[0]), int(batch_edges.rhs.tensor[0])
            torch.manual_seed(derive_seed(self.seed, "biggraph", "negatives", self.iteration, *first))
            self.seeded = True
        return super().process_one_batch(model, batch_edges)


def stop_with_parent() -> None:
    """Let a worker end when its parent does, even by SIGKILL, instead of training on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: Any) -> None:
    parent.join()
    os._exit(1)
