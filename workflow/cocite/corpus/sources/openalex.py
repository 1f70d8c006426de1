"""A copy of OpenAlex, which needs no key: works are downloaded from a URL, or read from a folder."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import GivenPath, Url, Whole, as_json
from cocite.config.release_folder import DATASETS, WORKS
from cocite.config.source import FetchedSource, IdSpace, MatchedSource, Source, WorkFilters

if TYPE_CHECKING:
    from cocite.corpus.release.copies import Copy
    from cocite.corpus.release.manifest import CopiedShard, Manifest

BUCKET = "https://openalex.s3.amazonaws.com"
"""The public bucket, which is readable without an account."""
FOLDERS = {"parquet": "data/parquet", "jsonl": "data/jsonl", "legacy": "legacy-data"}
"""Format → the folder of its manifest in the bucket."""


class OpenAlex(FetchedSource, MatchedSource):
    """Downloads the works of a copy of OpenAlex, without a key, or reads a copy in a folder."""

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
    base: GivenPath | None = None
    """Results folder of an earlier run, of an older copy in the same format, that kept its ingested rows
    (keep_ingested) with the same filters, authors and number of buckets, and with match if it is set here. Of files
    that both copies have, the rows come from there; only the others are downloaded. Environment variables are
    expanded."""

    # The columns that are downloaded depend on whether the names of authors are among them.
    work_keys: ClassVar = (*(key for key in Source.work_keys if key != "authors"), "jobs", "filters")
    knows_latest: ClassVar = True
    marks_citations: ClassVar = False
    holds: ClassVar = {WORKS: DATASETS}
    # Generated works took 0.05, 0.17 and 0.05 (tests/benchmarks/works_columns.py); real abstracts may be longer.
    parquet_of_packed: ClassVar = {"papers": 0.06, "abstracts": 0.25, "citations": 0.06}
    parquet_of_columns: ClassVar[Mapping[str, float]] = {"papers": 0.15, "abstracts": 0.6, "citations": 0.16}
    """As parquet_of_packed, for each byte of the columns of Parquet; generated works took 0.13, 0.43 and 0.14."""
    authors_of_packed: ClassVar = 0.02
    ids_of_packed: ClassVar = 0.0

    def parts(self, dataset: str) -> int:
        """As many jobs as the configuration says."""
        return self.jobs

    def parquet_of_byte(self, table: str) -> float:
        """By the format."""
        return (self.parquet_of_columns if self.format == "parquet" else self.parquet_of_packed)[table]

    @property
    def whose_ids(self) -> IdSpace:
        """OpenAlex's."""
        return "openalex"

    @property
    def downloads(self) -> bool:
        """Unless the copy is in a folder."""
        return self.path is None

    @property
    def location(self) -> str:
        """The URL of the copy, or its folder."""
        return self.path or self.url or f"{BUCKET}/{FOLDERS[self.format]}"

    def first_asked(self, release: str) -> str | None:
        """The manifest, which is given to everyone."""
        from cocite.corpus.release.works_manifest import PLACES

        return f"{self.location.rstrip('/')}/{PLACES[self.format][0]}" if self.downloads else None

    def origin(self, results: Path) -> str:
        """The URL of the copy, or its folder."""
        return self._copy().origin

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of the works of the copy, which marks those that the base has; `latest` is pinned here.

        Raises `InputError` if the copy has no manifest or no works, or is of another day.
        """
        from cocite.corpus.release.copies import columns_downloaded
        from cocite.corpus.release.manifest import read_manifest
        from cocite.corpus.release.works_manifest import list_works, mark_known, with_columns

        listed = list_works(self._copy(), self.format, release)
        if self.format == "parquet":
            listed = with_columns(listed, self._copy(), columns_downloaded(authors=self.authors))
        if self.base is not None:
            listed = mark_known(listed, read_manifest(Path(self.base, "corpus/manifest.json")))
        return listed

    def fetch(
        self,
        manifest: "Manifest",
        dataset: str,
        shards: "Sequence[CopiedShard]",
        *,
        results: Path,
        state: Path,
        output: Path,
    ) -> None:
        """Download files, of Parquet the columns that are needed; link to those in a folder."""
        from cocite.corpus.release.copies import RemoteCopy, choose_columns, columns_downloaded, link_shards
        from cocite.corpus.release.download import download_shards, whole

        if self.path is not None:
            link_shards(Path(self.path), shards, output)
            return
        copy = RemoteCopy(self.location)
        paths = {shard.name: shard.path for shard in shards}
        choose = choose_columns(copy, columns_downloaded(authors=self.authors)) if self.format == "parquet" else whole
        download_shards(
            lambda shard, **span: copy.open(paths[shard], **span), shards, state=state, output=output, choose=choose
        )

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """How many files each job has."""
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
        yield from self.faults_of_match(f"{key}.match")
        if self.base is not None:
            yield from self.faults_of_base(f"{key}.base", Path(self.base), config.folders["results"])
            yield from self._differences(f"{key}.base", Path(self.base), config.folders["results"])

    def _differences(self, key: str, base: Path, results: Path) -> Iterator[str]:
        from cocite.plan.recorded import recorded_values

        recorded = None if (results / "corpus/manifest.json").is_file() else recorded_values(base)
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

    def _copy(self) -> "Copy":
        from cocite.corpus.release.copies import FolderCopy, RemoteCopy

        return RemoteCopy(self.location) if self.downloads else FolderCopy(Path(self.location))
