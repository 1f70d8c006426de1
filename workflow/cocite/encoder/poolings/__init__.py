"""The poolings, a module each, which make one vector of the token vectors of a document.

The first sentence of a module's docstring says what the pooling is. `pool(hidden, mask)` takes the token vectors of
some documents (documents × tokens × dimension) and where there is a token (documents × tokens: 1, or 0 for
padding); it gives documents × dimension. `SAVED_AS` is the flag by which sentence-transformers knows the same pooling;
without one, that library refuses to open the encoder.

A module may have `pool_packed(hidden, starts)` as well, for documents one after the other: `hidden` is tokens ×
dimension, and `starts` has the start of each document and the end of the last. Without it, packed documents are padded
first. torch is imported only inside the functions.

A module with `BY_SENTENCE = True` pools the vectors of sentences: each sentence has its own first token, the mask says
where these are, and `pool` also takes the names of the aspects (aspects × dimension; see `layers.AspectNames`).
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.config.plugins import modules
from cocite.core.atomic import read_json
from cocite.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor as Tensor
else:
    Tensor = Any

FOLDER = "1_Pooling"
"""The folder of the pooling's settings in that of an encoder."""
FLAGS = ("pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_max_tokens")
"""Flags that every saved encoder has: sentence-transformers takes the mean where that flag is missing."""


def poolings() -> dict[str, str]:
    """The poolings by name, with the first sentence about each; no module is imported."""
    return modules(__name__)


def flags_of(name: str) -> dict[str, bool]:
    """The settings of the pooling in the layout of sentence-transformers."""
    return {flag: flag == _flag(name) for flag in (*FLAGS, _flag(name))}


def pooling_of(config: Mapping[str, Any]) -> str | None:
    """The pooling that such settings name, by its flag or by its name; None unless it is one of ours."""
    named = [name for name in poolings() if config.get(_flag(name)) or config.get("pooling_mode") == name]
    return named[0] if len(named) == 1 else None


def pooling_in(folder: Path) -> str:
    """The pooling of the encoder in a folder. Raises `InputError` where it is none of ours."""
    pooling = pooling_of(read_json(folder / FOLDER / "config.json"))
    if pooling is None:
        raise InputError(f"{folder / FOLDER}: names no pooling of ours; there are {', '.join(poolings())}.")
    return pooling


def is_by_sentence(name: str) -> bool:
    """Whether the pooling takes the vectors of sentences, and the names of the aspects."""
    return getattr(_module(name), "BY_SENTENCE", False)


def pool(name: str, hidden: Tensor, mask: Tensor, *names: Tensor) -> Tensor:
    """The vector of each document, documents × dimension, from padded tokens."""
    return _module(name).pool(hidden, mask, *names)


def pool_packed(name: str, hidden: Tensor, starts: Tensor) -> Tensor:
    """The vector of each document, documents × dimension, from packed tokens."""
    if hasattr(_module(name), "pool_packed"):
        return _module(name).pool_packed(hidden, starts)
    hidden = hidden.float()
    return pool(name, padded(hidden, starts), padded(hidden.new_ones(len(hidden)), starts))


def padded(packed: Tensor, starts: Tensor) -> Tensor:
    """Packed documents, tokens × …, as documents × tokens of the longest × …, filled with 0."""
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence(packed.split(starts.diff().tolist()), batch_first=True)


def _flag(name: str) -> str:
    return getattr(_module(name), "SAVED_AS", f"pooling_mode_{name}")


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")
