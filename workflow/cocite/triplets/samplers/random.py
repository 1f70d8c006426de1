"""The sampler `random`."""

from typing import TYPE_CHECKING, Literal

from cocite.config.sampler import Pairing

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class RandomPapers(Pairing):
    """Random papers as positives and as negatives: what training makes of triplets that know nothing."""

    sampler: Literal["random"]

    def sample(self, block: "Block") -> "Sampled":
        """Sample from nothing but the papers with a text."""
        import numpy as np

        from cocite.triplets.pairing import pair
        from cocite.triplets.picking import draw, drawn, picks

        papers = draw(block, 2 * self.per_query, "random papers", spare=0).papers
        positives = picks(len(block.queries), self.per_query, block.seed, "positives")
        # By turns, so that neither has all where there are few papers.
        positives.papers[:] = papers[:, ::2]
        easy = drawn(np.ascontiguousarray(papers[:, 1::2]))
        return pair(block, self, positives, easy)
