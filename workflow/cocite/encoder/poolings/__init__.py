"""The poolings, a module each, which make one vector of the token vectors of a document.

The first sentence of a module's docstring says what the pooling is. `pool(hidden, mask)` takes the token vectors of
some documents (documents × tokens × dimension) and where there is a token (documents × tokens: 1, or 0 for
padding); it gives documents × dimension. `SAVED_AS` is the flag by which sentence-transformers knows the same pooling;
without one, that library refuses to open the encoder.

A module may have `pool_packed(hidden, starts)` as well, for documents that lie one after the other without padding:
`hidden` is tokens × dimension, and `starts` says where each document starts and, at the end, where the last one ends.
Without it, packed documents are padded first. torch is imported inside the functions only, so that a pooling can be
looked up without it.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cocite.config.plugins import modules

if TYPE_CHECKING:
    from torch import Tensor

FLAGS = ("pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_max_tokens")
"""Flags that every saved encoder has: sentence-transformers takes the mean where that flag is missing."""


def poolings() -> dict[str, str]:
    """The poolings by name, with the first sentence about each; no module is imported."""
    return modules(__name__)


def flags_of(name: str) -> dict[str, bool]:
    """What says in the layout of sentence-transformers that this is the pooling."""
    return {flag: flag == _flag(name) for flag in (*FLAGS, _flag(name))}


def pooling_of(config: Mapping[str, Any]) -> str | None:
    """The pooling that such a configuration names, by its flag or by its name; None unless it is one of ours."""
    named = [name for name in poolings() if config.get(_flag(name)) or config.get("pooling_mode") == name]
    return named[0] if len(named) == 1 else None


def pool(name: str, hidden: "Tensor", mask: "Tensor") -> "Tensor":
    """The vector of each document, documents × dimension, from padded tokens."""
    vectors: Tensor = _module(name).pool(hidden, mask)
    return vectors


def pool_packed(name: str, hidden: "Tensor", starts: "Tensor") -> "Tensor":
    """The vector of each document, documents × dimension, from packed tokens."""
    if hasattr(_module(name), "pool_packed"):
        vectors: Tensor = _module(name).pool_packed(hidden, starts)
        return vectors
    from torch.nn.utils.rnn import pad_sequence

    documents = hidden.float().split(starts.diff().tolist())
    mask = pad_sequence([document.new_ones(len(document)) for document in documents], batch_first=True)
    return pool(name, pad_sequence(documents, batch_first=True), mask)


def _flag(name: str) -> str:
    flag: str = getattr(import_module(f"{__name__}.{name}"), "SAVED_AS", f"pooling_mode_{name}")
    return flag


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")
