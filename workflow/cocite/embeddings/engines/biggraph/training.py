"""Train a graph embedding with PyTorch-BigGraph, reproducibly, and go on exactly where a killed training stood.

PyTorch-BigGraph commits a checkpoint (vectors and the state of the optimiser) after each iteration, that is each
chunk of each epoch, and goes on from it. What it does not keep is randomness: it shuffles edges and the order of
partitions in the main process and draws negatives in its workers, which it seeds with their process id. Here all are
seeded again for each iteration from the run's seed and the iteration's number. An iteration then depends on nothing but
its checkpoint and its number, and with one worker a training that was killed ends with the same bits as one that was
not.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torchbiggraph.losses import LOSS_FUNCTIONS
from torchbiggraph.model import COMPARATORS, make_model
from torchbiggraph.train import train_and_report_stats

from cocite.config.edge_training import RankingLoss
from cocite.config.entries import as_json
from cocite.core.checkpoints import fingerprint_of
from cocite.core.errors import InputError
from cocite.core.progress import progress_bar, report
from cocite.embeddings.edges import TRAINING, Rows
from cocite.embeddings.engines.biggraph import BigGraph
from cocite.embeddings.engines.biggraph.checkpoints import TrainingState
from cocite.embeddings.engines.biggraph.configuration import biggraph_configuration
from cocite.embeddings.engines.biggraph.trainer import SeededTrainer, stop_with_parent
from cocite.embeddings.imported import ImportedFolder
from cocite.embeddings.link_prediction import Batch, load_held_out, measure
from cocite.embeddings.vectors import Trained, Vectors

MOST_EDGES_IN_CHUNK = 2**31 - 1


def train_graph_embedding(imported: Path, settings: BigGraph, *, seed: int, state: Path) -> Trained:
    """Train to the end, from the checkpoint in `state` if it belongs to the same settings, seed and edges."""
    check_chunks(imported, settings.chunks)
    kept = TrainingState(state)
    parts = range(len(ImportedFolder(imported).starts()) - 1)
    depends_on = {**as_json(settings), "seed": seed, "edges": fingerprint_of([imported])}
    done = kept.open(depends_on, partitions=len(parts), chunks=settings.chunks)
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
    vectors = Vectors([kept.vectors(part, iterations) for part in parts])
    return Trained(vectors=vectors, scores=kept.scores(settings.epochs))


def check_chunks(imported: Path, chunks: int) -> None:
    """Raise `InputError` if a chunk would hold no edge, or more than PyTorch can shuffle."""
    edges = ImportedFolder(imported).count_edges(TRAINING)
    fewest, most = int(edges.min()), int(edges.max())
    if chunks > fewest:
        of = "to train on" if edges.size == 1 else f"from one of {len(edges)} partitions to another"
        raise InputError(
            f"--settings: chunks is {chunks}, but there are {fewest} edges {of}; a chunk needs one at least."
        )
    least_chunks = -(-most // MOST_EDGES_IN_CHUNK)
    if chunks < least_chunks:
        raise InputError(
            f"--settings: chunks is {chunks}, but {most:,} edges take {least_chunks} at least: a chunk can hold "
            f"{MOST_EDGES_IN_CHUNK:,}."
        )


def _train(imported: Path, settings: BigGraph, *, seed: int, kept: TrainingState, done: int) -> None:
    config = biggraph_configuration(settings, imported, kept.url)
    model = make_model(config)
    trainer = SeededTrainer(config, seed)
    held_out = load_held_out(ImportedFolder(imported), seed=seed)
    edges = ImportedFolder(imported).count_edges(TRAINING)
    started, trained = time.monotonic(), np.zeros(2)  # since the last report: edges, and the sum of their losses
    trainer.begin(done)
    first = int(edges.sum()) * done // settings.chunks
    with progress_bar(of="train", unit="edges", total=int(edges.sum()) * settings.epochs, initial=first) as bar:
        # Each item comes when a pair of partitions is trained, and the last of an iteration before its checkpoint is
        # committed: what is measured here is measured again if the commit does not come to pass.
        for step, _, stats, _ in train_and_report_stats(config, model, trainer, subprocess_init=stop_with_parent):
            bar.update(stats.count)
            trained += stats.count, stats.count * stats.metrics["loss"]
            iteration, pairs_left = divmod(step, edges.size)
            if pairs_left:
                continue
            epoch, chunk = divmod(iteration, settings.chunks)
            line = f"epoch {epoch} of {settings.epochs}" if chunk == 0 else f"epoch {epoch + 1}, chunk {chunk}"
            rate = trained[0] / (time.monotonic() - started)
            report(f"{line}: training loss {trained[1] / trained[0]:.3f}, {rate:,.0f} edges/s")
            if chunk == 0:
                parts = _trained_parts(trainer, kept, len(edges), iteration)
                score = partial(score_batch, parts, settings)
                kept.keep_scores(epoch, measure(held_out, score, loss_function(settings)))
            started, trained = time.monotonic(), np.zeros(2)
            trainer.begin(iteration)


def _trained_parts(trainer: SeededTrainer, kept: TrainingState, partitions: int, iteration: int) -> Vectors:
    """The vectors at the end of an iteration: of some partitions in memory, of the others written already."""
    in_memory = trainer.vectors_in_memory()
    return Vectors(
        [in_memory[part] if part in in_memory else kept.vectors(part, iteration) for part in range(partitions)]
    )


def loss_function(settings: BigGraph) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of PyTorch-BigGraph that the settings name."""
    of_name: Callable[..., Callable[[Tensor, Tensor], Tensor]] = LOSS_FUNCTIONS.get_class(settings.loss.kind)
    return of_name(settings.loss.margin) if isinstance(settings.loss, RankingLoss) else of_name()


def score_batch(vectors: Vectors, settings: BigGraph, batch: Batch) -> list[Tensor]:
    """Scores of the edges, and scores of edges × candidates for the sources and for the targets."""
    compare = COMPARATORS.get_class(settings.comparator)()

    def prepared(rows: Rows) -> Tensor:
        chosen = torch.from_numpy(vectors.of(rows))
        if settings.max_norm is not None:
            # As the training does whenever it looks a vector up.
            functional.embedding(torch.arange(len(rows)), chosen, max_norm=settings.max_norm)
        return compare.prepare(chosen).unsqueeze(0)

    prepared_rows = (prepared(rows) for rows in (*batch.ends, *batch.candidates))
    return [scores.squeeze(0) for scores in compare(*prepared_rows)]
