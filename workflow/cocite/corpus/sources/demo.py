"""The generated release of the demo: downloaded from a served API, and estimated before it is made."""

from pathlib import Path
from typing import ClassVar

from cocite.config.release_folder import DATASETS
from cocite.corpus.release.manifest import Dataset, Manifest, Shard
from cocite.corpus.sources.source import Source

PACKED_OF_PAPER = {"papers": 80, "abstracts": 80, "citations": 320}
"""Bytes of each dataset for each paper of a generated release: 79, 79 and 315 for 20,000 papers."""


class Demo(Source):
    """The source `demo`."""

    # The generated release of 20,000 papers took 0.27, 0.76 and 0.20.
    parquet_of_packed: ClassVar = {"papers": 0.3, "abstracts": 0.8, "citations": 0.2}

    @property
    def origin(self) -> str:
        """The folder of the generated release, which a plan lists there; the jobs fetch it from the demo's server."""
        return str(self._folder)

    def imagined(self) -> Manifest | None:
        """About what the generator will write, until it has written it."""
        if self._folder.is_dir():
            return None
        papers, shards = (self.corpus["demo"][key] for key in ("papers", "shards"))
        datasets = {
            name: Dataset(
                shards=tuple(
                    Shard(name=f"{number}.gz", bytes=papers * PACKED_OF_PAPER[name] // shards)
                    for number in range(shards)
                ),
                readme="",
            )
            for name in DATASETS
        }
        return Manifest(release=self.release, datasets=datasets)

    @property
    def _folder(self) -> Path:
        return self.results / "demo/release"
