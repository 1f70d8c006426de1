"""What a source of a corpus is to the configuration: an entry of its settings, one class a module.

The sources are modules of `corpus/sources`; how to add one is in docs/how-to/new-source.md. A number names a paper only
among ids of the same origin: what compares ids of documents and of papers calls `link_between` first.
"""

import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.cuts import Cut, Year, day_of
from cocite.config.entries import Count, Entry, GivenPath, Names, Whole, as_json, inconsistent
from cocite.config.explained import shown
from cocite.config.release_folder import DATASETS, ENDINGS, find_shards
from cocite.core.errors import InputError

IdSpace = Literal["s2", "openalex", "own"]  # Semantic Scholar's ids, OpenAlex's, or the corpus's own
DocumentIds = Literal["s2", "openalex", "corpus", "own"]  # the same, or those of the corpus, whatever these are
Link = Literal["ids", "hashes", "matches", "text"]
"""How documents are matched to papers of the corpus: by their ids; by their ids and, if those are hashes, by hash, DOI
or text; by the table matches, with hashes likewise; or only by DOI or text."""
OWNERS = {"s2": "Semantic Scholar's", "openalex": "OpenAlex's", "own": "their own"}  # whose ids they are, in words


def link_between(documents: DocumentIds, corpus: IdSpace, *, has_match: bool, has_hashes: bool = False) -> Link:
    """How documents with some ids are known to be papers of a corpus with others. Own ids of a benchmark are not those
    of a corpus. `has_hashes`: documents may have Semantic Scholar's hashes in place of its corpus ids."""
    if has_hashes and documents == corpus == "s2":
        return "hashes"
    if documents == "corpus" or documents == corpus != "own":
        return "ids"
    return "matches" if documents == "s2" and has_match else "text"


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """The user's key of an API, which is only ever read from the environment."""

    variable: str  # the environment variable
    page: str  # where users get a key
    sent_in: Literal["headers", "params"]  # the part of a request that it is sent in
    name: str  # the name of that header or parameter

    @property
    def is_set(self) -> bool:
        """Whether the user has set it."""
        return bool(os.environ.get(self.variable, "").strip())

    def read(self) -> str:
        """The key. Raises `InputError` if it is not set, or cannot be a key."""
        key = os.environ.get(self.variable, "").strip()
        if not key:
            raise InputError(
                f"The environment variable {self.variable} is not set; ask for a key at {self.page} and run "
                f"`export {self.variable}=…`."
            )
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"The environment variable {self.variable} has invalid characters; copy the key again.")
        return key


S2_PAGE = "https://www.semanticscholar.org/product/api"
S2_KEY = ApiKey(variable="S2_API_KEY", page=S2_PAGE, sent_in="headers", name="x-api-key")
OPENALEX_KEY = ApiKey(
    variable="OPENALEX_API_KEY", page="https://openalex.org/settings/api (free)", sent_in="params", name="api_key"
)


def turns_of(results: Path) -> Path:
    """The file through which all jobs of a run keep the rate limit of Semantic Scholar."""
    return results / ".state/api-turns"


class WorkFilters(Entry):
    """Which works of OpenAlex are taken; the others are counted and left out while they are read."""

    from_year: Year | None = None
    """First year of publication. With it or to_year, works without a year are left out."""
    to_year: Year | None = None
    """Last year of publication."""
    fields: Names = ()
    """OpenAlex fields, such as Computer Science; a work needs a topic of one of them. Default: any, or none."""
    languages: Names = ()
    """Language codes, such as en. Default: any, or none."""
    types: Names = ()
    """OpenAlex types, such as article, review or preprint. Default: any."""
    retracted: bool = False
    """Also take retracted works."""
    paratext: bool = False
    """Also take paratext, such as covers and tables of contents."""

    @model_validator(mode="after")
    def _years_rise(self) -> "WorkFilters":
        if self.from_year is not None and self.to_year is not None and self.from_year > self.to_year:
            raise inconsistent(f".from_year ({self.from_year}) must not be after to_year ({self.to_year}).")
        return self


class Expansion(Entry):
    """Works that are added to those of a query."""

    references: Annotated[int, Field(ge=0, le=1)] = 1
    """1 adds the works that those of the query cite, the most cited by them first; 0 adds none."""
    citing: Annotated[int, Field(ge=0, le=1)] = 0
    """1 adds works that cite those of the query (openalex only); 0 adds none."""
    limit: Count = 100_000
    """Most works that each of the two adds."""

    @model_validator(mode="after")
    def _adds_some(self) -> "Expansion":
        if not self.references and not self.citing:
            raise inconsistent(" adds nothing with references: 0 and citing: 0; leave it out.")
        return self


class ContextSettings(Entry):
    """Which of the sentences that cite become contexts."""

    min_words: Count = 5
    """Least number of words of a sentence, not counting its citation markers."""
    max_words: Count = 100
    """Largest number of words of a sentence, likewise."""

    @model_validator(mode="after")
    def _bounds_rise(self) -> "ContextSettings":
        if self.min_words > self.max_words:
            raise inconsistent(f".min_words ({self.min_words}) must not exceed max_words ({self.max_words}).")
        return self


def lack_of_contexts(key: str, what: str, config: Whole) -> Iterator[str]:
    """A sentence where `what`, an entry that is made of contexts, has none because they are not ingested."""
    if config.corpus.contexts is None:
        needs = "needs the sentences that cite, which are not ingested"
        yield f"{key}: {what} {needs}; set corpus.contexts ({{}} uses its defaults)."


LATEST = "latest"
UNNAMED = (
    f"release is {LATEST}, which only the sources s2, semantic-scholar-api and openalex can tell; name the release."
)
Twins = Literal["keep", "exclude", "merge"]


class Source(Entry):
    """Source of a release, and how it is split for processing.

    A source lists the shards of a release in a manifest (`corpus.release.manifest.Manifest`), and fetches each into a
    folder in the layout of a release: gzipped lines of JSON.
    """

    source: str
    """Source of the release."""
    buckets: Annotated[int, Field(ge=1, le=1024)] = 2
    """Number of buckets that big tables are sharded into; each is processed by separate jobs."""
    malformed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Largest share of the lines of a dataset that may be malformed (not JSON, without an id, with a list in place of a
    text) before the run stops; with base, of the lines of its diffs."""
    keep_ingested: bool = False
    """Keep the ingested rows, in all their copies and with their ids; otherwise they are dropped once they are merged.
    A later release can then be reached from them, as its base. If it is switched on after that, the shards are
    downloaded and ingested again."""
    authors: bool = False
    """Keep the names of papers' authors, for encoders whose text has them. If it is switched on later, the shards of
    papers are downloaded and ingested again."""
    contexts: ContextSettings | None = None
    """Selects the sentences that cite to ingest with the citations, for graphs with signal: sentence-cocitation and
    sets with sampler: contexts; {} uses the defaults. Default: none, which takes half the time. If it is added later,
    the shards are downloaded and ingested again."""
    allow_missing_abstract: bool = False
    """Also use papers with a title but no abstract as queries, candidates and in triplets, as SciAspect's data do, in
    which a quarter of the queries have none. Otherwise a paper needs both."""
    twins: Twins = "keep"
    """Treatment of papers that are one work, such as a preprint and its published version (table twins). keep: all stay
    in the corpus, and count as one in splits, triplets and hold-outs. exclude: all but one are excluded. merge: one
    stays in the corpus, with the citations of all."""
    until: Cut | None = None
    """Last year of the corpus, or last day, such as 2020-06-30: the corpus is as if it had been read then. Later
    papers, the citations by them and their contexts are left out and counted; with a day, so are papers of its year
    that have no date. A paper whose copies differ has the latest of their years, a work that of its newest copy. Papers
    without a year are kept and counted. Citing ids without a record are kept, and so are citations of later papers by
    earlier ones. If it is edited, the shards are ingested again, unless keep_ingested is set."""
    paper_ids: GivenPath | None = None
    """Folder of Semantic Scholar's dataset paper-ids, gzipped lines of JSON as downloaded. It maps the hashes that
    benchmarks such as SciDocs use as document ids to papers. Without it, such documents are matched only by title.
    Environment variables are expanded."""

    work_keys: ClassVar[tuple[str, ...]] = (
        *("buckets", "malformed", "outside", "keep_ingested", "keep_raw", "authors", "contexts"),
        *("id_space", "match", "paper_ids", "allow_missing_abstract", "twins", "until"),
    )
    """Keys for processing the release; the others determine its shards."""
    fetches: ClassVar[bool] = True
    """Whether shards are downloaded into the results; otherwise each run lists and reads them in place."""
    updates_by_diffs: ClassVar[bool] = False
    """Whether a base is moved to the release by diffs, a bucket after another; otherwise shards are taken from it."""
    marks_citations: ClassVar[bool] = True
    """Whether citations may be marked as influential, and have intents."""
    knows_latest: ClassVar[bool] = False
    """Whether `latest` names a release."""
    holds: ClassVar[Mapping[str, tuple[str, ...]]] = {name: (name,) for name in DATASETS}
    """Dataset of a release → what is ingested from its records, of papers, abstracts and citations."""
    parquet_of_packed: ClassVar[Mapping[str, float]] = {"papers": 0.8, "abstracts": 1.05, "citations": 0.4}
    """Bytes of Parquet for each byte of a packed shard, by dataset: an estimate that errs on the side of too much. In
    the releases that it comes from, the merged tables took 0.74 to 0.99 of that; more copies make it less."""
    authors_of_packed: ClassVar[float] = 0.1
    """Bytes of authors' names for each packed byte of papers, if they are ingested: 22 characters per paper in the
    official sample, of 200 packed bytes per paper; 0.04 in a generated release, whose names repeat."""
    ids_of_packed: ClassVar[float] = 0.1
    """Additional bytes for ids of citations, if they are kept: 0.05 to 0.10 in the releases hci and synergy. A real one
    has 50 packed bytes for each of five billion citations, whose ids need at most five."""

    def parts(self, dataset: str) -> int:
        """Jobs that share the shards of a dataset, before the release is listed; one for each that is read in place."""
        return 1 if self.fetches else len(self.shards_in_place(dataset))

    def shards_in_place(self, dataset: str) -> Sequence[Path]:
        """The shards of a dataset that are read in place; none if they are downloaded."""
        return ()

    def parquet_of_byte(self, table: str) -> float:
        """Bytes of Parquet of papers, abstracts or citations for each byte of their packed shards."""
        return self.parquet_of_packed[table]

    @property
    def whose_ids(self) -> IdSpace:
        """Whose ids papers have: as `id_space` says, if it is a key of the source."""
        ids: IdSpace = getattr(self, "id_space", "s2")
        return ids

    @property
    def matched_with(self) -> Path | None:
        """The folder of Semantic Scholar's papers that those of the corpus are matched with; None without it."""
        return None

    @property
    def downloads(self) -> bool:
        """Whether shards come from another machine."""
        return self.fetches

    @property
    def is_query(self) -> bool:
        """Whether single papers are requested from an API, rather than files of a release."""
        return False

    @property
    def list_of_papers(self) -> str | None:
        """The file that lists the papers, if there is one."""
        return None

    @property
    def api_key(self) -> ApiKey | None:
        """The key that it needs; None if it needs none."""
        return None

    def first_asked(self, release: str) -> str | None:
        """The URL that answers if the release can be downloaded; none if no other machine is needed."""
        return None

    def origin(self, results: Path) -> str:
        """What the release is listed from, in a word: a URL or a folder."""
        return self.source

    @abstractmethod
    def list_release(self, release: str, results: Path) -> Any:
        """The manifest of a release. Raises `InputError` if it is missing or incomplete. `results` is the folder of the
        run, in which `.state` survives a kill."""

    def fetch(
        self, manifest: Any, dataset: str, shards: Sequence[Any], *, results: Path, state: Path, output: Path
    ) -> None:
        """Make the folder `output` of some shards of a dataset. A killed call resumes from the folder `state`. Raises
        `InputError` if shards are read in place."""
        raise InputError(f"Shards of the source {self.source} are read in place; there is nothing to download.")

    def imagined(self, release: str, results: Path) -> Any:
        """An estimate of the manifest, if the release is yet to be made; None if it can be listed."""
        return None

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """The plan's sentence on the jobs, given the number of shards of each dataset."""
        return f"Each of the {sum(shards.values())} shards is ingested by a separate job."

    def cost_in_words(self, manifest: Any) -> str:
        """The plan's sentence on calls of an API that is paid by the call; empty for a download."""
        return ""

    def remarks(self) -> Iterator[str]:
        """The plan's sentence on the records themselves, if they can be read before the run."""
        return iter(())

    def listing_settings(self) -> dict[str, Any]:
        """The keys that determine the shards."""
        return {key: value for key, value in as_json(self).items() if key not in self.work_keys}

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A release that has no date."""
        if config.release == LATEST:
            if not self.knows_latest:
                yield UNNAMED
        elif day_of(config.release) is None:
            of = f"releases of the source {self.source} have dates, such as 2026-01-06"
            yield f"release is {shown(config.release)}, which is no date of the calendar; {of}."

    def faults_of_paper_ids(self, key: str) -> Iterator[str]:
        """A folder of paper-ids without shards, or from which nothing leads to the papers."""
        if self.paper_ids is None:
            return
        if self.whose_ids != "s2" and self.matched_with is None:
            why = "hashes lead to Semantic Scholar's corpus ids, and the corpus has others"
            yield f"{key} has no effect: {why}; name Semantic Scholar's papers in corpus.match too, or leave it out."
        yield from _faults_of_shards(key, self.paper_ids, "paper-ids")

    def faults_of_base(self, key: str, base: Path, results: Path) -> Iterator[str]:
        """What is wrong with the results of an earlier run as a base of this one, which has made no list yet."""
        if base.resolve() == results.resolve():
            yield f"{key}: {base} is this run's own results folder; name another in pathvars.results."
        if (results / "corpus" / "manifest.json").is_file():
            return  # The base has been used, and may be gone; if not, steps that need it report it.
        if not (base / "corpus" / "manifest.json").is_file():
            yield f"{key}: {base} is not the results folder of an earlier run (no corpus/manifest.json)."
        for dataset in DATASETS:
            if not any((base / "corpus" / "ingested" / dataset).glob("*.parquet")):
                missing = f"no corpus/ingested/{dataset}/*.parquet; it must have corpus.keep_ingested: true"
                yield f"{key}: the run in {base} did not keep its ingested rows ({missing})."
        buckets = len(list((base / "corpus" / "citations").glob("*.parquet")))
        if buckets not in (0, self.buckets):
            yield f"{key}: {base} has {buckets} buckets, but corpus.buckets is {self.buckets}."

    @property
    def largest_index(self) -> int | None:
        """Upper bound of the papers that can have an edge, if the release has enough metadata."""
        return None


class FetchedSource(Source):
    """What sources have in common whose shards are fetched."""

    keep_raw: bool = False
    """Keep the downloaded shards; otherwise they are dropped once they are ingested. If it is switched on after
    that, it has no effect until they are downloaded again."""


class MatchedSource(Source):
    """What sources have in common whose papers may have other ids than Semantic Scholar's."""

    match: GivenPath | None = None
    """Folder of Semantic Scholar's dataset papers, gzipped lines of JSON as they are downloaded. Papers are matched
    with those by their MAG ids (externalids.MAG; only works of OpenAlex have one) and DOIs (externalids.DOI), so that
    documents of benchmarks, whose ids are Semantic Scholar's, are matched to them. Default: no matching. Environment
    variables are expanded."""

    @property
    def matched_with(self) -> Path | None:
        """The folder, if one is named."""
        return None if self.match is None else Path(self.match)

    def faults_of_match(self, key: str) -> Iterator[str]:
        """A folder without shards, or ids that need no match."""
        if self.match is None:
            return
        if self.whose_ids == "s2":
            yield f"{key} has no effect, since the corpus has Semantic Scholar's ids; leave it out."
        yield from _faults_of_shards(key, self.match, "papers")


def faults_of_name(release: str) -> Iterator[str]:
    """A name of a release that its owner chose, and that no folder can have."""
    if release == LATEST:
        yield UNNAMED
    elif not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,99}", release):
        allowed = "letters from a to z or A to Z, digits, dots, hyphens and underscores, the first a letter or digit"
        yield f"release is {shown(release)}; a name of a release has up to 100 {allowed}."


def _faults_of_shards(key: str, folder: str, dataset: str) -> Iterator[str]:
    """A folder that has no files of a dataset of Semantic Scholar's, or others in addition."""
    try:
        shards = find_shards(Path(folder))
    except InputError as error:
        yield f"{key}: {error}"
        return
    if not shards:
        yield f"{key}: {folder} is no folder of Semantic Scholar's {dataset} (no file that ends in {ENDINGS})."
