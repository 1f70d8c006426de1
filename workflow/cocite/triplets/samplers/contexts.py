"""The sampler `contexts`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from cocite.config.contexts import lack_of_contexts
from cocite.config.entries import Count, Natural, Whole, inconsistent
from cocite.config.sampler import Sampler

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled


class CitingSentences(Sampler):
    """Context2doc (Parisot and Zavrel, 2022): the query is a sentence that cites, positives are the papers that it
    cites.

    The sentences are those of the query papers, whose split they have. Hard negatives are papers that the same paper
    cites in other sentences and not in this one; easy negatives are random papers that it cites in none. A sentence
    that cites a paper that is kept out, or stands in one as well, makes no example.
    """

    sampler: Literal["contexts"]
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True
    per_query: Count = 5
    """Sentences of each citing paper at most, drawn at random."""
    min_cited: Count = 1
    """Papers with a text that a sentence must cite (published: 2)."""
    positives: Count = 5
    """Positives of an example at most."""
    elsewhere: Natural = 3
    """Hard negatives of an example at most."""
    easy: Natural = 3
    """Easy negatives of an example. Without any negatives, those of a batch are all there are."""
    paired: bool = False
    """Whether each positive makes an example of its own with one of the negatives: triplets."""
    oversample: bool = False
    """Paired, a sentence with fewer positives than `positives` uses them again."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of negatives that examples have."""
        return tuple(kind for kind, count in (("elsewhere", self.elsewhere), ("easy", self.easy)) if count)

    @model_validator(mode="after")
    def _pairs_with_something(self) -> "CitingSentences":
        if self.paired and not self.kinds:
            raise inconsistent(".paired needs negatives to pair positives with: elsewhere or easy.")
        if self.oversample and not self.paired:
            raise inconsistent(".oversample has no effect where positives are not paired with negatives.")
        return self

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """Sentences that are not ingested."""
        yield from lack_of_contexts(f"{key}.sampler", self.sampler, config)

    def sample(self, block: "Block") -> "Sampled":
        """Sample from the table `contexts`."""
        from cocite.triplets.sentences import Asked, sample_sentences

        asked = Asked(
            per_query=self.per_query,
            min_cited=self.min_cited,
            positives=self.positives,
            elsewhere=self.elsewhere,
            easy=self.easy,
            paired=self.paired,
            oversampled=self.positives if self.oversample else 0,
        )
        return sample_sentences(block, asked)
