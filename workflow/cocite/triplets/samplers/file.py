"""The sampler `file`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cocite.config.entries import Count, GivenPath, Whole
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class BroughtTriplets(Sampler):
    """Triplets that the user brings as Parquet: corpus ids, or rows as SPECTER2's `cite_prediction_new` has them.

    There, each row has query, pos and neg (Singh et al., 2023), each with an id beside its texts; texts are taken from
    the corpus all the same. Of all triplets, those of our queries are taken that hold three papers, each with a text.
    """

    sampler: Literal["file"]
    path: GivenPath | None = None
    """Parquet file with the columns query, positive and negative, of corpus ids, or query, pos and neg with a corpus_id
    each; or a folder of such files. Ids are those of this run's corpus. Left out, SPECTER2's triplets of
    queries.dataset. Variables of the environment are filled in."""
    per_query: Count | None = None
    """At most so many triplets of a query, at random. Left out, all."""

    def faults_of_references(self, key: str, config: Whole) -> Iterator[str]:
        """Files that are not there, or published triplets without their commit."""
        if self.path is not None:
            path = Path(self.path)
            if not (any(path.rglob("*.parquet")) if path.is_dir() else path.is_file()):
                yield f"{key}.path: {path} is neither a file nor a folder of Parquet files."
        elif config.queries.from_ != "triplets":
            yield f"{key} has no path, and takes published triplets then, which needs queries.from: triplets."
        elif config.corpus.whose_ids != "s2":
            yield (
                f"{key} has no path, and takes published triplets then, whose ids are Semantic Scholar's; those of the "
                "corpus are others, so bring triplets with ids of the corpus."
            )

    def sample(self, block: "Block") -> "Sampled":
        """Take the triplets of the block's queries from the files, in whatever order they are there."""
        from cocite.triplets.brought import read_triplets

        return read_triplets(block, per_query=self.per_query)
