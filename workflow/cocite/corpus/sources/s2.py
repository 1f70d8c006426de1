"""The Semantic Scholar Datasets API, asked with a key: whole releases, or the diffs since an earlier one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Entry, GivenPath, Url, Whole
from cocite.config.source import S2_KEY, FetchedSource, Source, turns_of

if TYPE_CHECKING:
    from cocite.corpus.release.manifest import Manifest, Shard

Shards = Annotated[int, Field(ge=1, le=10_000)]


class DatasetShards(Entry):
    """Shards that each dataset of a release has."""

    papers: Shards = 60
    """Shards of the dataset papers."""
    abstracts: Shards = 30
    """Shards of the dataset abstracts."""
    citations: Shards = 358
    """Shards of the dataset citations."""


class SemanticScholar(FetchedSource):
    """Downloads from the Semantic Scholar Datasets API with the key in S2_API_KEY."""

    source: Literal["s2"]
    """Source of the release."""
    api: Url = "https://api.semanticscholar.org/datasets/v1"
    """Base URL of the Datasets API, or of a mirror."""
    shards: DatasetShards = DatasetShards()
    """Number of shards of each dataset of the release; each is downloaded and ingested by a separate job. `cocite
    corpus plan` counts them. If a release has more of them, some jobs take several; if it has fewer, some have nothing
    to do."""
    base: GivenPath | None = None
    """Results folder of an earlier run, of an older release, that kept its ingested rows (keep_ingested) and has the
    same number of buckets. The release is then reached from there: only the diffs since then are downloaded, and shards
    are their files, which `cocite corpus plan` counts. Environment variables are expanded."""

    work_keys: ClassVar = (*Source.work_keys, "shards")
    updates_by_diffs: ClassVar = True
    knows_latest: ClassVar = True
    api_key: ClassVar = S2_KEY
    # A generated release of 20,000 papers, whose records have all the fields of real ones: 0.27, 0.76 and 0.20.
    parquet_of_packed: ClassVar = {"papers": 0.3, "abstracts": 0.8, "citations": 0.2}

    def parts(self, dataset: str) -> int:
        """As many jobs as the configuration says."""
        return int(getattr(self.shards, dataset))

    def first_asked(self, release: str) -> str:
        """The listing of papers, which is given to those with a key."""
        return f"{self.api.rstrip('/')}/release/{release}/dataset/papers"

    def origin(self, results: Path) -> str:
        """The base URL of the API."""
        return self.api

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of a release or, with a base, of the diffs that lead to it; `latest` is pinned here. Raises
        `InputError` for a release or a dataset that the API does not have, for a release that is not later than the
        base's, and for a key that is missing or refused."""
        from cocite.corpus.release.client import DatasetsApi, list_release
        from cocite.corpus.release.manifest import read_manifest

        since = None if self.base is None else read_manifest(Path(self.base, "corpus/manifest.json")).release
        return list_release(DatasetsApi(self.api, turns_of(results)), release, since)

    def fetch(
        self, manifest: "Manifest", dataset: str, shards: "Sequence[Shard]", *, results: Path, state: Path, output: Path
    ) -> None:
        """Download shards through links that the API signs."""
        from cocite.corpus.release.client import DatasetsApi, RemoteDataset
        from cocite.corpus.release.download import download_shards

        api = DatasetsApi(self.api, turns_of(results))
        remote = RemoteDataset(api, manifest.release, dataset, manifest.since)
        download_shards(remote.open, list(shards), state=state, output=output)

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """Whether the configured numbers of jobs are those of the shards, and otherwise what to configure."""
        if shards == self.shards.model_dump():
            return "corpus.shards of the configuration is right: each shard has its own job."
        return f"For one job per shard, configure corpus.shards: {json.dumps(shards).replace(chr(34), '')}"

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A release without a date, or a base that a release, its authors or its contexts cannot be reached from."""
        yield from super().check_environment(key, config)
        if self.base is not None:
            for name in ("authors", "contexts"):
                if getattr(self, name):
                    updated = f"diffs update no {name}; ingest the release whole"
                    yield f"{key}.{name} does not go together with base: {updated}."
            yield from self.faults_of_base(f"{key}.base", Path(self.base), config.folders["results"])
