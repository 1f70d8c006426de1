"""The text of a document, and documents as tokens.

A document is its title and abstract, joined by the tokenizer's own separator. Each distinct document is tokenised once,
into one long array on disk that is mapped into memory: a training set of millions of triplets costs memory for
its index only, and a training that goes on after a kill finds its tokens ready.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

AT_ONCE = 1000
"""Texts in one call of the tokenizer, which holds some 100 kB for each, also of what lies behind the last token."""


def joined_text(parts: Iterable[str | None], separator: str) -> str:
    """Title, abstract and what may follow, whichever are not empty, joined by the separator."""
    return separator.join(part.strip() for part in parts if part and part.strip())


def separator_of(tokenizer: Any) -> str:
    """The tokenizer's separator; a space where it has none."""
    return tokenizer.sep_token or " "


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Tokens of documents, one after the other."""

    tokens: NDArray[np.int32]
    """Token ids of all documents."""
    starts: NDArray[np.int64]
    """Where each document starts, and behind them where the last one ends."""

    def __len__(self) -> int:
        """Count the documents."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each document."""
        return np.diff(self.starts)

    def lengths_of(self, rows: Rows) -> NDArray[np.int64]:
        """Tokens of some documents."""
        return self.starts[rows + 1] - self.starts[rows]

    def padded(self, rows: Sequence[int] | Rows, padding: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Token ids and attention mask of some documents, rows × tokens of the longest one."""
        lengths = self.lengths_of(np.asarray(rows, dtype=np.int64))
        mask = (np.arange(lengths.max(initial=1)) < lengths[:, None]).astype(np.int64)
        ids = np.full(mask.shape, padding, dtype=np.int64)
        for line, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            ids[line, :length] = self.tokens[self.starts[row] : self.starts[row] + length]
        return ids, mask


def tokenise(texts: Sequence[str], tokenizer: Any, max_length: int) -> Documents:
    """Tokenise some texts in memory, with the special tokens, cut to `max_length` tokens."""
    tokens = list(_token_ids(texts, tokenizer, max_length))
    starts = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    return Documents(tokens=np.concatenate([np.empty(0, np.int32), *tokens]), starts=starts)


def tokenise_to(folder: Path, texts: Iterator[list[str]], tokenizer: Any, max_length: int) -> None:
    """Tokenise texts, some at a time, into the files of a new folder that `mapped` opens."""
    folder.mkdir(parents=True)
    lengths = [0]
    with (folder / "tokens.bin").open("wb") as file:
        for some in texts:
            for tokens in _token_ids(some, tokenizer, max_length):
                file.write(tokens.tobytes())
                lengths.append(len(tokens))
    np.save(folder / "starts.npy", np.cumsum(lengths, dtype=np.int64))


def mapped(folder: Path) -> Documents:
    """The documents that `tokenise_to` wrote, mapped from disk."""
    return Documents(
        tokens=np.memmap(folder / "tokens.bin", dtype=np.int32, mode="r"),
        starts=np.load(folder / "starts.npy", allow_pickle=False),
    )


def _token_ids(texts: Sequence[str], tokenizer: Any, max_length: int) -> Iterator[NDArray[np.int32]]:
    for start in range(0, len(texts), AT_ONCE):
        encoded = tokenizer(
            list(texts[start : start + AT_ONCE]),
            truncation=True,
            max_length=max_length,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        yield from (np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"])
