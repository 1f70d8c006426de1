"""The section `queries`: which papers anchor the triplets, and which are held out of everything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from cocite.config import entries
from cocite.config.cuts import Cut, Year
from cocite.config.entries import Commit, Count, Entry, GivenPath, Names, Natural, Whole, inconsistent
from cocite.config.source import OWNERS, Twins

TRIPLETS = "cite_prediction_new"  # the folder of SPECTER2's triplets in their dataset
PUBLISHED = "published"  # where a run keeps that dataset's part after fetching it


class QueryRule(Entry):
    """What papers must be to anchor triplets, or to be held out."""

    min_citations: Natural = 2
    """Papers of the corpus that must cite a query."""
    min_references: Natural = 2
    """Papers of the corpus with text that a query must cite."""
    min_year: Year | None = None
    """First year of publication of a query. With it or max_year, papers without a year are left out."""
    max_year: Year | None = None
    """Last year of publication of a query."""
    fields: Names = ()
    """Fields of study in the release, such as Computer Science; a query needs one of them. Default: any."""
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the query papers whose triplets validate instead of train."""
    holdout: Natural = 0
    """Papers held out of every graph, index and triplet, as queries of the benchmark kind holdout. Each fits the
    rule, and cites as many papers with text as that benchmark has `positives`."""
    holdout_from: Cut | None = None
    """First year, or first day such as 2020-07-01, of papers that nothing is trained on; papers of the year of a day
    that have no date count as from after it. As many of them as `holdout` says, with enough references, are the queries
    of benchmarks of the kind holdout with `by_time: true`; all others are kept out as well. The papers held out by
    chance are from before; none are if all benchmarks of held-out papers have `by_time: true`. Left out, no paper is
    kept out for its year."""
    undated: Literal["earlier", "later"] | None = None
    """Whether papers without a year count as from before `holdout_from` or after. Default: later."""

    @field_validator("undated")
    @classmethod
    def _leave_out_default(cls, given: str | None, info: ValidationInfo) -> str | None:
        return None if given == "later" and info.data.get("holdout_from") is not None else given

    @model_validator(mode="after")
    def _keys_go_together(self) -> "QueryRule":
        if self.undated is not None and self.holdout_from is None:
            raise inconsistent(".undated has no effect without holdout_from.")
        if self.holdout_from is not None and self.holdout == 0:
            raise inconsistent(".holdout_from needs holdout, the number of papers that are held out.")
        if self.min_year is not None and self.max_year is not None and self.min_year > self.max_year:
            raise inconsistent(f".min_year ({self.min_year}) must not be after max_year ({self.max_year}).")
        return self


class DrawnQueries(QueryRule):
    """Draws papers by the rule below."""

    from_: Literal["rule"] = Field(default="rule", alias="from")
    """How queries are chosen. The rule decides on the held-out papers in any case; papers from file or triplets need no
    more than title and abstract."""
    count: Count = 1000
    """Number of query papers for training and validation together; all that fit if there are fewer."""


class ListedQueries(QueryRule):
    """Takes all corpus ids in the file given by path."""

    from_: Literal["file"] = Field(alias="from")
    """How queries are chosen."""
    path: GivenPath
    """Text file with one corpus id per line. Environment variables are expanded."""

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A file that is not there."""
        if not Path(self.path).is_file():
            yield f"{key}.path: the file {self.path} does not exist."


class PublishedQueries(QueryRule):
    """Draws among the training queries of SPECTER2's triplets (cite_prediction_new), but for those that their
    validation triplets share."""

    from_: Literal["triplets"] = Field(alias="from")
    """How queries are chosen."""
    count: Count
    """Number of query papers for training and validation together; all that fit if there are fewer. The published
    training triplets have more than a million queries, so there is no default."""
    dataset: GivenPath = "allenai/scirepeval"
    """Hugging Face dataset of the triplets (pin it with revision), or a local folder in its layout:
    cite_prediction_new/train-*.parquet and validation-*.parquet. Environment variables are expanded."""
    revision: Commit | None = None
    """Commit of the Hugging Face dataset, 40 hexadecimal digits."""

    @property
    def fetched(self) -> dict[str, tuple[str, str, tuple[str, ...]]]:
        """What comes from the hub: dataset, revision and patterns of the files."""
        return {PUBLISHED: (self.dataset, self.revision or "", (f"{TRIPLETS}/*.parquet", f"{TRIPLETS}/*/*.parquet"))}

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder that is not there, a dataset without its commit, or papers that its ids do not name."""
        yield from entries.unpinned(key, "dataset", self.dataset, self.revision)
        if config.corpus.whose_ids != "s2" and config.corpus.matched_with is None:
            whose = f"whose ids are Semantic Scholar's, and those of the corpus are {OWNERS[config.corpus.whose_ids]}"
            name = "name Semantic Scholar's papers in corpus.match"
            yield f"{key}.from is triplets, {whose}; {name}, or draw queries by the rule."


class QuerySettings(QueryRule):
    """What the selection of queries is given: the section, and what follows for it from the benchmarks."""

    from_: Literal["rule", "file", "triplets"] = Field(alias="from")
    """rule: by a rule; file: all ids of a file are queries; triplets: queries are sampled from published ones."""
    path: str = ""
    """The text file with one corpus id per line, or the table published_queries."""
    count: Count | None = None
    """Queries to draw, for training and validation together; all of a file."""
    holdout_references: Natural = 5
    """Papers with text that a held-out paper must cite: as many as a hold-out benchmark ranks."""
    holdout_by_chance: bool = True
    """Whether papers are held out by chance; not if there is a hold-out by time, and no benchmark of others."""
    twins: Twins = "keep"
    """What becomes of the papers that are one work."""


Queries = Annotated[
    DrawnQueries | ListedQueries | PublishedQueries, Field(discriminator="from_"), entries.default_of("from", "rule")
]
