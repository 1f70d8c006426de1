"""The sampler `mined`."""

from typing import TYPE_CHECKING, Literal

from cocite.config.mining import Mining

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class MinedNegatives(Mining):
    """The examples of a named set with mined negatives: documents that rank high for the query and are no positives.

    Documents are ranked by BM25, by an encoder, or by a model that was trained before. Candidates are those within
    `ranks`; the margins and bounds of scores, as sentence-transformers' `mine_hard_negatives` knows them, and
    `duplicates` and `unlinked_in` leave out those that may be positives that nobody has marked.
    """

    sampler: Literal["mined"]

    def sample(self, block: "Block") -> "Sampled":
        """Take the examples from their set and the candidates from `mined_candidates`; both know their queries."""
        from cocite.triplets.mining import give_mined

        return give_mined(block, self)
