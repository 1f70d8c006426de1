"""The sampler `pairs`: queries and documents that the user supplies, in one of several layouts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Commit, Count, Entry, GivenPath, Names, NonNegative, ShortFor, Whole, inconsistent
from cocite.config.folders import files_in
from cocite.config.sampler import Sampler
from cocite.core.errors import InputError

if TYPE_CHECKING:
    from cocite.triplets.sampled import Block, Sampled

COLLECTION = tuple(
    f"{name}*{end}" for name in ("corpus", "collection", "passage", "quer") for end in (".jsonl*", ".tsv*", ".parquet")
)
"""Patterns of files with queries and documents by name; * also matches folders."""
PATTERNS = {
    "collection": COLLECTION,
    "qrels": ("*.tsv", "*.tsv.gz"),
    "scores": ("list/*.parquet", "*.tsv", "*.tsv.gz", "*.jsonl", "*.jsonl.gz"),
}
"""Those of the files of each part of a layout but its pairs."""


class Origin(Entry):
    """Source of a part of a layout."""

    dataset: GivenPath
    """Hugging Face dataset (pin it with revision), or a local folder or file. Environment variables are expanded."""
    revision: Commit | None = None
    """Commit of the Hugging Face dataset, 40 hexadecimal digits."""


class Scored(Entry):
    """What negatives are kept by, where scores of a cross-encoder are there."""

    margin: NonNegative | None = None
    """A negative is kept if its score is at most that of the query's lowest positive less this (published: 3.0).
    Left out, scores are not compared."""
    max_score: float | None = None
    """A negative is kept if its score is at most this."""

    @property
    def has_bounds(self) -> bool:
        """Whether the scores of negatives are bounded."""
        return self.margin is not None or self.max_score is not None


class TextRows(Scored):
    """JSON Lines or Parquet whose rows contain texts: query, positives and, if available, negatives, positive_scores
    and negative_scores."""

    kind: Literal["rows"]
    """The layout."""
    files: Names = ()
    """Patterns of the files that are taken, such as triplet-hard/*.parquet; left out, all."""
    usual: ClassVar = ("*.jsonl", "*.jsonl.gz", "*.parquet")


class BeirFolder(Entry):
    """corpus.jsonl, queries.jsonl and qrels/train.tsv, as BEIR has them. Documents of relevance 0 are negatives."""

    kind: Literal["beir"]
    """The layout."""
    qrels: Origin | None = None
    """Location of the judgements. Default: next to the corpus."""
    validate_on: Literal["dev", "test", "share"] = "dev"
    """The judgements used for validation: those of qrels/dev.tsv, if it exists; those of qrels/test.tsv; or a share of
    the queries of qrels/train.tsv."""
    usual: ClassVar = (*COLLECTION, "qrels/*.tsv")


class SpecterFolder(Entry):
    """data.json, metadata.json and train.txt, as SPECTER was trained from them; or the Parquet files of SPECTER2's
    triplets (cite_prediction_new), with their texts. Queries are papers."""

    kind: Literal["specter"]
    """The layout."""
    files: Names = ()
    """Patterns of the Parquet files that are taken; left out, all of cite_prediction_new."""
    usual: ClassVar = ("*.json", "*.txt", "cite_prediction_new/*.parquet")


class MsMarco(Scored):
    """msmarco-hard-negatives.jsonl.gz, as sentence-transformers publishes MS MARCO's mined negatives."""

    kind: Literal["msmarco"]
    """The layout."""
    collection: Origin | None = None
    """Location of the texts: collection.tsv and queries.train.tsv, or the dataset sentence-transformers/msmarco-corpus.
    Default: next to the negatives."""
    scores: Origin | None = None
    """A table of query, document and score, as TSV, JSON Lines or Parquet, such as the dataset
    sentence-transformers/msmarco-scores-ms-marco-MiniLM-L6-v2. The published pickle is not loaded."""
    per_system: Count | None = 5
    """Negatives of each system that mined some, the first that are kept and that no system before it gave."""
    systems: Names = ()
    """Systems whose negatives are taken; left out, all."""

    @model_validator(mode="after")
    def _has_scores_for_its_bounds(self) -> "MsMarco":
        if self.has_bounds and self.scores is None:
            raise inconsistent(".margin and .max_score need scores, which names a table of them.")
        if self.scores and not self.has_bounds:
            raise inconsistent(".scores has no effect without margin or max_score.")
        return self

    @property
    def usual(self) -> tuple[str, ...]:
        """The files of pairs."""
        return ("msmarco-hard-negatives.jsonl.gz", *(() if self.collection else COLLECTION))


class Inpars(Entry):
    """JSON Lines of InPars: queries that a language model wrote for documents, each named by doc_id or with its
    doc_text. They have no negatives."""

    kind: Literal["inpars"]
    """The layout."""
    collection: Origin | None = None
    """Location of the documents: a corpus.jsonl in BEIR's form. Default: next to the queries."""
    files: Names = ()
    """Patterns of the files of queries. Default: all files of JSON Lines, or queries.jsonl if the documents are next to
    it."""
    top: Count | None = 10_000
    """So many queries are kept, those with the best scores (published: 10,000): score, which a reranker gave, or the
    mean of log_probs. null keeps all."""
    usual: ClassVar = ("*.jsonl", "*.jsonl.gz")


AnyLayout = TextRows | BeirFolder | SpecterFolder | MsMarco | Inpars
Layout = Annotated[AnyLayout, Field(discriminator="kind")]


class UserSuppliedPairs(Sampler):
    """User-supplied queries and documents, with or without negatives and scores, in one of several layouts.

    They are separate texts, even if the corpus has papers with these titles; texts with the title of an excluded paper
    are left out.
    """

    sampler: Literal["pairs"]
    gives = "sampled_examples"
    brings_texts: ClassVar[bool] = True
    layout: Annotated[Layout, ShortFor("kind")]
    """How the files are laid out: a name, or a name and its settings."""
    dataset: GivenPath
    """Hugging Face dataset (pin it with revision), or a local folder or file. Environment variables are expanded."""
    revision: Commit | None = None
    """Commit of the Hugging Face dataset, 40 hexadecimal digits."""
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the queries used for validation, if the files do not specify them."""
    paired: bool = False
    """Whether each negative becomes a separate example with one of the positives: triplets."""
    per_query: Count | None = None
    """At most so many examples of a query, at random. Left out, all."""
    blocks_of: Count | None = None
    """Examples of a query are taken in whole blocks of so many, at random; those left over, and queries with fewer, are
    left out. With the model's `block` of the same size, no batch has a part of a block (published for infonce: 4).
    Left out, there are no blocks."""
    longest_query: Count = 1000
    """Short queries of more words are left out."""

    @property
    def has_negatives(self) -> bool:
        """Whether the layout may have any."""
        return not isinstance(self.layout, Inpars)

    @property
    def origins(self) -> dict[str, tuple[str, str | None]]:
        """The dataset and the revision of each part."""
        named = {name: getattr(self.layout, name, None) for name in ("collection", "qrels", "scores")}
        others = {name: (origin.dataset, origin.revision) for name, origin in named.items() if origin is not None}
        return {"pairs": (self.dataset, self.revision), **others}

    @property
    def fetched(self) -> dict[str, tuple[str, str, tuple[str, ...]]]:
        """The parts that come from the hub: dataset, revision and patterns of the files."""
        pairs = getattr(self.layout, "files", ()) or self.layout.usual
        return {
            part: (dataset, revision, PATTERNS.get(part, pairs))
            for part, (dataset, revision) in self.origins.items()
            if revision is not None and not Path(dataset).exists()
        }

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder or file that is not there, or a dataset of the hub without its commit."""
        for part, (dataset, revision) in self.origins.items():
            at = key if part == "pairs" else f"{key}.layout.{part}"
            if Path(dataset).exists():
                if revision is not None:
                    yield f"{at}.revision does not go with {dataset}, which is here: only a dataset of the hub has one."
            elif dataset.startswith((".", "/")):
                yield f"{at}.dataset: {dataset} is neither a folder nor a file."
            elif revision is None:
                yield f"{at}.revision is missing; what comes from the Hugging Face hub is pinned by its commit."

    def sources(self, name: str, plan: Any) -> list[str]:
        """The user-supplied files of queries and documents, and the folder of the downloaded ones."""
        fetched = self.fetched
        local = [dataset for part, (dataset, _) in self.origins.items() if part not in fetched]
        files = (file for path in local for file in (files_in(path) if Path(path).is_dir() else [path]))
        return [*([f"<results>/triplets/{name}/fetched"] if fetched else []), *files]

    def sample(self, block: "Block") -> "Sampled":
        """Read the examples of the layout, and their texts.

        Raises `InputError` if files are missing or wrong, or a row has no place in the layout.
        """
        from cocite.triplets.pair_layouts import read_layout
        from cocite.triplets.user_pairs import sample_pairs

        folders = {part: Path(dataset) for part, (dataset, _) in self.origins.items()}
        if self.fetched:
            found = [path for path in block.sources if path.is_dir()]
            if len(found) != 1:
                raise InputError(f"{self.dataset}: the sources must have one folder of `cocite triplets fetch`.")
            folders |= {part: found[0] / part for part in self.fetched}
        return sample_pairs(block, read_layout(self.layout, folders, block.spill_to or Path()), self)
