"""OpenAlex: the works of a copy, which needs no key, from a URL or a folder; or those of a query or list, from the API.

A query or a list of papers is one job, which makes one request after the other and one file of works, in the layout of
a copy.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from cocite.config.entries import Count, GivenPath, Text, Url, Whole, as_json, inconsistent
from cocite.config.release_folder import DATASETS, WORKS
from cocite.config.source import OPENALEX_KEY, ApiKey, Expansion, FetchedSource, MatchedSource, Source, WorkFilters

if TYPE_CHECKING:
    from cocite.corpus.release.copies import Copy
    from cocite.corpus.release.manifest import Manifest

BUCKET = "https://openalex.s3.amazonaws.com"
"""The public bucket, which is readable without an account."""
API = "https://api.openalex.org"
A_LIST = "works?per_page=1&select=id"
"""What the API gives to those with a key."""
FOLDERS = {"parquet": "data/parquet", "jsonl": "data/jsonl", "legacy": "legacy-data"}
"""Format → the folder of its manifest in the bucket."""


class OpenAlex(FetchedSource, MatchedSource):
    """Downloads the works of a copy of OpenAlex, without a key, or reads a copy in a folder; or requests the works that
    match a query, or are in a list of papers, from the API, with the key in OPENALEX_API_KEY."""

    source: Literal["openalex"]
    """Source of the release."""
    format: Literal["parquet", "jsonl", "legacy"] = "parquet"
    """Format of the copy: Parquet, of which only the needed columns are downloaded; JSON Lines; or the older layout,
    JSON Lines with another form of manifest."""
    url: Url | None = None
    """URL of the folder with manifest.json (in the older layout, works/manifest). Default: the public bucket,
    https://openalex.s3.amazonaws.com with /data/parquet, /data/jsonl or /legacy-data."""
    path: GivenPath | None = None
    """A local folder of this form, read in place of url. Environment variables are expanded."""
    jobs: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Jobs that share the files of works: each downloads some, and another one ingests them."""
    filters: WorkFilters = WorkFilters()
    """Filters of works."""
    filter: Text | None = None
    """Filter of OpenAlex's API, such as primary_topic.id:T10102,publication_year:2005-2026: only the works that match
    are requested, from the API and not from a copy."""
    search: Text | None = None
    """Words to search for, as the API's parameter search; combined with filter, or without it. Calls cost ten times as
    much."""
    list: GivenPath | None = None
    """File with a list of papers, which are requested from the API in place of a query: text with one id per line, CSV
    with a column doi, openalex, pmid or arxiv, BibTeX, RIS or CSL JSON. Papers are looked up by DOI or by the id of
    OpenAlex, PubMed or arXiv; the table unresolved lists the others. Environment variables are expanded."""
    limit: Count | None = None
    """Most works that filter and search may match; if more match, the run stops before any is fetched. Default:
    100,000."""
    expand: Expansion | None = None
    """Works to add to those that match or are listed; {} adds those that they cite. Default: none."""
    api: Url | None = None
    """Base URL of the API, or of a mirror. Default: https://api.openalex.org."""
    base: GivenPath | None = None
    """Results folder of an earlier run, of an older copy in the same format, that kept its ingested rows
    (keep_ingested) with the same filters, authors and number of buckets, and with match if it is set here. Of files
    that both copies have, the rows come from there; only the others are downloaded. Environment variables are
    expanded."""

    # The columns that are downloaded depend on whether the names of authors are among them.
    work_keys: ClassVar = (*(key for key in Source.work_keys if key != "authors"), "jobs", "filters")
    whose_ids: ClassVar = "openalex"
    knows_latest: ClassVar = True
    marks_citations: ClassVar = False
    holds: ClassVar = {WORKS: DATASETS}
    # Generated works took 0.05, 0.17 and 0.05 (tests/benchmarks/works_columns.py); real abstracts may be longer.
    parquet_of_packed: ClassVar = {"papers": 0.06, "abstracts": 0.25, "citations": 0.06}
    parquet_of_columns: ClassVar[Mapping[str, float]] = {"papers": 0.15, "abstracts": 0.6, "citations": 0.16}
    """As parquet_of_packed, for each byte of the columns of Parquet; generated works took 0.13, 0.43 and 0.14."""
    authors_of_packed: ClassVar = 0.02
    ids_of_packed: ClassVar = 0.0

    @model_validator(mode="after")
    def _copy_or_query(self) -> "OpenAlex":
        named = {name for name in ("filter", "search", "limit", "expand", "api") if getattr(self, name) is not None}
        if self.list is not None and (useless := sorted(named - {"expand", "api"})):
            raise inconsistent(f".{useless[0]} does not go together with list; leave one of them out.")
        if not self.is_query and named:
            raise inconsistent(f".{min(named)} has no effect without filter, search or list; add one, or leave it out.")
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        of_copy = ("format", "url", "path", "jobs", "base")
        if self.is_query and (useless := [name for name in of_copy if getattr(self, name) != defaults[name]]):
            raise inconsistent(f".{useless[0]} is for a copy and has no effect with filter, search or list.")
        return self

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the API that select works."""
        return {name: value for name in ("filter", "search") if (value := getattr(self, name)) is not None}

    @property
    def is_query(self) -> bool:
        """Whether works are requested from the API."""
        return bool(self.query) or self.list is not None

    @property
    def list_of_papers(self) -> str | None:
        """The key `list`."""
        return self.list

    @property
    def api_key(self) -> ApiKey | None:
        """OpenAlex's, for a query."""
        return OPENALEX_KEY if self.is_query else None

    def parts(self, dataset: str) -> int:
        """As many jobs as the configuration says; one for a query, as the API takes one request at a time."""
        return 1 if self.is_query else self.jobs

    def parquet_of_byte(self, table: str) -> float:
        """By the format."""
        return (self.parquet_of_columns if self.format == "parquet" else self.parquet_of_packed)[table]

    @property
    def downloads(self) -> bool:
        """Unless the copy is in a folder."""
        return self.path is None

    @property
    def location(self) -> str:
        """The URL of the API, or of the copy, or its folder."""
        if self.is_query:
            return self.api or API
        return self.path or self.url or f"{BUCKET}/{FOLDERS[self.format]}"

    def first_asked(self, release: str) -> str | None:
        """The manifest, which is given to everyone, or a list of works, which the API gives to those with a key."""
        if self.is_query:
            return f"{self.location.rstrip('/')}/{A_LIST}"
        from cocite.corpus.release.copies import PLACES

        return f"{self.location.rstrip('/')}/{PLACES[self.format][0]}" if self.downloads else None

    def origin(self, results: Path) -> str:
        """The list of papers, or the URL of the API or of the copy, or its folder."""
        return self.list or (self.location if self.is_query else self._copy().origin)

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of the works of the copy, which marks those that the base has; `latest` is pinned here. Raises
        `InputError` if the copy has no manifest or no works, or is of another day; or if a query matches no work or too
        many, or a list has no ids."""
        if self.is_query:
            from cocite.corpus.release.works_query import list_query

            return list_query(self, release)
        from cocite.corpus.release.copies import columns_downloaded, list_works, mark_known, with_columns
        from cocite.corpus.release.manifest import read_manifest

        listed = list_works(self._copy(), self.format, release)
        if self.format == "parquet":
            listed = with_columns(listed, self._copy(), columns_downloaded(authors=self.authors))
        if self.base is not None:
            listed = mark_known(listed, read_manifest(Path(self.base, "corpus/manifest.json")))
        return listed

    def fetch(
        self, manifest: "Manifest", dataset: str, shards: Sequence[Any], *, results: Path, state: Path, output: Path
    ) -> None:
        """Download files, of Parquet the columns that are needed; link to those in a folder; or request a query."""
        if self.is_query:
            from cocite.corpus.release.works_query import fetch_query

            fetch_query(self, manifest, results=results, state=state, output=output)
            return
        from cocite.corpus.release.copies import RemoteCopy, choose_columns, columns_downloaded, link_shards
        from cocite.corpus.release.download import download_shards, whole

        if self.path is not None:
            link_shards(Path(self.path), shards, output)
            return
        copy = RemoteCopy(self.location)
        paths = {shard.name: shard.path for shard in shards}
        choose = choose_columns(copy, columns_downloaded(authors=self.authors)) if self.format == "parquet" else whole
        folders = {"state": state, "output": output}
        download_shards(lambda shard, **span: copy.open(paths[shard], **span), shards, choose=choose, **folders)

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """How many files each job has."""
        if self.is_query:
            return "One job requests all works; corpus.filters leave out some of them."
        each = -(-shards[WORKS] // self.jobs)
        files = "one file" if each == 1 else f"up to {each} files"
        return f"The {self.jobs} jobs of corpus.jobs have {files} each; filters leave out some of what they read."

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder that is not there, sentences that OpenAlex has not, or a base that was made otherwise."""
        yield from super().check_environment(key, config)
        if self.path is not None and self.url is not None:
            yield f"{key}.url and {key}.path do not go together; name the copy that is meant."
        if self.path is not None and not Path(self.path).is_dir():
            yield f"{key}.path: the folder {self.path} does not exist."
        if self.contexts is not None:
            yield f"{key}.contexts does not go with source: openalex, which has no sentences that cite; leave it out."
        if self.list is not None and not Path(self.list).is_file():
            yield f"{key}.list: there is no file {self.list}."
        yield from self.faults_of_match(f"{key}.match")
        if self.base is not None:
            base, results = Path(self.base), config.folders["results"]
            yield from self.faults_of_base(f"{key}.base", base, results)
            if not (results / "corpus/manifest.json").is_file():
                yield from self._differences(f"{key}.base", base)

    def _differences(self, key: str, base: Path) -> Iterator[str]:
        from cocite.plan.recorded import recorded_values

        recorded = recorded_values(base)
        if recorded is None:
            return
        corpus = recorded["corpus"]
        for name in ("source", "format", "filters", "authors"):
            now: Any = as_json(getattr(self, name))
            if corpus.get(name) != now:
                yield f"{key}: {base} was made with corpus.{name}: {corpus.get(name)}, but here it is {now}."
        if ("match" in corpus) != (self.match is not None):
            made = "with" if "match" in corpus else "without"
            yield f"{key}: {base} was made {made} corpus.match, which decides on MAG ids; do the same here."

    def cost_in_words(self, manifest: "Manifest") -> str:
        """The calls of a query; nothing for a copy."""
        if not self.is_query:
            return ""
        from cocite.corpus.release.works_query import cost_of_query

        return cost_of_query(self, manifest)

    def _copy(self) -> "Copy":
        from cocite.corpus.release.copies import FolderCopy, RemoteCopy

        return RemoteCopy(self.location) if self.downloads else FolderCopy(Path(self.location))
