"""The tokens of texts by a tokenizer that splits at spaces first: each distinct word is tokenised once.

Within a word, a tokenizer of BERT treats punctuation marks and what is between them by themselves. A corpus has few
distinct words, so this takes a fraction of the time that the library needs for whole texts.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from tokenizers import models, normalizers, pre_tokenizers

from cocite.encoder.documents import Numbers

WORDS_KEPT, CHARACTERS_KEPT = 2**19, 2**23
"""Distinct words whose tokens are kept, and their characters; a text without spaces is one word."""
PARTS_IN_CALL = 64
"""Parts that the library takes as the words of one text, which costs it less than a text for each."""
PUNCTUATION = r"[!-/:-@\[-`{-~]"

Pieces = tuple[Numbers, Numbers, NDArray[np.int32]]
"""Where the tokens of each of some words start, how many there are, and the tokens."""


class WordPieces:
    """The tokens of texts, word by word, by a `tokenizers.Tokenizer` without a limit that `splits_at_spaces`."""

    def __init__(self, backend: Any, max_length: int) -> None:
        self._backend = backend
        self._head, self._tail = special_ends(backend)
        self._room = max(0, max_length - len(self._head) - len(self._tail))
        added = sorted((token.content for token in backend.get_added_tokens_decoder().values()), key=len, reverse=True)
        self._parts = f"({'|'.join([*map(re.escape, added), PUNCTUATION])})"
        self._row_of: dict[str, int] = {}
        self._characters = 0
        self._starts, self._sizes = np.empty(0, np.int64), np.empty(0, np.int64)
        self._tokens = np.empty(0, np.int32)

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token ids of each text, with special ones."""
        tokens, ends = _joined(pa.array(texts, pa.large_string()), self._of_words)
        return [
            np.concatenate([self._head, tokens[start : min(end, start + self._room)], self._tail])
            for start, end in pairwise(ends.tolist())
        ]

    def _of_words(self, words: list[str]) -> Pieces:
        """The tokens of words, which are kept; new ones are tokenised."""
        rows = np.fromiter(map(self._row_of.get, words, repeat(-1)), dtype=np.int64, count=len(words))
        new = [words[place] for place in np.flatnonzero(rows < 0).tolist()]
        characters = self._characters + sum(map(len, new))
        if len(self._row_of) + len(new) > WORDS_KEPT or characters > CHARACTERS_KEPT:
            self._row_of, new, characters = {}, words, sum(map(len, words))
            rows[:], self._starts, self._sizes, self._tokens = -1, self._starts[:0], self._sizes[:0], self._tokens[:0]
        if new:
            rows[rows < 0] = np.arange(len(self._sizes), len(self._sizes) + len(new))
            parts = pc.replace_substring_regex(pa.array(new, pa.large_string()), self._parts, r" \1 ")
            tokens, ends = _joined(parts, self._of_parts)
            self._row_of.update(zip(new, range(len(self._row_of), len(self._row_of) + len(new)), strict=True))
            self._starts = np.append(self._starts, len(self._tokens) + ends[:-1])
            self._sizes = np.append(self._sizes, np.diff(ends))
            self._tokens = np.append(self._tokens, tokens)
            self._characters = characters
        return self._starts[rows], self._sizes[rows], self._tokens

    def _of_parts(self, parts: list[str]) -> Pieces:
        """The tokens of parts of words, by the library."""
        texts = [parts[start : start + PARTS_IN_CALL] for start in range(0, len(parts), PARTS_IN_CALL)]
        encoded = self._backend.encode_batch(texts, is_pretokenized=True, add_special_tokens=False)
        tokens = np.concatenate([np.array(each.ids, dtype=np.int32) for each in encoded])
        of_parts = [np.array(each.word_ids, np.int64) + at * PARTS_IN_CALL for at, each in enumerate(encoded)]
        sizes = np.bincount(np.concatenate(of_parts), minlength=len(parts))
        return np.cumsum(sizes) - sizes, sizes, tokens


def _joined(texts: pa.Array, pieces_of: Callable[[list[str]], Pieces]) -> tuple[NDArray[np.int32], Numbers]:
    """The tokens of texts, by those of each distinct word, and where each text starts and the last one ends."""
    split = pc.split_pattern(texts, " ")
    words = split.flatten().dictionary_encode()
    places = words.indices.to_numpy()
    starts, sizes, tokens = pieces_of(words.dictionary.to_pylist())
    sizes = sizes[places]
    ends = np.append(0, np.cumsum(sizes))
    tokens = tokens[np.arange(ends[-1]) + np.repeat(starts[places] - ends[:-1], sizes)]
    return tokens, ends[split.offsets.to_numpy()]


def special_ends(backend: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ids of the special tokens that a text starts and ends with."""
    framed = backend.encode("a")
    of_text = np.flatnonzero(np.array(framed.special_tokens_mask) == 0)
    ids = np.array(framed.ids, dtype=np.int32)
    return ids[: of_text[0]], ids[of_text[-1] + 1 :]


def splits_at_spaces(backend: Any) -> bool:
    """Whether the tokens of a text are those of what is between its spaces, as a tokenizer of BERT has it."""
    added = backend.get_added_tokens_decoder().values()
    return (
        isinstance(backend.normalizer, normalizers.BertNormalizer)
        and isinstance(backend.pre_tokenizer, pre_tokenizers.BertPreTokenizer)
        and isinstance(backend.model, models.WordPiece)
        and not any(each.lstrip or each.rstrip or each.single_word or each.normalized for each in added)
        and not any(" " in each.content for each in added)
    )
