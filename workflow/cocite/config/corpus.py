"""The section `corpus`: where the release comes from, and how it is cut for work."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cocite.config.entries import Entry, GivenPath, Url, Whole
from cocite.config.explained import shown
from cocite.config.folders import folders_of
from cocite.config.release_folder import DATASETS, ENDINGS, find_shards, stated_by
from cocite.ground.errors import InputError

LATEST = "latest"
NAME_OF_RELEASE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"

Shards = Annotated[int, Field(ge=1, le=10_000)]


class DatasetShards(Entry):
    """Shards that each dataset of a release has."""

    papers: Shards = 60
    """Shards of the dataset papers."""
    abstracts: Shards = 30
    """Shards of the dataset abstracts."""
    citations: Shards = 358
    """Shards of the dataset citations."""


class GeneratedRelease(Entry):
    """The release that the source demo generates."""

    papers: Annotated[int, Field(ge=200, le=200_000)] = 3000
    """Number of papers."""
    topics: Annotated[int, Field(ge=2, le=64)] = 24
    """Number of topics that papers and citations follow."""
    shards: Annotated[int, Field(ge=1, le=100)] = 3
    """Shards of each dataset."""


class Corpus(Entry):
    """What every source has in common."""

    buckets: Annotated[int, Field(ge=1, le=1024)] = 2
    """Buckets that big tables are sharded into; jobs of their own work on each."""
    malformed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Largest share of the lines of a dataset that may be malformed (not JSON, without an id, with a list in place of a
    text) before the run stops; with base, of the lines of its diffs."""
    keep_ingested: bool = False
    """Keep the ingested rows, in all their copies and with their ids; otherwise they are dropped once they are merged.
    A later release can then be reached from them, as its base. If it is switched on after that, the shards are
    downloaded and ingested again."""

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """A release that has no date."""
        if config.release == LATEST:
            yield f"release is {LATEST}, which only the source s2 can tell; name the release."
        elif not _is_date(config.release):
            yield (
                f"release is {shown(config.release)}, which is no date of the calendar; releases of the source "
                f"{config.corpus.source} have dates, such as 2026-01-06."
            )

    @property
    def largest_index(self) -> int | None:
        """Upper bound of the papers that can have an edge, where the release says enough to tell."""
        return None


class Downloaded(Corpus):
    """What sources that are downloaded have in common."""

    keep_raw: bool = False
    """Keep the downloaded shards; otherwise they are dropped once they are ingested. If it is switched on after
    that, it has no effect until they are downloaded again."""


class SemanticScholar(Downloaded):
    """Downloads from the Semantic Scholar Datasets API with the key in S2_API_KEY."""

    source: Literal["s2"]
    """Where the release comes from."""
    api: Url = "https://api.semanticscholar.org/datasets/v1"
    """Base URL of the Datasets API; a mirror can stand in."""
    shards: DatasetShards = DatasetShards()
    """Shards that each dataset of the release has: each is downloaded and ingested by a job of its own. `cocite corpus
    plan` counts them. If a release has more of them, some jobs take several; if it has fewer, some have nothing to
    do."""
    base: GivenPath | None = None
    """Results folder of an earlier run, of an older release, that kept its ingested rows (keep_ingested) and has the
    same number of buckets. The release is then reached from there: only the diffs since then are downloaded, and
    shards are their files, which `cocite corpus plan` counts. Variables of the environment are filled in."""

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """A release without a date, or a base that a release cannot be reached from."""
        if config.release != LATEST:
            yield from super().faults(key, config)
        if self.base is not None:
            yield from self._faults_of_base(
                f"{key}.base", Path(self.base), folders_of(config.pathvars_as_given)["results"]
            )

    def _faults_of_base(self, key: str, base: Path, results: Path) -> Iterator[str]:
        if base.resolve() == results.resolve():
            yield f"{key}: {base} is this run's own results folder; name another in pathvars.results."
        if (results / "corpus" / "manifest.json").is_file():
            return  # The base has served, and may be gone; if not, the steps that need it say so.
        if not (base / "corpus" / "manifest.json").is_file():
            yield f"{key}: {base} is not the results folder of an earlier run (no corpus/manifest.json)."
        for dataset in DATASETS:
            if not any((base / "corpus" / "ingested" / dataset).glob("*.parquet")):
                yield (
                    f"{key}: the run in {base} did not keep its ingested rows (no corpus/ingested/{dataset}/*.parquet)"
                    "; it must have corpus.keep_ingested: true."
                )
        buckets = len(list((base / "corpus" / "citations").glob("*.parquet")))
        if buckets not in (0, self.buckets):
            yield f"{key}: {base} has {buckets} buckets, but corpus.buckets is {self.buckets}."


class Directory(Corpus):
    """Reads a folder in the layout of a release."""

    source: Literal["directory"]
    """Where the release comes from."""
    path: GivenPath
    """Folder of the release. Variables of the environment are filled in."""

    def faults(self, key: str, config: Whole) -> Iterator[str]:
        """A release whose name no folder can have, and a folder that is not that of the release, or is written to."""
        if config.release == LATEST:
            yield from super().faults(key, config)
        elif not re.fullmatch(NAME_OF_RELEASE, config.release):
            yield (
                f"release is {shown(config.release)}; the name of a release has letters from a to z (also capitals), "
                "digits, dots, hyphens and underscores, starts with a letter or a digit, and is at most 100 characters "
                "long."
            )
        else:
            yield from self._faults_of_folder(f"{key}.path", Path(self.path), config.release)
            yield from _mixed_up(Path(self.path), folders_of(config.pathvars_as_given))

    def _faults_of_folder(self, key: str, folder: Path, release: str) -> Iterator[str]:
        if not folder.is_dir():
            yield f"{key}: the folder {folder} does not exist."
            return
        for dataset in DATASETS:
            try:
                shards = find_shards(folder / dataset)
            except InputError as error:
                yield f"{key}: {error}"
                continue
            if not shards:
                yield (
                    f"{key}: the release in {folder} lacks the dataset {dataset} (no file in {folder / dataset} that "
                    f"ends in {ENDINGS})."
                )
        stated = stated_by(folder).get("release_id")
        if stated is not None and stated != release:
            yield f"release is {release}, but {folder} holds the release {stated}."

    @property
    def largest_index(self) -> int | None:
        """The papers and citations that the release states to have, where it does."""
        stated = stated_by(Path(self.path))
        counts: list[Any] = [stated.get(dataset) for dataset in ("papers", "citations")]
        return sum(counts) if all(type(count) is int and count >= 0 for count in counts) else None


class Demo(Downloaded):
    """Generates a small release and downloads it from a local server."""

    source: Literal["demo"]
    """Where the release comes from."""
    demo: GeneratedRelease = GeneratedRelease()
    """The release that is generated."""

    @property
    def largest_index(self) -> int:
        """The papers that are generated."""
        return self.demo.papers


Source = Annotated[SemanticScholar | Directory | Demo, Field(discriminator="source")]


def _is_date(text: str) -> bool:
    """Whether a text is a day of the calendar, such as 2026-01-06."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _mixed_up(release: Path, folders: dict[str, Path]) -> Iterator[str]:
    """Folders of a run that lie where the release lies, so that it would be written to or removed."""
    for name, folder in folders.items():
        key = f"pathvars.{name}: the folder {folder}"
        if folder.resolve().is_relative_to(release.resolve()):
            yield f"{key} lies in the release in {release}, which would be mixed up with it; name another."
        elif name == "results" and release.resolve().is_relative_to(folder.resolve()):
            yield f"{key} holds the release in {release}; a run removes files from its results, so name another."
