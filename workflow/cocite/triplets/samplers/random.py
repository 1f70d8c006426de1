"""Samplers that draw from nothing but the papers with a text: `random` and `cropping`."""

from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from cocite.config.entries import Count, Natural, inconsistent
from cocite.config.sampler import Pairing, Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class RandomPapers(Pairing):
    """Random papers as positives and as negatives: what training makes of triplets that know nothing."""

    sampler: Literal["random"]

    @model_validator(mode="after")
    def _draws_texts_only(self) -> "RandomPapers":
        if self.text_filter == "after":
            raise inconsistent(".text_filter has no effect: all papers that are drawn have a text.")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """Sample from nothing but the papers with a text."""
        import numpy as np

        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import draw, drawn, picks

        papers = draw(block, 2 * self.per_query, "random papers", spare=0).papers
        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        # By turns, so that neither takes all if there are few papers.
        positives.papers[:] = papers[:, ::2]
        easy = drawn(np.ascontiguousarray(papers[:, 1::2]))
        return pair(block, self, positives, easy)


class CroppedPapers(Sampler):
    """Independent cropping (Izacard et al., 2022): two spans of a paper's text are near, spans of other papers are far.

    No citation is needed. A training draws the spans again for each epoch, from the seed, the epoch and the paper; the
    two of a paper are drawn by themselves, and may overlap. First the length of a span is drawn, evenly, and then where
    it starts.
    """

    gives = "sampled_examples"
    numbers_of_kinds = (("easy", "negatives"),)
    sampler: Literal["cropping"]
    shortest: Count = 10
    """Smallest length of a span in tokens; a shorter paper is used whole."""
    longest: Count | None = None
    """Largest length of a span in tokens. Default: the length of the text."""
    negatives: Natural = 1
    """Random papers of whose texts spans are negatives. With 0, a loss has only the other papers of a batch."""

    @property
    def has_negatives(self) -> bool:
        """Whether it uses some."""
        return self.negatives > 0

    @model_validator(mode="after")
    def _spans_have_a_length(self) -> "CroppedPapers":
        if self.longest is not None and self.longest < self.shortest:
            raise inconsistent(f".longest ({self.longest}) must not be below shortest ({self.shortest}).")
        return self

    def sample(self, block: "Block") -> "Sampled":
        """An example of each query that has a text, from nothing but the papers with a text."""
        import numpy as np
        import pyarrow as pa

        from cocite.core.id_sets import are_in
        from cocite.triplets.pairing import examples_table, gathered
        from cocite.triplets.picking import draw
        from cocite.triplets.sampled import UNSERVED, Sampled

        places = np.flatnonzero(are_in(block.papers, block.queries))
        drawn = draw(block, self.negatives, "easy negatives", spare=0).papers[places]
        rows = examples_table(block, gathered(places, block.queries[places, None], [drawn]), ("easy",))
        for name, length in (("shortest_span", self.shortest), ("longest_span", self.longest)):
            # These tell a training to draw spans.
            rows = rows.append_column(name, pa.array([length] * len(rows), pa.int32()))
        omissions = {f"{UNSERVED['sampled_examples']}: no text": len(block.queries) - len(rows)}
        return Sampled(rows=rows, omissions=omissions)
