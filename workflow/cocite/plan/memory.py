"""Estimates the memory of a training from the sizes of its encoder and of its documents, before it starts.

Most of it is what a step stores for its gradients: some numbers for each token and layer, and some for each pair of
tokens that a head compares. Most of the numbers were measured on a CPU in float32 (docs/encoders.md).
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from cocite.config.encoders import LowRank
from cocite.config.models import TrainingSettings
from cocite.core.atomic import read_json
from cocite.core.errors import InputError
from cocite.core.tables.files import open_table

STEP = 64  # tokens by which sizes of mini-batches differ
PIECES_AT_LEAST = 2**16  # the smallest mini-batches of a static encoder
LIBRARIES_MB = {"cpu": 700, "cuda": 2500}
"""Memory of a process before it has weights. With a GPU, trainings of MiniLM used 2.0 to 2.1 GB outside of it."""
BYTES_OF_A_WEIGHT, BYTES_OF_A_FROZEN_WEIGHT = 20, 4
"""Weight, gradient, the two moments of AdamW, and the copy that is saved; and a weight that does not learn."""
BYTES_OF_A_TOKEN = 135  # for each layer and dimension of the hidden state
BYTES_OF_A_PAIR = 12  # for each layer and head that compares two tokens of a document
GPU_BYTES_OF_A_TOKEN = 50  # in bfloat16 on a GPU, whose attention stores no pairs (44 to 47 with BERT-base)
OF_DECODERS = 2.2
"""Factor on a GPU for decoders, whose layers are wider. Estimated from a decoder in the shape of Qwen3-Embedding-0.6B:
with at most 35,968 tokens at once a batch of 32 triplets took 51 GB, and one of 128 ran out of 79 GB."""
GPU_SHARE = 0.9  # of a GPU's free memory that a training plans with; the rest is lost between blocks
STATIC = "model2vec"  # the type of a static encoder in its folder
BYTES_OF_A_PIECE, BYTES_OF_A_VECTOR = 150, 100  # of a document of a static encoder, and a dimension of its vector
BYTES_OF_A_PLACE = 100
"""For each document that an example names. A training on 10.2 million pairs took 2.8 GB, of which 0.7 are mapped
tokens."""
OF_SPANS = 1.6
"""Factor for spans: their batches have ever other shapes, for which freed memory does not fit. 120 steps of them took
3.5 GB in addition to the weights; documents of the same lengths would take 2.3."""
OF_STEPS = 1.2
"""Factor on a CPU for batches that are in memory as a whole: freed memory is kept, and does not fit later shapes. 150
steps of 32 triplets of 128 tokens by MiniLM took 5.4 to 6.1 GB, and 400 steps 7.1 GB."""
OF_TWO_PASSES = 1.9
"""Factor for documents that are encoded twice, once with their masks: two steps of an encoder of two layers took 1.68
GB, and 1.07 GB if they are encoded once."""
BYTES_OF_A_LOGIT = 10  # for each masked token and token of the vocabulary, which are worked on in blocks
LOGITS_OF_A_BLOCK = 2**25  # as `masking.LOGITS_AT_ONCE`, which is not imported, because it would import torch
WITH_VALIDATION = 1.25  # how many documents a teacher has vectors of, for each that is learned from
DEVIATIONS = 3  # by how many standard deviations the documents of the largest batch exceed those of a usual one
USUAL_SIZES = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30_522}
"""Those of BERT-base, for architectures that call theirs otherwise."""
OTHER_NAMES = {
    **dict.fromkeys(("d_model", "dim"), "hidden_size"),
    **dict.fromkeys(("num_layers", "n_layers"), "num_hidden_layers"),
    **dict.fromkeys(("num_heads", "n_heads"), "num_attention_heads"),
}
"""What T5 and DistilBERT call them."""


def training_memory(
    encoder: Path,
    sets: Sequence[tuple[Path, Path]],
    settings: TrainingSettings,
    *,
    teachers: Sequence[Path] = (),
    processes: int = 1,
    on_gpu: bool = False,
) -> int:
    """Memory of all processes of a training, MB, outside of GPUs. `sets` has the table training_examples and the folder
    of tokens of each set. Raises `FileNotFoundError` if one of the files does not exist yet."""
    for path in (encoder, *chain(*sets), *teachers):
        path.stat()  # Snakemake asks again later if one of its inputs is the missing one
    each = LIBRARIES_MB["cuda" if on_gpu else "cpu"] + _weight_bytes(encoder, settings) / 1e6
    documents = sum(len(_lengths(tokens)) for _, tokens in sets) if teachers else 0
    for teacher in teachers:
        dimension = open_table(teacher, "graph_embeddings").schema_arrow.field("vector").type.list_size
        each += WITH_VALIDATION * documents * dimension * 4 / 1e6
    each += BYTES_OF_A_PLACE * sum(sum(_counts(path, path.stat().st_mtime_ns)[:2]) for path, _ in sets) / 1e6
    step = 0.0 if on_gpu else max(_step_bytes(encoder, *of_set, settings) for of_set in sets)
    return round(processes * each + step / 1e6)


def gpu_memory(encoder: Path, sets: Sequence[tuple[Path, Path]], settings: TrainingSettings, number_format: str) -> int:
    """Memory of a training on its GPU, MB, in a number format; the parameters are those of `training_memory`."""
    step = max(_step_bytes(encoder, *of_set, settings, number_format) for of_set in sets)
    return round((_weight_bytes(encoder, settings) + step) / 1e6)


def mini_batch_tokens(
    memory_mb: int,
    encoder: Path,
    sets: Sequence[tuple[Path, Path]],
    settings: TrainingSettings,
    estimate: Callable[..., int] = training_memory,
    **more: Any,
) -> tuple[int | None, int]:
    """The tokens in memory at once with which a training keeps to its memory, or None for all; and its memory then, MB,
    which exceeds `memory_mb` if not even the longest document fits. `estimate` is `training_memory` or `gpu_memory`."""

    def needed(tokens: int | str) -> int:
        return estimate(encoder, sets, settings.model_copy(update={"mini_batch_tokens": tokens}), **more)

    if (whole := needed("all")) <= memory_mb:
        return None, whole
    longest = max(int(_lengths(tokens).max()) for _, tokens in sets)
    # Each mini-batch of a static encoder makes a gradient of its whole table.
    least = max(longest, PIECES_AT_LEAST) if _sizes(encoder)["model_type"] == STATIC else longest
    most = max(int(_lengths(tokens).sum()) for _, tokens in sets) // STEP + 1
    fits = bisect_left(range(most), True, key=lambda steps: needed(max(least, steps * STEP)) > memory_mb) - 1
    chosen = max(least, fits * STEP)
    return chosen, needed(chosen)


def check_weights(encoder: Path, settings: TrainingSettings, memory_mb: int, processes: int) -> None:
    """Raise if the weights of a training on a CPU, and their gradients and moments, do not fit into its memory."""
    needed = round(processes * (LIBRARIES_MB["cpu"] + _weight_bytes(encoder, settings) / 1e6))
    if needed > memory_mb:
        what = "its weights, and the gradients and moments of AdamW of those that learn"
        raise InputError(f"{encoder}: a training needs {needed:,} MB for {what}, and has {memory_mb:,} MB.")


def shapes_in(folder: Path) -> list[list[int]]:
    """The shapes of the weights in a folder, from the headers of their files."""
    shapes = []
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="numpy") as file:
            shapes += [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    return shapes


def _weight_bytes(encoder: Path, settings: TrainingSettings) -> float:
    """Bytes of a training for the weights of an encoder. Those under low-rank additions do not learn."""
    shapes = shapes_in(encoder)
    weights = sum(map(prod, shapes))
    if not isinstance(settings.trainable, LowRank):
        return float(BYTES_OF_A_WEIGHT * weights)
    added = settings.trainable.rank * sum(sum(shape) for shape in shapes if len(shape) == 2)
    return float(BYTES_OF_A_FROZEN_WEIGHT * weights + BYTES_OF_A_WEIGHT * added)


def _step_bytes(
    encoder: Path, examples: Path, tokens: Path, settings: TrainingSettings, gpu_format: str | None = None
) -> float:
    """Bytes that a step stores for gradients of the documents in memory; of a GPU, those in a number format."""
    sizes, lengths = _sizes(encoder), _lengths(tokens)
    count, others, queries = _counts(examples, examples.stat().st_mtime_ns)
    # An example adds its own documents to a batch, and a share of its query, which others there may have as well.
    of_batch = settings.batch_size * (others / count + 1 / min(settings.together, count / queries))
    if sizes["model_type"] == STATIC:
        pieces = min(settings.tokens_at_once or np.inf, _largest_sum(lengths, of_batch))
        return float(BYTES_OF_A_PIECE * pieces + BYTES_OF_A_VECTOR * sizes["hidden_dim"] * of_batch)
    held, pairs = (_largest_sum(of, of_batch) for of in (lengths, lengths**2))
    if settings.tokens_at_once is not None:  # the longest documents of a batch go through the encoder together
        most = max(settings.tokens_at_once, lengths.max())
        held, pairs = min(held, most), min(pairs, most * lengths.max())
    of_layer = BYTES_OF_A_TOKEN * sizes["hidden_size"] * held + BYTES_OF_A_PAIR * sizes["num_attention_heads"] * pairs
    if gpu_format is not None:  # documents that are not packed are padded to the longest
        held = min(of_batch * lengths.max(), np.inf if settings.tokens_at_once is None else most)
        of_token = GPU_BYTES_OF_A_TOKEN if gpu_format == "bfloat16" else BYTES_OF_A_TOKEN
        of_layer = of_token * (OF_DECODERS if "num_key_value_heads" in sizes else 1) * sizes["hidden_size"] * held
    has_spans = "shortest_span" in open_table(examples, "training_examples").schema_arrow.names
    keeps_freed = settings.tokens_at_once is None and gpu_format is None
    more = OF_SPANS if has_spans else OF_STEPS if keeps_freed else 1.0
    of_step = more * sizes["num_hidden_layers"] * of_layer
    if settings.masked_share is None:
        return float(of_step)
    # Both passes are held, that of the documents with their masks and that of those without, unless one is made again.
    passes = OF_TWO_PASSES if settings.tokens_at_once is None else 1
    logits = min(settings.masked_share * held * sizes["vocab_size"], LOGITS_OF_A_BLOCK)
    return float(passes * of_step + BYTES_OF_A_LOGIT * logits)


def _largest_sum(values: np.ndarray, count: float) -> float:
    """About the largest sum of so many of the values, drawn at random."""
    return float(count * values.mean() + DEVIATIONS * np.sqrt(count) * values.std())


def _sizes(encoder: Path) -> dict[str, Any]:
    """The sizes of an encoder by their usual names."""
    given = read_json(encoder / "config.json")
    return USUAL_SIZES | given | {name: given[other] for other, name in OTHER_NAMES.items() if other in given}


def _lengths(tokens: Path) -> NDArray[np.float64]:
    return np.load(tokens / "lengths.npy", allow_pickle=False).astype(float)


@cache
def _counts(table: Path, changed_at: int) -> tuple[int, int, int]:
    """The examples of a table as it was then, the documents that they name besides queries, and its queries."""
    examples, others, queries, last = 0, 0, 0, None
    for batch in open_table(table, "training_examples").iter_batches(columns=["query", "positives", "negatives"]):
        ids = batch["query"].to_numpy()  # the examples of a query come together
        queries += int(np.count_nonzero(ids[1:] != ids[:-1])) + int(len(ids) > 0 and ids[0] != last)
        examples, last = examples + len(ids), ids[-1] if len(ids) else last
        others += sum(len(batch[name].flatten()) for name in ("positives", "negatives"))
    return examples, others, queries
