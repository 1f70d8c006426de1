"""The generated release of the demo."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Entry
from cocite.config.source import FetchedSource
from cocite.core.atomic import atomic_path
from cocite.corpus.sources.directory import list_folder

if TYPE_CHECKING:
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
    """Generates a small release."""

    source: Literal["demo"]
    """Source of the release."""
    demo: GeneratedRelease = GeneratedRelease()
    """The release that is generated."""

    downloads: ClassVar = False
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
        return list_folder(results / RELEASE, release)

    def fetch(
        self, manifest: "Manifest", dataset: str, shards: "Sequence[Shard]", *, results: Path, state: Path, output: Path
    ) -> None:
        """Copy shards of the release."""
        with atomic_path(output) as folder:
            folder.mkdir()
            for shard in shards:
                shutil.copyfile(results / RELEASE / dataset / shard.name, folder / shard.name)

    def imagined(self, release: str, results: Path) -> "Manifest | None":
        """About what the generator will write, until it has written it."""
        from cocite.corpus.release.manifest import Dataset, Manifest, Shard

        if (results / RELEASE).is_dir():
            return None
        datasets = {}
        for name, of_paper in PACKED_OF_PAPER.items():
            size = self.demo.papers * of_paper // self.demo.shards
            shards = tuple(Shard(name=f"{number}.gz", bytes=size) for number in range(self.demo.shards))
            datasets[name] = Dataset(shards=shards, readme="")
        return Manifest(release=release, datasets=datasets)

    @property
    def largest_index(self) -> int:
        """The papers that are generated."""
        return self.demo.papers
