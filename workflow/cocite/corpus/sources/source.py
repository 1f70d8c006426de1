"""What the rest of the corpus asks of a source.

A source is one module with one subclass of `Source`. The jobs see an origin, the base URL of an API or a folder, and no
source: the demo's release is listed and downloaded from a served API like a real one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from cocite.corpus.release.manifest import Manifest


class Source(ABC):
    """The source of a run's corpus."""

    downloads: ClassVar[bool] = True
    """Whether shards are downloaded to the results; otherwise they are read where they are, and listed by each run."""
    needs_key: ClassVar[bool] = False
    """Whether the API asks for the user's key."""
    parquet_of_packed: ClassVar[Mapping[str, float]]
    """Bytes of Parquet for each byte of a packed shard, by dataset: an estimate that errs on the side of too much. In
    the releases that it comes from, the merged tables took 0.74 to 0.99 of that; more copies make it less."""

    def __init__(self, config: Mapping[str, Any], results: Path) -> None:
        """Of a resolved configuration, whose results are in the folder `results`."""
        self.release: str = config["release"]
        self.corpus: Mapping[str, Any] = config["corpus"]
        self.results = results

    @property
    @abstractmethod
    def origin(self) -> str:
        """The base URL of an API, or the folder of a release."""

    def parts(self, dataset: str, shards: int) -> int:
        """Jobs that a dataset of so many shards is ingested by: one a shard, unless the source says otherwise."""
        return shards

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """What a plan says of the jobs, given the number of shards of each dataset."""
        return f"Each of the {sum(shards.values())} shards is ingested by a job of its own."

    def imagined(self) -> Manifest | None:
        """About what the release will be, where it is yet to be made; None where it can be listed."""
        return None
