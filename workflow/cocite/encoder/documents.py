"""Tokenised documents, padded or packed as the transformer takes them; spans may stand for them.

Tokens are mapped from disk. torch, whose import takes seconds, is imported only where tensors are made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.core.randomness import fractions, priorities

if TYPE_CHECKING:
    import torch

Numbers = NDArray[np.int64]

POOLED, POOLED_STARTS = "pooled", "pooled_starts"
"""Input of the pooling among that of the transformer, if the pooling leaves out tokens; see `Documents._pooled`."""
LEFT_OUT = "left_out"
"""The file of what the pooling leaves out in a folder of tokens, if it leaves out any."""
OF_SPANS = ("shortest", "longest", "papers", "roles")
"""The columns of `Spans`."""
ROW = 128
"""Packed rows are a multiple of so many tokens long: products of matrices are fastest so, and memory is reused."""


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Spans of documents (independent cropping; Izacard et al., 2022): consecutive tokens, within a frame."""

    shortest: Numbers
    """Minimum length of each document's span, in tokens without the frame; 0 for a whole document."""
    longest: Numbers
    papers: Numbers
    roles: Numbers
    """Its role in its examples: each role of a paper has its own spans."""
    head: int
    """Tokens of the frame before the span."""
    tail: int
    """Tokens of the frame after it."""

    def chosen(self, rows: Numbers) -> "Spans":
        """Those of some documents."""
        return replace(self, **{name: getattr(self, name)[rows] for name in OF_SPANS})


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Tokens of documents."""

    files: Sequence[NDArray[np.int32]]
    """Token ids, one document after the other."""
    file_of: NDArray[np.int8]
    starts: Numbers
    """Where each document starts in its file."""
    lengths: Numbers
    spans: Spans | None = None
    """Which documents are spans; None if all are whole."""
    offsets: Numbers | None = None
    """Tokens between a document's head and the span that was drawn."""
    whole: Numbers | None = None
    """Tokens of each document before its span was drawn."""
    left_out: Numbers | None = None
    """Tokens at the start of each document that the pooling leaves out, but for its last one; None if it takes all."""

    def __len__(self) -> int:
        """Count the documents."""
        return len(self.starts)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """The token ids of a document."""
        file, start, length = self.files[self.file_of[row]], self.starts[row], self.lengths[row]
        if self.spans is None or self.offsets is None or self.whole is None or length == self.whole[row]:
            return file[start : start + length]
        head, tail, end = self.spans.head, self.spans.tail, start + self.whole[row]
        first = start + head + self.offsets[row]
        span = file[first : first + length - head - tail]
        return np.concatenate([file[start : start + head], span, file[end - tail : end]])

    def joined(self, rows: Iterable[int]) -> NDArray[np.int32]:
        """The token ids of some documents, one after the other."""
        return np.concatenate([np.empty(0, np.int32), *(self[row] for row in rows)])

    def chosen(self, rows: Numbers) -> "Documents":
        """Some documents, in the order of `rows`."""
        names = ("file_of", "starts", "lengths", "offsets", "whole", "left_out")
        taken: dict[str, Any] = {name: of[rows] for name in names if (of := getattr(self, name)) is not None}
        return replace(self, spans=self.spans and self.spans.chosen(rows), **taken)

    def drawn(self, seed: int, epochs: Numbers | int) -> "Documents":
        """The documents with spans by seed, epoch, paper and role: a length is drawn uniformly, then a start."""
        if self.spans is None:
            return self
        spans = self.spans
        columns = (np.broadcast_to(epochs, len(self)), spans.papers, spans.roles)

        def below(bounds: Numbers, what: str) -> Numbers:
            return np.minimum((fractions(priorities(seed, what, *columns)) * bounds).astype(np.int64), bounds - 1)

        content = self.lengths - spans.head - spans.tail
        least, most = np.minimum(spans.shortest, content), np.minimum(spans.longest, content)
        drawn = least + below(most - least + 1, "length of a span")
        offsets = below(content - drawn + 1, "start of a span")
        is_span = (spans.shortest > 0) & (content > 0)
        lengths = np.where(is_span, drawn + spans.head + spans.tail, self.lengths)
        return replace(self, lengths=lengths, offsets=np.where(is_span, offsets, 0), whole=self.lengths)

    def padded(self, rows: Sequence[int] | Numbers, padding: int) -> dict[str, Any]:
        """Input of the transformer: token ids and attention mask of some documents, rows × tokens of the longest."""
        import torch

        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[rows]
        mask = (np.arange(lengths.max(initial=1)) < lengths[:, None]).astype(np.int64)
        ids = np.full(mask.shape, padding, dtype=np.int64)
        ids[mask == 1] = self.joined(rows)
        features = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        return features | self._pooled(rows, lengths, mask.astype(bool))

    def packed(self, rows: Numbers, first_position: int = 0) -> dict[str, Any]:
        """Input of the transformer: token ids in one row that is a multiple of `ROW` long, and where each document
        starts."""
        import torch

        filling = ROW - self.lengths[rows].sum() % ROW
        lengths = np.append(self.lengths[rows], filling)
        ids = np.append(self.joined(rows), np.zeros(filling, dtype=np.int32))
        positions = count_within(lengths)
        positions[-filling:] = 0
        features = {
            "input_ids": torch.from_numpy(ids.astype(np.int64))[None],
            "position_ids": torch.from_numpy(first_position + positions)[None],
            "cu_seq_lens_q": torch.from_numpy(np.append(0, np.cumsum(lengths)).astype(np.int32)),
            "max_length_q": int(lengths.max()),
        }
        return features | self._pooled(rows, lengths, np.ones((1, ids.size), dtype=bool))

    def _pooled(self, rows: Numbers, lengths: Numbers, is_token: NDArray[np.bool_]) -> dict[str, Any]:
        """Which tokens are pooled, in the shape of the input, and where those of each document start and of the last
        one end, if any are left out. `lengths` also has that of the filling; `is_token` tells tokens from padding."""
        if self.left_out is None:
            return {}
        import torch

        left_out = np.zeros(len(lengths), dtype=np.int64)
        left_out[: len(rows)] = np.minimum(self.left_out[rows], np.maximum(self.lengths[rows] - 1, 0))
        pooled = is_token.copy()
        pooled[is_token] = count_within(lengths) >= np.repeat(left_out, lengths)
        starts = np.append(0, np.cumsum(lengths - left_out))
        return {POOLED: torch.from_numpy(pooled), POOLED_STARTS: torch.from_numpy(starts.astype(np.int32))}


def count_within(sizes: Numbers) -> Numbers:
    """0, 1, … n − 1 for each size n, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def moved(value: Any, device: "torch.device") -> Any:
    """All tensors of a value on a device; copied to a GPU from pinned memory, without waiting."""
    import torch

    if isinstance(value, Mapping):
        return {name: moved(each, device) for name, each in value.items()}
    if isinstance(value, list):
        return [moved(each, device) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **moved(vars(value), device))
    if not isinstance(value, torch.Tensor) or device.type != "cuda":
        return value
    return value.pin_memory().to(device, non_blocking=True)


def documents_in(tokens: NDArray[np.int32], lengths: Numbers, left_out: Numbers | None = None) -> Documents:
    """The documents of these lengths, one after the other in the tokens."""
    file_of, starts = np.zeros(len(lengths), dtype=np.int8), np.cumsum(lengths) - lengths
    return Documents(files=[tokens], file_of=file_of, starts=starts, lengths=lengths, left_out=left_out)


def documents_of(tokens: Sequence[NDArray[np.int32]], left_out: Numbers | None = None) -> Documents:
    """The documents with these tokens, in memory."""
    lengths = np.array([len(some) for some in tokens], dtype=np.int64)
    return documents_in(np.concatenate([np.empty(0, np.int32), *tokens]), lengths, left_out)


def open_tokens(folder: Path) -> tuple[Numbers, Documents]:
    """The corpus ids of the documents that `tokenise_table` wrote, and their tokens, mapped from disk."""
    ids, lengths = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("ids", "lengths"))
    path = folder / "tokens.bin"
    tokens = np.memmap(path, dtype=np.int32, mode="r") if path.stat().st_size else np.empty(0, np.int32)
    left_out = folder / f"{LEFT_OUT}.npy"
    return ids, documents_in(tokens, lengths, np.load(left_out, allow_pickle=False) if left_out.is_file() else None)


def joined_documents(parts: Sequence[Documents]) -> Documents:
    """The documents of all parts, each part in its own files."""
    before = np.cumsum([0, *(len(part.files) for part in parts[:-1])])
    file_of = [part.file_of + first for part, first in zip(parts, before, strict=True)]
    spans = next((part.spans for part in parts if part.spans is not None), None)
    if spans is not None:
        filled = ([getattr(part.spans, name, np.zeros(len(part), np.int64)) for part in parts] for name in OF_SPANS)
        columns: dict[str, Any] = dict(zip(OF_SPANS, map(np.concatenate, filled), strict=True))
        spans = replace(spans, **columns)
    left_out = [part.left_out for part in parts if part.left_out is not None]  # of all parts, or of none
    return Documents(
        files=[file for part in parts for file in part.files],
        file_of=np.concatenate(file_of).astype(np.int8),
        starts=np.concatenate([part.starts for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        spans=spans,
        left_out=np.concatenate(left_out) if left_out else None,
    )
