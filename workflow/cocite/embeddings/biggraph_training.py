"""Train a graph embedding with PyTorch-BigGraph, reproducibly, and resume a killed training exactly.

PyTorch-BigGraph commits a checkpoint (vectors and the state of the optimiser) after each iteration, that is each chunk
of each epoch, but does not keep its randomness. Here the order of edges and partitions and the negatives of the workers
are seeded for each iteration, so that with one worker a killed training ends with the same bits. The state has the
scores of each epoch, and in `checkpoint/` PyTorch-BigGraph's files, one version per iteration.
"""

import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import h5py
import numpy as np
import torch
import torchbiggraph.schema
import torchbiggraph.train
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torchbiggraph.bucket_scheduling import BucketStats, SingleMachineBucketScheduler, create_ordered_buckets
from torchbiggraph.checkpoint_manager import CHECKPOINT_STORAGES
from torchbiggraph.checkpoint_storage import FileCheckpointStorage
from torchbiggraph.config import ConfigSchema
from torchbiggraph.edgelist import EdgeList
from torchbiggraph.losses import LOSS_FUNCTIONS
from torchbiggraph.model import COMPARATORS, MultiRelationEmbedder, make_model
from torchbiggraph.stats import Stats
from torchbiggraph.train import Trainer, train_and_report_stats
from torchbiggraph.util import DummyOptimizer

from cocite.config.engine import RankingLoss
from cocite.config.entries import as_json
from cocite.core.atomic import add_mark, checked_path, remove_checked, remove_marks
from cocite.core.checkpoints import fingerprint_of, open_state, write_checked_json
from cocite.core.errors import InputError
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed
from cocite.embeddings.edges import TRAINING, Rows
from cocite.embeddings.engines import BigGraph
from cocite.embeddings.imported import ENTITIES, ENTITY, RELATION, ImportedFolder
from cocite.embeddings.link_prediction import Batch, load_held_out, measure
from cocite.embeddings.trained import Trained, Vectors, kept_scores, score_file

MOST_EDGES_IN_CHUNK = 2**31 - 1
SCHEME = "whole"


@CHECKPOINT_STORAGES.register_as(SCHEME)
class WholeCheckpointStorage(FileCheckpointStorage):
    """PyTorch-BigGraph's storage, with checksums; the file that commits a version is replaced, not truncated first."""

    def __init__(self, url: str) -> None:
        super().__init__(url.removeprefix(f"{SCHEME}://"))

    def save_version(self, version: int) -> None:
        """Commit a version, of which all other files are written."""
        for path in self.path.glob(f"*.v{version}.h5"):
            add_mark(path)
        with checked_path(self.get_version_file()) as temporary:
            temporary.write_text(f"{version}\n")

    def drop_entity_partition(self, version: int, entity_name: str, partition: int) -> None:
        """Remove a file of an earlier version."""
        remove_marks(self.get_entity_partition_file(version, entity_name, partition))
        super().drop_entity_partition(version, entity_name, partition)

    def drop_model(self, version: int) -> None:
        """Remove a file of an earlier version."""
        remove_marks(self.get_model_file(version))
        super().drop_model(version)


class TrainingState:
    """The folder of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"{SCHEME}://{(folder / 'checkpoint').resolve()}"

    def open(self, fingerprint: dict[str, Any], *, partitions: int, chunks: int) -> int:
        """Number of iterations that are done; 0 after the state of another training is removed."""
        # PyTorch-BigGraph's log of iterations is removed: it has no checksum, and a kill can leave a torn line.
        implied = partial(self._implied, partitions, chunks)
        open_state(self.folder, fingerprint, work="training", scratch=["checkpoint/*"], implied=implied)
        version = self.version()
        for path in (self.folder / "checkpoint").glob("*.h5"):
            if not path.name.endswith(f".v{version}.h5"):
                remove_checked(path)
        return version

    def version(self) -> int:
        """Number of iterations of the committed checkpoint."""
        return int(FileCheckpointStorage(str(self.folder / "checkpoint")).load_version())

    def vectors(self, part: int, version: int) -> NDArray[np.float32]:
        """The vectors of a partition after so many iterations, by row, mapped from disk."""
        return map_vectors(self._vectors(part, version))

    def _implied(self, partitions: int, chunks: int) -> Iterator[Path]:
        version = self.version()
        if version > 0:
            yield self.folder / "checkpoint" / f"model.v{version}.h5"
            yield from (self._vectors(part, version) for part in range(partitions))
            yield from (score_file(self.folder, epoch) for epoch in range(1, version // chunks + 1))

    def _vectors(self, part: int, version: int) -> Path:
        return self.folder / "checkpoint" / f"embeddings_{ENTITY}_{part}.v{version}.h5"


def map_vectors(checkpoint: Path) -> NDArray[np.float32]:
    """The vectors of a partition, mapped from disk: PyTorch-BigGraph stores them contiguously."""
    with h5py.File(checkpoint) as file:
        vectors = file["embeddings"]
        return np.memmap(checkpoint, np.float32, "r", offset=vectors.id.get_offset(), shape=vectors.shape)


class SeededTrainer(Trainer):
    """PyTorch-BigGraph's trainer, with negatives by the seed, the iteration and the edges."""

    def __init__(self, config: ConfigSchema, seed: int) -> None:
        # Only the vectors are trained, by their own optimisers: there is no operator, no common vector.
        super().__init__(DummyOptimizer(), config.loss_fn, config.margin, config.relations)
        self.seed, self.iteration, self.seeded = seed, 0, False

    def begin(self, iteration: int) -> None:
        """Seed what the main process draws in an iteration: first vectors, order of partitions, order of edges."""
        self.iteration = iteration
        torch.manual_seed(derive_seed(self.seed, "biggraph", "order", iteration))

    def process_one_batch(self, model: MultiRelationEmbedder, batch_edges: EdgeList) -> Stats:
        """Train on one batch. A worker gets a copy of the trainer for each task, and seeds itself once with it."""
        if not self.seeded:
            first = int(batch_edges.lhs.tensor[0]), int(batch_edges.rhs.tensor[0])
            torch.manual_seed(derive_seed(self.seed, "biggraph", "negatives", self.iteration, *first))
            self.seeded = True
        return super().process_one_batch(model, batch_edges)


class SeededBucketScheduler(SingleMachineBucketScheduler):
    """PyTorch-BigGraph's order of pairs of partitions, drawn from the seed of the iteration."""

    def new_pass(self, is_first: bool) -> None:
        """Begin an iteration."""
        drawn = random.Random(torch.initial_seed())  # noqa: S311
        self.buckets = create_ordered_buckets(self.nparts_lhs, self.nparts_rhs, self.order, generator=drawn)
        self.stats: list[BucketStats] = []


# The original draws from the system's entropy, and takes no other scheduler.
torchbiggraph.train.SingleMachineBucketScheduler = SeededBucketScheduler


def stop_with_parent() -> None:
    """Let a worker end when its parent does, even by SIGKILL."""

    def exit_after(parent: Any) -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=exit_after, args=(multiprocessing.parent_process(),), daemon=True).start()


def train_graph_embedding(imported: Path, settings: BigGraph, *, seed: int, state: Path) -> Trained:
    """Train to the end, from a checkpoint in `state` of the same settings, seed and edges. Raises `InputError` if a
    chunk would have no edge, or more than PyTorch can shuffle."""
    chunks, edges = settings.chunks, ImportedFolder(imported).count_edges(TRAINING)
    fewest, most = int(edges.min()), int(edges.max())
    if chunks > fewest:
        of = "to train on" if edges.size == 1 else f"from one of {len(edges)} partitions to another"
        raise InputError(f"--settings: chunks is {chunks}, but there are {fewest} edges {of}; a chunk needs one.")
    least = -(-most // MOST_EDGES_IN_CHUNK)
    if chunks < least:
        limit = f"the limit of a chunk is {MOST_EDGES_IN_CHUNK:,}"
        raise InputError(f"--settings: chunks is {chunks}, but {most:,} edges need at least {least}: {limit}.")
    kept, parts = TrainingState(state), range(len(edges))
    depends_on = {**as_json(settings), "seed": seed, "edges": fingerprint_of([imported])}
    done = kept.open(depends_on, partitions=len(parts), chunks=settings.chunks)
    iterations = settings.epochs * settings.chunks
    if done:
        report(f"resuming after iteration {done} of {iterations}")
    if done < iterations:
        with torch.random.fork_rng(devices=[]):
            _train(imported, settings, seed=seed, kept=kept, done=done)
    vectors = Vectors([kept.vectors(part, iterations) for part in parts])
    return Trained(vectors=vectors, scores=kept_scores(state, settings.epochs))


def _train(imported: Path, settings: BigGraph, *, seed: int, kept: TrainingState, done: int) -> None:
    graph, config = ImportedFolder(imported), _configuration(settings, imported, kept.url)
    model, trainer = make_model(config), SeededTrainer(config, seed)
    held_out, edges = load_held_out(graph, seed=seed), graph.count_edges(TRAINING)
    started, trained = time.monotonic(), np.zeros(2)  # since the last report: edges, and the sum of their losses
    trainer.begin(done)
    first = int(edges.sum()) * done // settings.chunks
    with progress_bar(of="train", unit="edges", total=int(edges.sum()) * settings.epochs, initial=first) as bar:
        # Each item is a pair of partitions; the last of an iteration comes before its checkpoint is committed.
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
                trained_now = {int(part): each.param_groups[0] for (_, part), each in trainer.entity_optimizers.items()}
                in_memory = {part: group["params"][0].detach().numpy() for part, group in trained_now.items()}
                # The other partitions are written already.
                parts = [in_memory[p] if p in in_memory else kept.vectors(p, iteration) for p in range(len(edges))]
                score = partial(score_batch, Vectors(parts), settings)
                measured = measure(held_out, score, loss_function(settings))
                write_checked_json(score_file(kept.folder, epoch), measured)
            started, trained = time.monotonic(), np.zeros(2)
            trainer.begin(iteration)


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
            # As in training, whenever a vector is looked up.
            functional.embedding(torch.arange(len(rows)), chosen, max_norm=settings.max_norm)
        return compare.prepare(chosen).unsqueeze(0)

    prepared_rows = (prepared(rows) for rows in (*batch.ends, *batch.candidates))
    return [scores.squeeze(0) for scores in compare(*prepared_rows)]


def _configuration(settings: BigGraph, imported: Path, checkpoint: str) -> ConfigSchema:
    """One entity type, and one relation without operator, as in SciNCL; the import has held edges out."""
    return ConfigSchema.from_dict(
        {
            "entity_path": f"file://{imported.resolve() / ENTITIES}",
            "edge_paths": [f"file://{imported.resolve() / TRAINING}"],
            "checkpoint_path": checkpoint,
            "entities": {ENTITY: {"num_partitions": len(ImportedFolder(imported).starts()) - 1}},
            "relations": [{"name": RELATION, "lhs": ENTITY, "rhs": ENTITY, "operator": "none"}],
            "global_emb": False,
            "loss_fn": settings.loss.kind,
            "eval_fraction": 0.0,
            "comparator": settings.comparator,
            "dimension": settings.dimension,
            "num_epochs": settings.epochs,
            "lr": settings.lr,
            "margin": getattr(settings.loss, "margin", 0.0),
            "max_norm": settings.max_norm,
            "batch_size": settings.batch_size,
            "num_batch_negs": settings.batch_negatives,
            "num_uniform_negs": settings.uniform_negatives,
            "num_edge_chunks": settings.chunks,
            "workers": settings.workers,
        }
    )


def _unpack_optional(hint: Any) -> Any:
    """The type T of a hint Optional[T]; `TypeError` for any other hint."""
    arguments = get_args(hint)
    if len(arguments) != 2 or arguments[1] is not NoneType:
        raise TypeError("Not an optional type")
    return arguments[0]


# The original compares hints by identity, which works only while a small cache of Python's typing module keeps them.
torchbiggraph.schema.unpack_optional = _unpack_optional
