"""The tokens of texts by a tokenizer that splits at spaces first: each distinct word is tokenised once.

A tokenizer of BERT treats what stands between two spaces by itself, so the tokens of a text are those of its words, one
after the other. A corpus has far fewer words than it has places for them, so this takes a fraction of the time that
the library needs for whole texts.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from tokenizers import models, normalizers, pre_tokenizers

from cocite.encoder.documents import count_within

WORDS_KEPT, CHARACTERS_KEPT = 2**19, 2**23
"""Distinct words whose tokens are kept, and their characters; a text without spaces is one word."""


class WordPieces:
    """The tokens of texts, word by word; equal to those of the library."""

    def __init__(self, backend: Any, max_length: int) -> None:
        """`backend` is a `tokenizers.Tokenizer` without a limit for which `splits_at_spaces` holds."""
        self._backend = backend
        self._head, self._tail = special_ends(backend)
        self._room = max(0, max_length - len(self._head) - len(self._tail))
        self._row_of: dict[str, int] = {}
        self._characters = 0
        self._starts, self._sizes = np.empty(0, np.int64), np.empty(0, np.int64)
        self._tokens = np.empty(0, np.int32)

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token ids of each text, with special ones."""
        split = pc.split_pattern(pa.array(texts, pa.large_string()), " ")
        words = split.flatten().dictionary_encode()
        rows = self._rows_of(words.dictionary.to_pylist())[words.indices.to_numpy()]
        sizes = self._sizes[rows]
        tokens = self._tokens[np.repeat(self._starts[rows], sizes) + count_within(sizes)]
        ends = np.append(0, np.cumsum(sizes))[split.offsets.to_numpy()].tolist()
        return [
            np.concatenate([self._head, tokens[start : min(end, start + self._room)], self._tail])
            for start, end in pairwise(ends)
        ]

    def _rows_of(self, words: list[str]) -> NDArray[np.int64]:
        """Where each word stands among those that are kept; new ones are tokenised."""
        new = [word for word in words if word not in self._row_of]
        characters = self._characters + sum(map(len, new))
        if len(self._row_of) + len(new) > WORDS_KEPT or characters > CHARACTERS_KEPT:
            self._row_of, new, characters = {}, words, sum(map(len, words))
            self._starts, self._sizes, self._tokens = self._starts[:0], self._sizes[:0], self._tokens[:0]
        if new:
            encoded = [each.ids for each in self._backend.encode_batch_fast(new, add_special_tokens=False)]
            sizes = np.array([len(ids) for ids in encoded], dtype=np.int64)
            self._starts = np.append(self._starts, len(self._tokens) + np.cumsum(sizes) - sizes)
            self._sizes = np.append(self._sizes, sizes)
            self._tokens = np.concatenate([self._tokens, *(np.array(ids, dtype=np.int32) for ids in encoded)])
            self._characters = characters
            self._row_of.update(zip(new, range(len(self._row_of), len(self._sizes)), strict=True))
        return np.fromiter(map(self._row_of.__getitem__, words), dtype=np.int64, count=len(words))


def special_ends(backend: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ids of the special tokens that a text starts and ends with."""
    framed = backend.encode("a")
    of_text = np.flatnonzero(np.array(framed.special_tokens_mask) == 0)
    ids = np.array(framed.ids, dtype=np.int32)
    return ids[: of_text[0]], ids[of_text[-1] + 1 :]


def splits_at_spaces(backend: Any) -> bool:
    """Whether the tokens of a text are those of what stands between its spaces, as a tokenizer of BERT has it.

    Added tokens that take in the space beside them, or that stand in normalised text, do not go with it.
    """
    is_bert = isinstance(backend.normalizer, normalizers.BertNormalizer) and isinstance(
        backend.pre_tokenizer, pre_tokenizers.BertPreTokenizer
    )
    added = backend.get_added_tokens_decoder().values()
    return (
        is_bert
        and isinstance(backend.model, models.WordPiece)
        and not any(
            token.lstrip or token.rstrip or token.single_word or token.normalized or " " in token.content
            for token in added
        )
    )
