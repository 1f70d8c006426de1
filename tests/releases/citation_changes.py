"""Which citations change between two releases, and how: all that real diffs are known to do.

A citation, one paper citing another, may have several records, its copies, each with a key of its own: they change and
go one by one, so that a citation is no longer influential, or loses an intent, when one of its copies does. A
record may also come to speak of another citation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Self

import numpy as np
from tests.releases.paper_changes import PaperChanges
from tests.releases.revision import (
    Edit,
    Ints,
    Lots,
    Mask,
    Revision,
    Touched,
    choose_models,
    keep,
    sample,
    with_fields,
)

from cocite.config.aspects import INTENTS
from cocite.demo.shards import Record

_UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class CitationColumns:
    """What the choice of changes must know of each record of `citations`."""

    key: Ints
    citing: Ints
    cited: Ints
    """The cited paper, or -1 where it is unknown."""
    influential: Ints
    """0 or 1."""
    intents: Ints
    """A bit for each of `INTENTS`."""

    @classmethod
    def of(cls, rows: Iterable[Record]) -> Self:
        """The columns of a dataset."""
        rows_read = [
            (row["citationid"], row["citingcorpusid"], _cited(row), int(row["isinfluential"]), _intent_bits(row))
            for row in rows
        ]
        columns = np.array(rows_read, dtype=np.int64).reshape(-1, 5).T
        return cls(**dict(zip(("key", "citing", "cited", "influential", "intents"), columns, strict=True)))

    @property
    def known(self) -> Mask:
        """Records whose cited paper is known."""
        return self.cited != _UNKNOWN

    @cached_property
    def group(self) -> Ints:
        """A number for each pair of papers, the same for all copies of a citation."""
        _, group = np.unique(np.stack([self.citing, self.cited]), axis=1, return_inverse=True)
        return group.reshape(-1)

    @property
    def copied(self) -> Mask:
        """Records of citations that have several."""
        return self.known & (np.bincount(self.group)[self.group] > 1)

    @property
    def alone_influential(self) -> Mask:
        """Copies without which the citation would not be influential."""
        return self.copied & self._alone(self.influential)

    @property
    def alone_in_intent(self) -> Mask:
        """Copies without which the citation would lack an intent."""
        bits = [self._alone(self.intents >> bit & 1) for bit in range(len(INTENTS))]
        return self.copied & np.logical_or.reduce(bits)

    def _alone(self, flag: Ints) -> Mask:
        """Records that have a flag that no other record of the same group has."""
        return (flag == 1) & (np.bincount(self.group, weights=flag)[self.group] == 1)


def choose_citation_changes(
    citations: CitationColumns,
    papers: Ints,
    changes: PaperChanges,
    touched: Touched,
    *,
    fresh: Iterator[int],
    share: float,
    rng: np.random.Generator,
) -> Revision:
    """Changes of citations, each kind of this share of them, and those of papers that are withdrawn or new.

    `papers` are those of the newer release, `touched` the keys of citations in the diff that led to the older one.
    """
    withdrawn = np.isin(citations.citing, changes.withdrawn)
    lots = Lots(citations.key, share, rng, citations.group)
    lots.withhold(withdrawn)
    removed = _choose_removed(citations, lots, touched)
    revision = Revision(
        edits=_choose_edits(citations, lots, papers, rng),
        removed={*removed, *citations.key[withdrawn].tolist()},
        absent=list(islice(fresh, lots.count)),
    )
    copied = lots.draw(citations.known)
    revision.add(copied, [partial(_copy, key=key) for key in islice(fresh, len(copied))])
    again = sample(touched.deleted - {*citations.key.tolist()}, lots.count, rng)
    others = [*again, *islice(fresh, lots.count)]
    ends = _draw_papers(papers, len(others), rng)
    revision.add(
        choose_models(citations.key, others, rng),
        [partial(_turn, key=key, papers=end) for key, end in zip(others, ends, strict=True)],
    )
    _add_references(revision, citations, changes, fresh)
    return revision


def _choose_removed(citations: CitationColumns, lots: Lots, touched: Touched) -> list[int]:
    kinds = [
        citations.alone_influential,
        citations.alone_in_intent,
        np.isin(citations.key, list(touched.updated)),
        citations.copied,
        citations.known,
    ]
    return [key for eligible in kinds for key in lots.draw(eligible)]


def _choose_edits(citations: CitationColumns, lots: Lots, papers: Ints, rng: np.random.Generator) -> dict[int, Edit]:
    forget = partial(with_fields, contexts=None, intents=None)
    kinds: list[tuple[Edit, Mask]] = [
        (toggle_influence, citations.alone_influential),
        (forget, citations.alone_in_intent),
        (toggle_influence, citations.known),
        (change_intents, citations.known),
        (forget, citations.intents > 0),
        (partial(with_fields, citedcorpusid=None), citations.known),
        (keep, citations.known),
    ]
    edits = {key: edit for edit, eligible in kinds for key in lots.draw(eligible)}
    moves = [(cite_another, ~citations.known), (cite_another, citations.known), (cited_by_another, citations.known)]
    for move, eligible in moves:
        keys = lots.draw(eligible)
        ends = _draw_papers(papers, len(keys), rng)
        edits |= {key: partial(move, papers=end) for key, end in zip(keys, ends, strict=True)}
    return edits


def _add_references(
    revision: Revision, citations: CitationColumns, changes: PaperChanges, fresh: Iterator[int]
) -> None:
    """Let each new paper cite what its model cites."""
    for new, model in changes.models.items():
        references = citations.key[citations.citing == model]
        revision.add(references, [partial(with_fields, citationid=next(fresh), citingcorpusid=new) for _ in references])


def _draw_papers(papers: Ints, count: int, rng: np.random.Generator) -> Sequence[list[int]]:
    """So many times three different papers."""
    return [rng.choice(papers, size=3, replace=False).tolist() for _ in range(count)]


def _copy(row: Record, key: int) -> Record:
    """Another record of a citation, which disagrees on its influence."""
    return {**toggle_influence(row), "citationid": key}


def _turn(row: Record, key: int, papers: list[int]) -> Record:
    """A citation of another paper, with a key of its own."""
    return {**cite_another(row, papers), "citationid": key}


def _cited(row: Record) -> int:
    return _UNKNOWN if row["citedcorpusid"] is None else row["citedcorpusid"]


def _intent_bits(row: Record) -> int:
    named = {intent for intents in row["intents"] or [] for intent in intents or []}
    return sum(1 << bit for bit, intent in enumerate(INTENTS) if intent in named)


def toggle_influence(row: Record) -> Record:
    """A citation that is influential if it was not, and the other way round."""
    return {**row, "isinfluential": not row["isinfluential"]}


def change_intents(row: Record) -> Record:
    """A citation with one context, and with the intents that it did not have (with the first, if it had all)."""
    known = {intent for intents in row["intents"] or [] for intent in intents or []}
    others = [intent for intent in INTENTS if intent not in known]
    return {**row, "contexts": ["Seen again in a later version."], "intents": [others or list(INTENTS[:1])]}


def cite_another(row: Record, papers: list[int]) -> Record:
    """A citation of the first of the papers that is not one of its own; of three different ones, one always is."""
    own = (row["citingcorpusid"], row["citedcorpusid"])
    return {**row, "citedcorpusid": next(paper for paper in papers if paper not in own)}


def cited_by_another(row: Record, papers: list[int]) -> Record:
    """A citation by the first of the papers that is not one of its own; of three different ones, one always is."""
    own = (row["citingcorpusid"], row["citedcorpusid"])
    return {**row, "citingcorpusid": next(paper for paper in papers if paper not in own)}
