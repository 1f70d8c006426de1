"""Sentences that cite as queries: those of the query papers, with what they cite, in one bucket after another.

A sentence is a text by its words alone: where two papers have the same sentence, it is one text. So it is left out if
it names a paper that is kept out in either of them, and it makes the example of the paper with the smaller id. Memory
holds the sentences of the query papers of one bucket, and the ids of all examples.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from cocite.core.id_sets import NO_IDS, Ids, are_in, check_ids, contains, set_of
from cocite.core.lookup import look_up
from cocite.core.randomness import priorities
from cocite.core.tables.files import open_table
from cocite.triplets.gathering import Rows, examples_table, paired
from cocite.triplets.pairing import first_drawn, unserved
from cocite.triplets.picking import NONE, draw, offer, picks, strike, strike_all
from cocite.triplets.sampled import Block, Sampled

KINDS = ("elsewhere", "easy")
TABLE = "contexts"
OF_KEPT_OUT = "sentences of papers that are kept out, or that cite one"
WITHOUT_TEXT = "sentences that cite no paper with a text"
TOO_FEW = "sentences that cite a paper with a text, but fewer than min_cited"
MORE = "sentences of a paper beyond per_query"
OF_OTHERS = "sentences that a paper with a smaller id has as well"
ROWS_AT_ONCE = 1 << 16

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the examples shall have; see the sampler `contexts`."""

    per_query: int
    min_cited: int
    positives: int
    elsewhere: int
    easy: int
    paired: bool
    oversampled: int


class Sentences(NamedTuple):
    """Some sentences, whole papers of them, in the order of their papers."""

    citing: Ids
    context: Ids
    cited: Ids
    """The papers that are cited in them, one sentence after the other, rising in each."""
    starts: NDArray[np.int64]
    """Where those of each sentence start, and at the end how many there are."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """The sentence of each cited paper."""
        return np.repeat(np.arange(len(self.citing)), np.diff(self.starts))

    def cited_among(self, is_one: Flags) -> NDArray[np.int64]:
        """How many papers each sentence cites that are one, as a flag for each cited paper says."""
        return np.bincount(self.rows[is_one], minlength=len(self.citing))


class Examples(NamedTuple):
    """The examples of some sentences: ids, and papers as examples × places."""

    context: Ids
    citing: Ids
    positives: Ids
    negatives: Ids


def sample_sentences(block: Block, asked: Asked) -> Sampled:
    """The examples of the sentences of a block's queries, and the texts of these."""
    forbidden = contexts_of_kept_out(block)
    counts = dict.fromkeys((OF_KEPT_OUT, WITHOUT_TEXT, TOO_FEW, MORE, OF_OTHERS), 0)
    has_sentence, is_served = (np.zeros(len(block.queries), dtype=bool) for _ in range(2))
    found = [_none(asked)]
    for path in block.files(TABLE):
        sentences = _of_queries(block, path)
        has_sentence[np.searchsorted(block.queries, sentences.citing)] = True
        found.append(_examples(block, asked, sentences, forbidden, counts))
    together = Examples(*map(np.concatenate, zip(*found, strict=True)))
    order = np.lexsort((together.citing, together.context))
    order = order[np.diff(together.context[order], prepend=0) != 0]
    counts[OF_OTHERS] = len(together.context) - len(order)
    chosen = Examples(*(column[order] for column in together))
    places = np.searchsorted(block.queries, chosen.citing)
    is_served[places] = True
    of_texts = replace(block, queries=chosen.context, splits=block.splits.take(pa.array(places)))
    reasons = [("no sentence that cites", ~has_sentence), ("no sentence that can be used", ~is_served)]
    return Sampled(
        rows=_table(of_texts, asked, chosen),
        texts=_texts(block, chosen.context),
        omissions={**unserved("sampled_examples", ~is_served, reasons), **counts},
    )


def contexts_of_kept_out(block: Block) -> Ids:
    """The sentences of papers that are kept out, and those that cite one, by their ids, rising."""
    kept_out, found = set_of(block.kept_out), [NO_IDS]
    for path in block.files(TABLE):
        for sentences in _read(path):
            is_out = are_in(kept_out, sentences.citing) | (sentences.cited_among(are_in(kept_out, sentences.cited)) > 0)
            found.append(sentences.context[is_out])
    return np.unique(np.concatenate(found))


def _read(path: Path) -> Iterator[Sentences]:
    with open_table(path, TABLE) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=["citing", "context", "cited"]):
            citing, context = batch["citing"].to_numpy(), batch["context"].to_numpy()
            check_ids(citing, path)
            yield Sentences(citing, context, batch["cited"].flatten().to_numpy(), _starts(batch["cited"]))


def _of_queries(block: Block, path: Path) -> Sentences:
    """The sentences of a bucket whose papers are queries."""
    found = [Sentences(NO_IDS, NO_IDS, NO_IDS, np.zeros(1, dtype=np.int64))]
    for sentences in _read(path):
        is_ours = look_up(block.queries, sentences.citing)[1]
        lengths = np.diff(sentences.starts)[is_ours]
        found.append(
            Sentences(
                sentences.citing[is_ours],
                sentences.context[is_ours],
                sentences.cited[is_ours[sentences.rows]],
                np.append(0, np.cumsum(lengths)),
            )
        )
    citing, context, cited = (np.concatenate(columns) for columns in list(zip(*found, strict=True))[:3])
    lengths = np.concatenate([np.diff(each.starts) for each in found])
    return Sentences(citing, context, cited, np.append(0, np.cumsum(lengths)))


def _examples(block: Block, asked: Asked, sentences: Sentences, forbidden: Ids, counts: dict[str, int]) -> Examples:
    """The examples of some sentences; counts what was left out."""
    is_out = look_up(forbidden, sentences.context)[1]
    cited = sentences.cited_among(are_in(block.papers, sentences.cited))
    usable = np.flatnonzero(~is_out & (cited >= asked.min_cited))
    drawn = priorities(block.seed, "sentences", sentences.citing[usable], sentences.context[usable])
    usable = usable[np.lexsort((drawn, sentences.citing[usable]))]
    paper = sentences.citing[usable]
    place = np.arange(len(usable)) - np.searchsorted(paper, paper)
    chosen = np.sort(usable[place < asked.per_query])
    counts[OF_KEPT_OUT] += int(np.count_nonzero(is_out))
    counts[WITHOUT_TEXT] += int(np.count_nonzero(~is_out & (cited == 0)))
    counts[TOO_FEW] += int(np.count_nonzero(~is_out & (cited > 0) & (cited < asked.min_cited)))
    counts[MORE] += len(usable) - len(chosen)
    of_texts = replace(block, queries=sentences.context[chosen])
    positives = picks(len(chosen), asked.positives, block.seed, "positives")
    elsewhere = picks(len(chosen), asked.elsewhere, block.seed, "papers cited elsewhere")
    easy = draw(of_texts, asked.easy, "easy negatives")
    # Where the sentences of each chosen one's paper start and end.
    first = np.searchsorted(sentences.citing, sentences.citing[chosen])
    last = np.searchsorted(sentences.citing, sentences.citing[chosen], "right")
    bounds = np.stack([sentences.starts[rows] for rows in (chosen, chosen + 1, first, last)], axis=1)
    texts = of_texts.queries, sentences.citing[chosen]
    _offer(positives, elsewhere, easy, texts, sentences.cited, bounds, block.papers)
    against = first_drawn(easy, np.full(len(chosen), asked.easy))
    padded = np.full((len(chosen), asked.easy), NONE, dtype=np.int64)
    padded[:, : against.shape[1]] = against
    return Examples(
        context=sentences.context[chosen],
        citing=sentences.citing[chosen],
        positives=positives.papers,
        negatives=np.concatenate([elsewhere.papers, padded], axis=1),
    )


@njit(nogil=True, cache=True)
def _offer(positives, elsewhere, easy, texts, cited, bounds, listed):  # type: ignore[no-untyped-def]
    """Offer each sentence what it cites, and what its paper cites in others; these and its paper are not easy ones."""
    queries, citing = texts
    for place in range(len(queries)):
        own = cited[bounds[place, 0] : bounds[place, 1]]
        of_paper = cited[bounds[place, 2] : bounds[place, 3]]
        strike(easy, place, citing[place])
        strike_all(easy, place, of_paper, easy.papers.shape[1])
        for paper in own:
            if contains(listed, paper):
                offer(positives, place, queries[place], paper, 0, own[:0])
        for paper in of_paper:
            if contains(listed, paper):
                offer(elsewhere, place, queries[place], paper, 0, own)


def _table(block: Block, asked: Asked, chosen: Examples) -> pa.Table:
    """The rows of `sampled_examples`, of a block whose queries are the sentences."""
    kinds = np.repeat(np.arange(len(KINDS), dtype=np.int8), [asked.elsewhere, asked.easy])
    rows = Rows(
        seats=np.arange(len(chosen.context)),
        positives=chosen.positives,
        negatives=chosen.negatives,
        kinds=np.broadcast_to(kinds, chosen.negatives.shape),
    )
    if asked.paired:
        rows = paired(block, rows, block.queries, oversampled=asked.oversampled)
    return examples_table(block, rows, (), KINDS)


def _texts(block: Block, chosen: Ids) -> Iterator[pa.RecordBatch]:
    """The rows of `sampled_texts`: the sentences that were chosen."""
    for path in block.files(TABLE):
        with open_table(path, TABLE) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=["context", "sentence"]):
                ours = batch.filter(pa.array(look_up(chosen, batch["context"].to_numpy())[1]))
                yield pa.record_batch(
                    {
                        "text": ours["context"],
                        "title": ours["sentence"],
                        "abstract": pa.nulls(len(ours), pa.string()),
                        "is_query": np.ones(len(ours), dtype=bool),
                    }
                )


def _none(asked: Asked) -> Examples:
    """No examples, of the width that they have."""
    empty = (np.empty((0, count), dtype=np.int64) for count in (asked.positives, asked.elsewhere + asked.easy))
    return Examples(NO_IDS, NO_IDS, *empty)


def _starts(lists: pa.ListArray) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(pc.list_value_length(lists).to_numpy(), dtype=np.int64))
