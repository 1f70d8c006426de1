"""Documents as tokens, whole, or as spans that are drawn again for each epoch.

The tokens lie in the order of the documents, in memory or mapped from disk, in one file for each set of examples. A
span is some tokens of a document that follow each other, between the tokens that every document starts and ends with
(independent cropping; Izacard et al., 2022, "Unsupervised dense information retrieval with contrastive learning").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cocite.core.randomness import fractions, priorities

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Of which documents a span stands for the whole, and how long it may be."""

    shortest: Rows
    """Tokens of a document's span at least, without those that every document starts and ends with; 0 where it stands
    whole. A document with fewer stands whole as well."""
    longest: Rows
    """Tokens of its span at most."""
    papers: Rows
    """The paper that each document is of."""
    roles: Rows
    """What it is to its examples: documents of a paper in other roles have spans of their own."""
    head: int
    """Tokens that every document starts with."""
    tail: int
    """Tokens that every document ends with."""

    def chosen(self, rows: Rows) -> "Spans":
        """Those of some documents."""
        columns = {name: getattr(self, name)[rows] for name in ("shortest", "longest", "papers", "roles")}
        return replace(self, **columns)


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Tokens of documents."""

    files: Sequence[NDArray[np.int32]]
    """Token ids, one document after the other."""
    file_of: NDArray[np.int8]
    """Which of the files each document is in."""
    starts: Rows
    """Where each document starts in its file."""
    lengths: Rows
    """Tokens of each document."""
    spans: Spans | None = None
    """Which documents are spans; None where all are whole."""
    offsets: Rows | None = None
    """Tokens between a document's head and the span that was drawn; None where none was."""
    whole: Rows | None = None
    """Tokens of each document before its span was drawn."""

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

    def chosen(self, rows: Rows) -> "Documents":
        """Some documents, in the order of their numbers in `rows`."""
        return Documents(
            files=self.files,
            file_of=self.file_of[rows],
            starts=self.starts[rows],
            lengths=self.lengths[rows],
            spans=None if self.spans is None else self.spans.chosen(rows),
            offsets=None if self.offsets is None else self.offsets[rows],
            whole=None if self.whole is None else self.whole[rows],
        )

    def drawn(self, seed: int, epochs: Rows | int) -> "Documents":
        """The documents with a span for each that is one, by seed, epoch, paper and role alone.

        Its length is drawn evenly from all that are allowed, and then its start from all at which that length fits.
        """
        if self.spans is None:
            return self
        spans = self.spans
        columns = (np.broadcast_to(epochs, len(self)), spans.papers, spans.roles)
        content = self.lengths - spans.head - spans.tail
        least, most = np.minimum(spans.shortest, content), np.minimum(spans.longest, content)
        drawn = least + _below(priorities(seed, "length of a span", *columns), most - least + 1)
        offsets = _below(priorities(seed, "start of a span", *columns), content - drawn + 1)
        is_span = (spans.shortest > 0) & (content > 0)
        lengths = np.where(is_span, drawn + spans.head + spans.tail, self.lengths)
        return replace(self, lengths=lengths, offsets=np.where(is_span, offsets, 0), whole=self.lengths)

    def padded(self, rows: Sequence[int] | Rows, padding: int) -> tuple[Rows, Rows]:
        """Token ids and attention mask of some documents, rows × tokens of the longest one."""
        lengths = self.lengths[np.asarray(rows, dtype=np.int64)]
        mask = (np.arange(lengths.max(initial=1)) < lengths[:, None]).astype(np.int64)
        ids = np.full(mask.shape, padding, dtype=np.int64)
        for line, row in enumerate(rows):
            ids[line, : lengths[line]] = self[row]
        return ids, mask


def _below(numbers: NDArray[np.uint64], bounds: Rows) -> Rows:
    """Random 64-bit numbers as whole numbers below the bounds, each of which is at least 1."""
    return np.minimum((fractions(numbers) * bounds).astype(np.int64), bounds - 1)


def documents_in(tokens: NDArray[np.int32], lengths: Rows) -> Documents:
    """The documents of these lengths, one after the other in the tokens."""
    ends = np.cumsum(lengths)
    return Documents(
        files=[tokens], file_of=np.zeros(len(lengths), dtype=np.int8), starts=ends - lengths, lengths=lengths
    )


def documents_of(tokens: Sequence[NDArray[np.int32]]) -> Documents:
    """The documents with these tokens, in memory."""
    lengths = np.array([len(some) for some in tokens], dtype=np.int64)
    return documents_in(np.concatenate([np.empty(0, np.int32), *tokens]), lengths)


def joined_documents(parts: Sequence[Documents]) -> Documents:
    """The documents of all parts, each part in files of its own."""
    before = np.cumsum([0, *(len(part.files) for part in parts[:-1])])
    file_of = [part.file_of + first for part, first in zip(parts, before, strict=True)]
    return Documents(
        files=[file for part in parts for file in part.files],
        file_of=np.concatenate(file_of).astype(np.int8),
        starts=np.concatenate([part.starts for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        spans=_joined_spans(parts),
    )


def _joined_spans(parts: Sequence[Documents]) -> Spans | None:
    given = [part.spans for part in parts if part.spans is not None]
    if not given:
        return None

    def joined(name: str) -> Rows:
        columns = (
            np.zeros(len(part), dtype=np.int64) if part.spans is None else getattr(part.spans, name) for part in parts
        )
        return np.concatenate(list(columns))

    columns = {name: joined(name) for name in ("shortest", "longest", "papers", "roles")}
    return Spans(**columns, head=given[0].head, tail=given[0].tail)
