"""An encoder, its folder, and the vectors it gives to tokenised documents.

Linear maps and a scaling to length 1 may follow its transformer and pooling. sentence-transformers and transformers
read the folder; it is opened here without the former, whose import takes longer than embedding a small benchmark.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from cocite.config.encoders import EncoderSettings
from cocite.core.atomic import read_json, write_json, write_text
from cocite.core.errors import InputError, is_environment_error
from cocite.core.gpus import Precision, computes_in
from cocite.core.memory import total_memory
from cocite.core.randomness import derive_seed
from cocite.encoder import poolings
from cocite.encoder.batch import batches_of_like_length
from cocite.encoder.documents import POOLED, POOLED_STARTS, Documents, Numbers, moved
from cocite.encoder.layers import DENSE, WEIGHTS, AspectNames, open_names, read_dense, save_dense
from cocite.encoder.tokens import Tokenizer, open_tokenizer
from cocite.plan.memory import LIBRARIES_MB, shapes_in

Features = Mapping[str, Any]
"""Input of the transformer: `Documents.padded` or `Documents.packed`."""

LIBRARY = "sentence_transformers.models"
TRANSFORMER, POOLING, NORMALISE = f"{LIBRARY}.Transformer", f"{LIBRARY}.Pooling", f"{LIBRARY}.Normalize"
CARD = "README.md"
ADAPTERS = "adapters"
"""Folder of its adapters; see the module `adapters`."""
WITH_DECODER = ("t5", "mt5", "umt5")
"""Types of transformers that have a decoder as well, which is left out."""
TOKENS_IN_BATCH = {"cpu": 2048, "cuda": 65_536}
"""Tokens of a batch that is embedded, with padding: on a CPU to stay in its caches, on a GPU to fill it."""

FEW_ROWS = 4
"""Rows of a matrix from which on the product of each does not depend on how many there are (measured with MKL)."""


class Encoder(nn.Module):
    """A transformer and a pooling: tokens of documents in, one vector for each out."""

    reads: ClassVar[Literal["tokens", "bags"]] = "tokens"
    """Whether the order of tokens counts."""
    window: ClassVar[int] = 16_384
    """Documents that are in memory together while tables are embedded, and sorted by length together."""

    def __init__(
        self, transformer: Any, pooling: str, tokenizer: Tokenizer, dimension: int | None = None, dense: Any = None
    ) -> None:
        super().__init__()
        self.transformer, self.pooling, self.tokenizer = transformer, pooling, tokenizer
        self.dense: nn.Sequential | None = dense
        self.computes_in = torch.float32
        """Data type of the products of matrices; see `computing`."""
        self.dimension: int = dimension or self.whole
        """Length of its vectors, which are cut if it is less than `whole`."""
        self.normalises = False
        """Whether its vectors have length 1."""
        self.mixes = False
        """Whether weights in float32 learn within a transformer that is held in another data type."""
        self.adapter: Any = None
        """The `adapters.Adapter` that is switched on, if any, and its hooks in the layers."""
        self.hooks: list[RemovableHandle] = []
        self.names: AspectNames | None = None
        """The names of the aspects, if its pooling is by sentence."""
        self.remarks: dict[str, str] = {}
        """Further rows of its card."""

    @property
    def tokens_in_batch(self) -> int:
        """Tokens that are embedded together."""
        return TOKENS_IN_BATCH[self.device.type]

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.parameters()).device

    @property
    def whole(self) -> int:
        """Length of its vectors before any cut."""
        last: Any = None if self.dense is None else self.dense[-1]
        return self.transformer.config.hidden_size if last is None else last.linear.out_features

    @property
    def first_position(self) -> int:
        """Position of a document's first token: RoBERTa counts from behind the padding's number."""
        sizes = self.transformer.config
        return sizes.pad_token_id + 1 if "roberta" in sizes.model_type else 0

    def features_of(self, documents: Documents, rows: Numbers) -> dict[str, Any]:
        """What `forward` takes of some documents."""
        return documents.padded(rows, self.tokenizer.padding)

    def batches(self, lengths: Numbers) -> Iterator[Numbers]:
        """Documents that are embedded together. On a CPU those of a batch have the same length (`embed_alike`)."""
        return batches_of_like_length(lengths, self.tokens_in_batch, equal=self.device.type == "cpu")

    def save(self, folder: Path, card: str) -> None:
        """Write the weights and the model card into a folder that has the tokenizer already."""
        pools_prompts, max_length = self.tokenizer.reading.pools_prompts, self.tokenizer.max_length
        how: dict[str, Any] = {"behind": self.dense, "normalises": self.normalises, "pools_prompts": pools_prompts}
        save_encoder(self.transformer, folder, pooling=self.pooling, max_length=max_length, card=card, **how)
        if self.names is not None:
            save_file(self.names.state_dict(), folder / poolings.FOLDER / WEIGHTS)

    def read(self, features: Features) -> Tensor:
        """The vectors of tokens, before any pooling, in the shape of the input × width."""
        given = {name: each for name, each in features.items() if name not in (POOLED, POOLED_STARTS)}
        tokens: Tensor = self.transformer(**given).last_hidden_state
        return tokens

    def forward(self, features: Features) -> Tensor:
        """The vectors of some documents, documents × dimension, pooled in float32."""
        tokens = self.read(features).float()
        packed = "cu_seq_lens_q" in features
        if self.names is not None:
            vectors = self.names.pool(self.transformer, features, tokens)
        elif POOLED in features:
            vectors = poolings.pool_packed(self.pooling, tokens[features[POOLED]], features[POOLED_STARTS])
        elif packed:
            vectors = poolings.pool_packed(self.pooling, tokens[0], features["cu_seq_lens_q"])
        else:
            vectors = poolings.POOLINGS[self.pooling].pool(tokens, features["attention_mask"])
        vectors = vectors[: -1 if packed else None]  # the last packed document is the filling
        vectors = (vectors if self.dense is None else self.dense(vectors))[:, : self.dimension]
        return nn.functional.normalize(vectors, dim=1) if self.normalises else vectors


def open_encoder(
    folder: Path, precision: Precision = "float32", dimension: int | None = None, *, reduced: bool = False
) -> Encoder:
    """The encoder in a folder, on the GPU if there is one and it is a transformer. If `reduced`, the weights of the
    transformer are in the data type that it computes in: they take less memory, and cannot learn. Raises `InputError`
    if the folder is not that of an encoder, its vectors are shorter than `dimension`, or memory is too small."""
    from cocite.encoder import static

    if not (folder / "modules.json").is_file():
        raise InputError(f"{folder}: is not the folder of an encoder; it has no modules.json.")
    with readable(folder):
        if static.is_static(folder):
            encoder: Encoder = static.open_static(folder, dimension)
        else:
            pooling, tokenizer = poolings.pooling_in(folder), open_tokenizer(folder)
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            number_format = computes_in(precision, device)
            transformer = open_transformer(folder, number_format if reduced else torch.float32)
            maps = [folder / each["path"] for each in read_json(folder / "modules.json") if each["type"] == DENSE]
            behind = nn.Sequential(*map(read_dense, maps)) if maps else None
            encoder = Encoder(transformer, pooling, tokenizer, dimension, behind)
            encoder.computes_in, encoder.normalises = number_format, is_normalised(folder)
            if poolings.is_by_sentence(pooling):
                encoder.names = open_names(folder, transformer.config.hidden_size, tokenizer)
            encoder.to(device)
        if encoder.dimension > encoder.whole:
            raise InputError(f"{folder}: gives vectors of {encoder.whole} dimensions, and {dimension} are to be kept.")
    return encoder


def open_transformer(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The transformer in the folder of an encoder. Raises `InputError` if memory is too small for it."""
    check_memory(folder, folder, dtype)
    return library_class(read_json(folder / "config.json")["model_type"]).from_pretrained(
        folder, use_safetensors=True, dtype=dtype, local_files_only=True, trust_remote_code=False
    )


def check_memory(folder: Path, source: Path, dtype: torch.dtype = torch.float32) -> None:
    """Raise if this machine has less memory than the weights in a folder, which are those of `source`, take."""
    numbers = sum(math.prod(shape) for shape in shapes_in(folder))
    needed, total = LIBRARIES_MB["cpu"] + numbers * dtype.itemsize // 10**6, total_memory()
    if needed > total:
        what = f"its {numbers:,} weights need {needed:,} MB in {str(dtype).removeprefix('torch.')}"
        raise InputError(f"{source}: {what}, and this machine has {total:,} MB.")


def library_class(kind: str) -> Any:
    """The class of transformers that opens an encoder of this type."""
    # An import takes seconds, which a static encoder does without.
    from transformers import AutoModel, AutoModelForTextEncoding
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return AutoModelForTextEncoding if kind in WITH_DECODER else AutoModel


def is_normalised(folder: Path) -> bool:
    """Whether the vectors of the encoder in a folder have length 1."""
    return any(module["type"] == NORMALISE for module in read_json(folder / "modules.json"))


def kept_of(settings: EncoderSettings) -> dict[str, Any]:
    """What `save_encoder` takes of the settings of an encoder."""
    normalises = bool(settings.normalise)
    return {"pooling": settings.known_pooling, "normalises": normalises, "max_length": settings.max_length}


def write_modules(folder: Path, modules: Sequence[tuple[str, str]]) -> None:
    """Write the folders and types of the modules of an encoder, in their order."""
    numbered = enumerate(modules)
    listed = [{"idx": at, "name": str(at), "path": path, "type": kind} for at, (path, kind) in numbered]
    write_json(folder / "modules.json", listed)


def save_encoder(
    transformer: Any,
    folder: Path,
    *,
    pooling: str,
    behind: nn.Sequential | None = None,
    normalises: bool = False,
    pools_prompts: bool = True,
    max_length: int,
    card: str,
) -> None:
    """Write a transformer, what follows it, and a model card; a tokenizer is saved by itself."""
    transformer.save_pretrained(folder)
    modules = [("", TRANSFORMER), (poolings.FOLDER, POOLING)]
    for dense in behind or ():
        modules.append((f"{len(modules)}_Map", DENSE))
        save_dense(dense, folder / modules[-1][0])
    modules += [(f"{len(modules)}_Normalize", NORMALISE)] * normalises
    write_modules(folder, modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})
    sizes = {"word_embedding_dimension": transformer.config.hidden_size}
    prompts = {} if pools_prompts else {poolings.WITH_PROMPT: False}
    write_json(folder / poolings.FOLDER / "config.json", sizes | poolings.flags_of(pooling) | prompts)
    write_text(folder / CARD, card)


@contextmanager
def readable(folder: Path, use: str = "be opened as an encoder") -> Iterator[None]:
    """Raise `InputError` for whatever the libraries raise in the block, apart from errors of the environment."""
    try:
        yield
    except (InputError, MemoryError, torch.OutOfMemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic within tokenizers is no Exception
        if is_environment_error(error):
            raise
        reason = " ".join(str(error).split())[:300]
        if not isinstance(error, OSError | ValueError | RuntimeError):
            reason = f"{type(error).__name__}: {reason}"
        raise InputError(f"{folder}: cannot {use}: {reason}") from error


def embed(encoder: Encoder, documents: Documents) -> NDArray[np.float32]:
    """The vectors of documents, documents × dimension, in their order."""
    encoder.eval()
    vectors = np.empty((len(documents), encoder.dimension), dtype=np.float32)
    for rows in encoder.batches(documents.lengths):
        vectors[rows] = embed_alike(encoder, documents, rows)
    return vectors


def embed_alike(encoder: Encoder, documents: Documents, rows: Numbers) -> NDArray[np.float32]:
    """The vectors of the documents of one of the encoder's batches, rows × dimension. On one thread of a CPU they
    depend on no other document: there is no padding, and a batch of few tokens is repeated, as products of few rows
    differ."""
    if encoder.reads == "tokens":
        rows_of_each = 1 if encoder.dense is not None else max(1, int(documents.lengths[rows[0]]))
        repeated = np.resize(rows, max(len(rows), -(-FEW_ROWS // rows_of_each)))
        return embed_batch(encoder, documents, repeated)[: len(rows)]
    return embed_batch(encoder, documents, rows)


def embed_batch(encoder: Encoder, documents: Documents, rows: Numbers) -> NDArray[np.float32]:
    """The vectors of some documents, computed together, rows × dimension."""
    with torch.inference_mode(), computing(encoder):
        features = moved(encoder.features_of(documents, rows), encoder.device)
        return encoder(features).float().cpu().numpy()


@contextmanager
def drawing(seed: int, *names: str) -> Iterator[None]:
    """Let torch draw from a seed in the block, derived for this use, and go on as before after it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, *names))
        yield


def computing(encoder: Encoder) -> torch.autocast:
    """Let an encoder with weights in float32, all or some, compute in its own data type, for the block."""
    in_float32 = encoder.mixes or next(encoder.parameters()).dtype == torch.float32
    enabled = encoder.computes_in != torch.float32 and in_float32
    return torch.autocast(encoder.device.type, dtype=torch.bfloat16, enabled=enabled)
