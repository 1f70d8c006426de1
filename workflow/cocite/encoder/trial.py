"""A trial of an encoder: it embeds the longest text, and texts with every special and added token.

Encoders fail in many ways that their settings do not show: positions that start behind the padding, tokens without
embeddings, tokenizers without an unknown token, architectures that take something else than token ids. All of them fail
here, before anything else is computed.
"""

from bisect import bisect_left
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.encoder.documents import documents_of
from cocite.encoder.model import Encoder, embed
from cocite.encoder.tokens import Tokenizer

PLAIN = "Bees gather nectar, Ωmega Ж 字 \U000f1234 \U0001f41d 42%."
"""Words, and characters that many vocabularies lack."""
DIFFERENT = ("Bees", "Bees gather nectar")
"""Texts that no encoder gives the same vector, apart from rounding, even one that knows none of their words."""


def try_out(encoder: Encoder) -> None:
    """Embed texts that an encoder may fail on. Raises `InputError` if it reads fewer tokens than its tokenizer gives.

    Other failures are raised as the libraries raise them.
    """
    tokenizer = encoder.tokenizer
    _check_ids(encoder)
    longest = _longest(encoder)
    try:
        vectors = embed(encoder, documents_of([*tokenizer([*DIFFERENT, *_texts(tokenizer)]), longest]))
    except Exception as error:
        reads = bisect_left(range(1, len(longest) + 1), True, key=lambda end: not _reads(encoder, longest[:end]))
        if not 0 < reads < len(longest):
            raise
        raise InputError(f"Setting max_length is {len(longest)}; the encoder reads at most {reads} tokens.") from error
    if vectors.shape[1] != encoder.dimension:
        raise ValueError(f"its vectors have {vectors.shape[1]} dimensions, and its settings say {encoder.dimension}")
    if not np.isfinite(vectors).all():
        raise ValueError("its vectors are not finite")
    if np.allclose(vectors[0], vectors[1], rtol=1e-5, atol=0):
        raise ValueError(f"it gives {DIFFERENT[0]!r} and {DIFFERENT[1]!r} the same vector")


def _check_ids(encoder: Encoder) -> None:
    """Raise if the tokenizer gives a token that has no embedding."""
    rows = encoder.transformer.get_input_embeddings().weight.shape[0]
    token, id = max(encoder.tokenizer.backend.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1])
    if id >= rows:
        raise ValueError(
            f"its tokenizer gives {token!r} the id {id}, and it has embeddings of {rows} tokens; resize them "
            "(resize_token_embeddings of transformers), or remove the tokens that were added"
        )


def _longest(encoder: Encoder) -> NDArray[np.int32]:
    """The tokens of a text as long as texts can be, none of which the encoder takes for padding."""
    [tokens] = encoder.tokenizer([PLAIN])
    padding = (encoder.tokenizer.padding, getattr(encoder.transformer.config, "pad_token_id", None))
    return np.resize([token for token in tokens if token not in padding], encoder.tokenizer.max_length).astype(np.int32)


def _texts(tokenizer: Tokenizer) -> list[str]:
    """A text that is cut, and texts that have every special and added token between them."""
    added = [token.content for token in tokenizer.backend.get_added_tokens_decoder().values()]
    size = max(1, tokenizer.max_length // 2)
    parts = (added[start : start + size] for start in range(0, len(added), size))
    return [" ".join([PLAIN] * tokenizer.max_length), *(" ".join(part) for part in parts)]


def _reads(encoder: Encoder, tokens: NDArray[np.int32]) -> bool:
    with suppress(Exception):
        embed(encoder, documents_of([tokens]))
        return True
    return False
