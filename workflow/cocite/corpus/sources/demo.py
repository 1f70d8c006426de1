"""The generated release of the demo: served on this machine as the Datasets API does, and downloaded from there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Entry
from cocite.config.release_folder import DATASETS
from cocite.config.source import FetchedSource

if TYPE_CHECKING:
    from cocite.corpus.release.client import DatasetsApi
    from cocite.corpus.release.manifest import Manifest, Shard


RELEASE = "demo/release"
"""Path of the generated release in the results."""
PACKED_OF_PAPER = {"papers": 80, "abstracts": 95, "citations": 500}
"""Bytes of each dataset for each paper of a generated release: 79, 94 and 499 for 20,000 papers."""


class GeneratedRelease(Entry):
    """The release that the source demo generates."""

    papers: Annotated[int, Field(ge=200, le=200_000)] = 3000
    """Number of papers."""
    topics: Annotated[int, Field(ge=2, le=64)] = 24
    """Number of topics that papers and citations follow."""
    shards: Annotated[int, Field(ge=1, le=100)] = 3
    """Shards of each dataset."""


class Demo(FetchedSource):
    """Generates a small release and downloads it from a local server."""

    source: Literal["demo"]
    """Source of the release."""
    demo: GeneratedRelease = GeneratedRelease()
    """The release that is generated."""

    # The generated release of 20,000 papers took 0.27, 0.76 and 0.20.
    parquet_of_packed: ClassVar = {"papers": 0.3, "abstracts": 0.8, "citations": 0.2}

    def parts(self, dataset: str) -> int:
        """A job for each shard."""
        return self.demo.shards

    def origin(self, results: Path) -> str:
        """The folder of the generated release."""
        return str(results / RELEASE)

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of the release, once it is generated."""
        from cocite.corpus.release.client import list_release

        with _served(results) as api:
            return list_release(api, release)

    def fetch(
        self, manifest: "Manifest", dataset: str, shards: "Sequence[Shard]", *, results: Path, state: Path, output: Path
    ) -> None:
        """Download shards from the server."""
        from cocite.corpus.release.client import remote_dataset
        from cocite.corpus.release.download import download_shards

        with _served(results) as api:
            remote = remote_dataset(api, manifest.release, manifest.since, dataset)
            download_shards(remote.open, list(shards), state=state, output=output)

    def imagined(self, release: str, results: Path) -> "Manifest | None":
        """About what the generator will write, until it has written it."""
        from cocite.corpus.release.manifest import Dataset, Manifest, Shard

        if (results / RELEASE).is_dir():
            return None
        datasets = {}
        for name in DATASETS:
            size = self.demo.papers * PACKED_OF_PAPER[name] // self.demo.shards
            shards = (Shard(name=f"{number}.gz", bytes=size) for number in range(self.demo.shards))
            datasets[name] = Dataset(shards=tuple(shards), readme="")
        return Manifest(release=release, datasets=datasets)

    @property
    def largest_index(self) -> int:
        """The papers that are generated."""
        return self.demo.papers


@contextmanager
def _served(results: Path) -> "Iterator[DatasetsApi]":
    """The API that serves the generated release, as long as it is asked."""
    from cocite.corpus.release.client import DatasetsApi
    from cocite.corpus.release.local_server import serve
    from cocite.corpus.sources.s2 import turns_of

    with serve(results / RELEASE) as url:
        yield DatasetsApi(url, turns_of(results), key="any")
