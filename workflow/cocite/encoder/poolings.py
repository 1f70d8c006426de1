"""The poolings, which make one vector of the token vectors of a document; torch is imported within the functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.core.atomic import read_json
from cocite.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

FOLDER = "1_Pooling"
"""The folder of the pooling's settings in that of an encoder."""
WITH_PROMPT = "include_prompt"
"""The setting that is false if the tokens of prompts are left out of the pooling."""
MODE = "pooling_mode_"
"""The start of the flags."""
FLAGS = ("pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_max_tokens")
"""Flags that every saved encoder has: sentence-transformers takes the mean where that flag is missing."""


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """How token vectors become the vector of a document."""

    flag: str
    """The setting by which sentence-transformers knows the pooling; if it does not, it refuses to open the encoder."""
    pool: Callable[..., Tensor]
    """A function of the token vectors of some documents (documents × tokens × dimension) and of where there is a token
    (documents × tokens: 1, or 0 for padding), which gives documents × dimension."""
    of_packed: Callable[[Tensor, Tensor], Tensor] | None = None
    """The same of packed documents: their tokens (tokens × dimension), and the start of each document and the end of
    the last. If it is None, packed documents are padded first."""
    by_sentence: bool = False
    """Whether it pools the vectors of sentences: each sentence has its own first token, the mask shows where these are,
    and `pool` also takes the names of the aspects (aspects × dimension; see `layers.AspectNames`)."""


def first_token(hidden: Tensor, mask: Tensor) -> Tensor:
    """The vector of the token that every document starts with, [CLS] in BERT."""
    return hidden[:, 0]


def last_token(hidden: Tensor, mask: Tensor) -> Tensor:
    """The vector of a document's last token, which alone has seen all others in a decoder."""
    import torch

    ends = mask.shape[1] - 1 - mask.flip(1).long().argmax(dim=1)
    return hidden[torch.arange(len(hidden), device=hidden.device), ends]


def maximum(hidden: Tensor, mask: Tensor) -> Tensor:
    """The maximum over the tokens of a document, for each dimension."""
    return hidden.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).amax(dim=1)


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Σ h / n over the n tokens of a document; 0 if there are none."""
    weights = mask.unsqueeze(-1).expand(hidden.shape).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)


def _reduced(by: str, hidden: Tensor, starts: Tensor) -> Tensor:
    """The mean or the maximum of packed documents, in float32."""
    import torch

    return torch.segment_reduce(hidden.float(), by, lengths=starts.diff(), unsafe=True)


def attended_sentences(hidden: Tensor, mask: Tensor, names: Tensor) -> Tensor:
    """The mean over the aspects of Σ softmax(q · s / √d) s over the sentences s of a document, q the aspect's name,
    scaled as attention is (Vaswani et al., 2017). A document without a sentence has no vector: NaN."""
    scores = names @ hidden.transpose(1, 2) / hidden.shape[-1] ** 0.5
    weights = scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf")).softmax(dim=-1)
    return (weights @ hidden).mean(dim=1)


POOLINGS = {
    "cls": Pooling(
        flag="pooling_mode_cls_token", pool=first_token, of_packed=lambda hidden, starts: hidden[starts[:-1]]
    ),
    "last": Pooling(
        flag="pooling_mode_lasttoken", pool=last_token, of_packed=lambda hidden, starts: hidden[starts[1:] - 1]
    ),
    "max": Pooling(flag="pooling_mode_max_tokens", pool=maximum, of_packed=partial(_reduced, "max")),
    "mean": Pooling(flag="pooling_mode_mean_tokens", pool=mean, of_packed=partial(_reduced, "mean")),
    "sentences": Pooling(flag="pooling_mode_sentences", pool=attended_sentences, by_sentence=True),
}
"""The poolings by the names that the configuration has for them."""


def pool_packed(name: str, hidden: Tensor, starts: Tensor) -> Tensor:
    """The vector of each document, documents × dimension, from packed tokens."""
    pooling = POOLINGS[name]
    if pooling.of_packed is not None:
        return pooling.of_packed(hidden, starts)
    hidden = hidden.float()
    return pooling.pool(padded(hidden, starts), padded(hidden.new_ones(len(hidden)), starts))


def padded(packed: Tensor, starts: Tensor) -> Tensor:
    """Packed documents, tokens × …, as documents × tokens of the longest × …, filled with 0."""
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence(packed.split(starts.diff().tolist()), batch_first=True)


def flags_of(name: str) -> dict[str, bool]:
    """The settings of the pooling in the layout of sentence-transformers."""
    own = POOLINGS[name].flag
    return {flag: flag == own for flag in (*FLAGS, own)}


def pooling_of(config: Mapping[str, Any]) -> str | None:
    """The pooling that such settings name, by its flag or by its name; None unless it is one of ours, alone."""
    mode = config.get("pooling_mode")
    modes = [mode] if isinstance(mode, str) else list(mode or ())
    modes = modes or [key.removeprefix(MODE) for key, is_on in config.items() if key.startswith(MODE) and is_on]
    names = (name for name, each in POOLINGS.items() if modes in ([name], [each.flag.removeprefix(MODE)]))
    return next(names, None)


def pooling_in(folder: Path) -> str:
    """The pooling of the encoder in a folder. Raises `InputError` if it is none of ours."""
    if (pooling := pooling_of(read_json(folder / FOLDER / "config.json"))) is None:
        raise InputError(f"{folder / FOLDER}: names no pooling of ours; there are {', '.join(POOLINGS)}.")
    return pooling


def is_by_sentence(name: str) -> bool:
    """Whether the pooling takes the vectors of sentences, and the names of the aspects."""
    return POOLINGS[name].by_sentence
