"""A static encoder: a table of the vectors of word pieces; that of a text is their weighted mean, of length 1.

A piece that a text has n times weighs log(1 + n), or n (`plain`); unknown ones do not count. model2vec and
sentence-transformers open the folder as well, and take the plain mean.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from scipy.sparse import csr_array
from tokenizers import Tokenizer as Backend
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize

from cocite.core.atomic import read_json, write_json, write_text
from cocite.core.errors import InputError
from cocite.encoder.batch import runs_of
from cocite.encoder.documents import Documents, Numbers, documents_of
from cocite.encoder.model import CARD, NORMALISE, Encoder, embed, write_modules
from cocite.encoder.tokens import Tokenizer, open_tokenizer
from cocite.encoder.word_pieces import special_ends

STATIC = "sentence_transformers.models.StaticEmbedding"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
COUNTS = "counts"
"""The key of the configuration that says how often a piece counts; other libraries do not read it."""
PIECES_AT_ONCE = 2**16
"""Pieces of the texts that are embedded together."""
LEAST_VARIANCE = 1e-6
"""The variance of a component that is kept, as a share of the largest: below it there is little but rounding."""


class PieceTable(nn.Module):
    """The vectors of word pieces, pieces × dimension; that of unknown pieces is not used."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(vectors)
        self.config = SimpleNamespace(hidden_size=vectors.shape[1], model_type="static", vocab_size=len(vectors))

    def forward(self, features: dict[str, Tensor]) -> Tensor:
        """The weighted sum over the pieces of each text, texts × dimension."""
        sums: Tensor = _Sums.apply(self.weight, *(features[name] for name in ("pieces", "starts", "weights")))
        return sums


class _Sums(torch.autograd.Function):
    """The weighted sum over the pieces of each text; its gradient is found without sorting, several times as fast."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, pieces: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(pieces, starts, weights)
        ctx.pieces = len(table)
        return embedding_bag(pieces, table, starts, mode="sum", per_sample_weights=weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        pieces, starts, weights = ctx.saved_tensors
        ends = np.append(starts.numpy(), len(pieces))
        by_text = csr_array((weights.numpy(), pieces.numpy(), ends), shape=(len(starts), ctx.pieces))
        by_piece = by_text.tocsc()
        texts, starts, weights = map(torch.from_numpy, (by_piece.indices, by_piece.indptr[:-1], by_piece.data))
        of_table = embedding_bag(texts, gradients[0], starts, mode="sum", per_sample_weights=weights)
        return of_table, None, None, None


class StaticEncoder(Encoder):
    """A table of word pieces: pieces of texts in, one vector of length 1 for each text out."""

    reads = "bags"
    window = 4096
    tokens_in_batch = PIECES_AT_ONCE

    def __init__(self, vectors: Tensor, tokenizer: Tokenizer, counts: str, dimension: int | None = None) -> None:
        super().__init__(PieceTable(vectors), "mean", tokenizer, dimension=dimension)
        self.counts, self.normalises = counts, True
        of_log = "log(1 + n) for a piece that a text has n times; sentence-transformers and model2vec take n instead"
        of_plain = "n for a piece that a text has n times"
        self.remarks = {"weights of pieces": of_log if counts == "log" else of_plain}

    def forward(self, features: Any) -> Tensor:
        """The vectors of some texts, texts × dimension."""
        vectors: Tensor = self.transformer(features)[:, : self.dimension]
        is_zero = (vectors == 0).all(dim=1, keepdim=True)
        return normalize(torch.where(is_zero, vectors.detach(), vectors), dim=1)  # a zero would have infinite gradients

    def batches(self, lengths: Numbers) -> Iterator[Numbers]:
        """Documents that are embedded together, in their order."""
        return (np.arange(run.start, run.stop) for run in runs_of(lengths, self.tokens_in_batch))

    def features_of(self, documents: Documents, rows: Numbers) -> dict[str, Any]:
        """The distinct known pieces of some texts, one text after the other, their weights, and where each starts."""
        return bags_of(documents, rows, self.tokenizer.unknown, plain=self.counts == "plain")

    def save(self, folder: Path, card: str) -> None:
        """Write the table into a folder that has the tokenizer already."""
        save_static(self.transformer.weight, folder, counts=self.counts, card=card)


def bags_of(
    documents: Documents, rows: Sequence[int] | Numbers, unknown: int | None, *, plain: bool
) -> dict[str, Tensor]:
    """The distinct pieces of some documents, one after the other, their weights, and where each document starts."""
    lengths = documents.lengths[np.asarray(rows, dtype=np.int64)]
    pieces = documents.joined(rows).astype(np.int64)
    keys = np.repeat(np.arange(len(rows)) << 32, lengths) | pieces
    if unknown is not None:
        keys = keys[pieces != unknown]
    keys.sort()
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(first, append=len(keys)).astype(np.float32)
    keys = keys[first]
    return {
        "pieces": torch.from_numpy(keys & 0xFFFFFFFF),
        "starts": torch.from_numpy(np.searchsorted(keys, np.arange(len(rows)) << 32)),
        "weights": torch.from_numpy(counts if plain else np.log1p(counts)),
    }


def is_static(folder: Path) -> bool:
    """Whether the folder of an encoder has a table of word pieces."""
    return any(module["type"].endswith(".StaticEmbedding") for module in read_json(folder / "modules.json"))


def open_static(folder: Path, dimension: int | None = None) -> StaticEncoder:
    """The static encoder in a folder that `save_static` wrote, on the CPU."""
    vectors = load_file(folder / WEIGHTS)["embeddings"]
    return StaticEncoder(vectors, open_tokenizer(folder), read_json(folder / CONFIG)[COUNTS], dimension)


def save_static(vectors: Tensor, folder: Path, *, counts: str, card: str) -> None:
    """Write a table of word pieces, 0 for unknown ones, and its model card into a folder that has the tokenizer."""
    vectors = vectors.detach().clone().contiguous()
    if (unknown := open_tokenizer(folder).unknown) is not None:
        vectors[unknown] = 0
    save_file({"embeddings": vectors}, folder / WEIGHTS)
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": vectors.shape[1]}
    write_json(folder / CONFIG, {**config, "normalize": True, "embedding_dtype": "float32", COUNTS: counts})
    write_modules(folder, [("", STATIC), ("1_Normalize", NORMALISE)])
    write_text(folder / CARD, card)


def vectors_in(source: Path) -> Tensor:
    """The vectors of word pieces in a folder of model2vec or of sentence-transformers, pieces × dimension, float32,
    with weights of pieces and shared rows worked in. Raises `InputError` if there is no table, or more than a
    normalisation follows it."""
    if (source / "modules.json").is_file():
        kinds = [str(module["type"]).rpartition(".")[2] for module in read_json(source / "modules.json")]
        if kinds[:1] != ["StaticEmbedding"] or set(kinds[1:]) - {"Normalize"}:
            allowed = "it must be StaticEmbedding and a Normalize"
            raise InputError(f"{source}: lists the modules {' '.join(kinds)}; {allowed}.")
    path = _file_in(source, WEIGHTS, "the table of word pieces")
    tensors = load_file(path)
    vectors = tensors.get("embedding.weight", tensors.get("embeddings"))
    if vectors is None or vectors.ndim != 2:
        raise InputError(f"{path}: has no table of word pieces (embeddings or embedding.weight); it has {[*tensors]}.")
    vectors = vectors.float()
    if "mapping" in tensors:
        vectors = vectors[tensors["mapping"].long()]
    if "weights" in tensors:
        vectors = vectors * tensors["weights"].float()[:, None]
    if not torch.isfinite(vectors).all():
        raise InputError(f"{path}: has vectors that are not finite.")
    return vectors.contiguous()


def tokenizer_in(source: Path) -> Backend:
    """The tokenizer of such a folder, without special tokens and a limit. Raises `InputError` if it is missing."""
    path = _file_in(source, "tokenizer.json", "by which texts become the pieces of the table")
    backend = Backend.from_file(str(path))
    backend.post_processor = None
    backend.no_truncation()
    backend.no_padding()
    return backend


def save_tokenizer(backend: Backend, folder: Path, max_length: int) -> None:
    """Write the tokenizer of a table, which cuts texts to `max_length` pieces, into its folder."""
    from transformers import PreTrainedTokenizerFast

    model = json.loads(backend.to_str())["model"]
    how: dict[str, Any] = {"model_max_length": max_length}
    unknown = model.get("unk_token") if model.get("unk_id") is None else backend.id_to_token(model["unk_id"])
    if unknown is not None and backend.token_to_id(unknown) is not None:
        how["unk_token"] = unknown
    PreTrainedTokenizerFast(tokenizer_object=backend, **how).save_pretrained(folder)


def counts_in(source: Path) -> str:
    """How often a piece counts in such a folder: as it says if it is ours, and plain in others."""
    path = source / CONFIG
    return read_json(path).get(COUNTS, "plain") if path.is_file() else "plain"


def _file_in(source: Path, name: str, what: str) -> Path:
    places = [source / name, source / "0_StaticEmbedding" / name]
    if not (files := list(filter(Path.is_file, places))):
        raise InputError(f"{source}: has no {name}, {what}.")
    return files[0]


def first_vectors(
    documents_with: NDArray[np.int64], documents: int, dimension: int, seed: int, distilled: Tensor | None = None
) -> Tensor:
    """Vectors of pieces; distilled ones, if any, are filled up with random numbers of variance 1 to the dimension. Each
    is scaled by log((n + 1) / (m + 1)) + 0.1, where m of n documents have the piece."""
    given = torch.empty(len(documents_with), 0) if distilled is None else distilled
    sizes = len(given), dimension - given.shape[1]
    drawn = torch.cat([given, torch.randn(sizes, generator=torch.Generator().manual_seed(seed))], dim=1)
    rarity = np.log((documents + 1) / (documents_with + 1)) + 0.1
    return drawn / dimension**0.5 * torch.from_numpy(rarity.astype(np.float32))[:, None]


def distilled_vectors(encoder: Encoder, occurs: NDArray[np.bool_], dimension: int) -> tuple[Tensor, float]:
    """A vector for each token of a transformer, tokens × at most `dimension`, and the share of the variance they have.
    Each is embedded between the special tokens, and turned into the principal components of those that occur
    (model2vec, Minish Lab, 2024), scaled to variance 1 (Su et al., 2021, arXiv 2103.15316): else a few decide what is
    near."""
    before, after = special_ends(encoder.tokenizer.backend)
    texts = [np.array([*before, token, *after], np.int32) for token in range(len(occurs))]
    vectors = embed(encoder, documents_of(texts))
    vectors -= vectors[occurs].mean(axis=0)
    fitted = vectors[occurs]
    variances, axes = np.linalg.eigh((fitted.T @ fitted).astype(np.float64) / len(fitted))  # the smallest one first
    kept = slice(-min(dimension, int(np.count_nonzero(variances > LEAST_VARIANCE * variances[-1]))), None)
    components = vectors @ (axes[:, kept] / variances[kept] ** 0.5).astype(np.float32)[:, ::-1]
    return torch.from_numpy(np.ascontiguousarray(components)), float(variances[kept].sum() / variances.sum())
