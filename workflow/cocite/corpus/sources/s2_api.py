"""Semantic Scholar's Graph API: the papers that match a query, or are in a list, with their references.

Three jobs write papers, abstracts and citations, in the layout of a release; one request is made after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.entries import YEARS, Count, GivenPath, Names, Text, Url, Whole, inconsistent
from cocite.config.source import S2_KEY, ApiKey, Expansion, FetchedSource, turns_of

if TYPE_CHECKING:
    from cocite.corpus.release.manifest import Manifest, Shard


class SemanticScholarQuery(FetchedSource):
    """Requests the papers that match a query, or are in a list, from the Semantic Scholar Graph API. It needs no key;
    with one in S2_API_KEY, requests are not refused when many others make some."""

    source: Literal["semantic-scholar-api"]
    """Source of the release."""
    query: Text | None = None
    """Words in titles and abstracts, as the API's bulk search takes them: all words; `|` for or, `-` for without,
    "…" for phrases, `*` for other endings."""
    years: Annotated[Text | None, Field(pattern=YEARS)] = None
    """Years of publication, such as 2005-2026, 2015- or -2020. Default: all."""
    fields: Names = ()
    """Fields of study, such as Computer Science; a paper needs one of them. Default: any, or none."""
    types: Names = ()
    """Types of publications, such as Review or JournalArticle; a paper needs one of them. Default: any, or none."""
    min_citations: Count | None = None
    """Least number of citations of a paper. Default: none."""
    list: GivenPath | None = None
    """File with a list of papers, as the source openalex takes it, which are requested in place of a query. Papers are
    looked up by DOI or by the id of Semantic Scholar, PubMed or arXiv; the table unresolved lists the others.
    Environment variables are expanded."""
    limit: Count | None = None
    """Most papers that may match; if more match, the run stops before any is fetched. Default: 100,000."""
    expand: Expansion | None = None
    """Papers to add to those that match or are listed; {} adds those that they cite. Default: none."""
    api: Url = "https://api.semanticscholar.org/graph/v1"
    """Base URL of the API, or of a mirror."""

    is_query: ClassVar = True
    knows_latest: ClassVar = True
    marks_citations: ClassVar = False
    # 20,000 generated papers took 0.35, 0.97 and 0.49.
    parquet_of_packed: ClassVar = {"papers": 0.4, "abstracts": 1.05, "citations": 0.55}

    @model_validator(mode="after")
    def _query_or_list(self) -> "SemanticScholarQuery":
        if (self.query is None) == (self.list is None):
            raise inconsistent(" needs either query or list.")
        of_query = {name for name in ("years", "fields", "types", "min_citations", "limit") if getattr(self, name)}
        if self.list is not None and of_query:
            raise inconsistent(f".{min(of_query)} does not go together with list; leave one of them out.")
        if self.expand is not None and self.expand.citing:
            raise inconsistent(".expand.citing needs a call per paper here; use the source openalex for it.")
        return self

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the API that select papers."""
        of_lists = {"fieldsOfStudy": ",".join(self.fields), "publicationTypes": ",".join(self.types)}
        least = self.min_citations and str(self.min_citations)
        given = {"query": self.query, "year": self.years, **of_lists, "minCitationCount": least}
        return {name: value for name, value in given.items() if value}

    @property
    def list_of_papers(self) -> str | None:
        """The key `list`."""
        return self.list

    @property
    def api_key(self) -> ApiKey | None:
        """Semantic Scholar's, if the user has one."""
        return S2_KEY if S2_KEY.is_set else None

    def first_asked(self, release: str) -> str:
        """A search that finds one paper."""
        return f"{self.api.rstrip('/')}/paper/search?query=citation&limit=1&fields=corpusId"

    def origin(self, results: Path) -> str:
        """The list of papers, or the URL of the API."""
        return self.list or self.api

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of what a query gives; `latest` is pinned here. Raises `InputError` if a query matches no paper
        or too many, or a list has no ids."""
        from cocite.corpus.release.graph_query import list_query

        return list_query(self, release, turns_of(results))

    def fetch(
        self, manifest: "Manifest", dataset: str, shards: "Sequence[Shard]", *, results: Path, state: Path, output: Path
    ) -> None:
        """Request the papers; the answers are kept until all three datasets are made of them."""
        from cocite.corpus.release.graph_query import fetch_query

        fetch_query(self, manifest, dataset, results=results, turns=turns_of(results), output=output)

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """One job requests papers, whose answers serve the two others."""
        return "One job requests all papers; two others use its answers."

    def cost_in_words(self, manifest: "Manifest") -> str:
        """The calls of a query."""
        from cocite.corpus.release.graph_query import cost_of_query

        return cost_of_query(self, manifest)

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Sentences that the API does not give for many papers at once, or a list that is not there."""
        yield from super().check_environment(key, config)
        if self.contexts is not None:
            yield f"{key}.contexts does not go with source: {self.source}, which requests no sentences; leave it out."
        if self.list is not None and not Path(self.list).is_file():
            yield f"{key}.list: there is no file {self.list}."
