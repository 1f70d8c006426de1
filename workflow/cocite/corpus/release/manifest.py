"""The manifest: the shards of a release, pinned once, so that every later job works on the same files.

It has names and sizes and never a link, which would expire after some hours. A job of part p of n takes every n-th
shard in the order of the names.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cocite.config.release_folder import DATASETS, ENDINGS, WORKS
from cocite.core.atomic import read_json, write_json
from cocite.core.errors import InputError

DatasetName = Annotated[str, typer.Argument(help="papers, abstracts or citations.")]
ManifestFile = Annotated[Path, typer.Option("--manifest", help="Manifest from `cocite corpus list`.")]
Part = Annotated[int, typer.Option(help="Number of the part of the shards to process, from 0.")]
Parts = Annotated[int, typer.Option(help="Number of parts; each takes every n-th shard.")]


@dataclass(frozen=True, kw_only=True, order=True)
class Shard:
    """One gzipped file of a dataset, such as 20260101_000000_00000_papers.gz."""

    name: str
    bytes: int
    """Length of the packed file."""
    estimated: bool = False
    """Whether the length is an estimate, as for a file that is converted during the download."""

    @property
    def to_fetch(self) -> int:
        """Bytes of it that are fetched."""
        return self.bytes


@dataclass(frozen=True, kw_only=True, order=True)
class DiffShard(Shard):
    """One gzipped file of a diff of a dataset."""

    step: int
    """Number of the diff, from 1: a later one overrides an earlier one."""
    deletes: bool
    """Whether it lists records to delete, or has records to insert or replace."""


@dataclass(frozen=True, kw_only=True, order=True)
class CopiedShard(Shard):
    """One file of works in a copy of OpenAlex."""

    path: str
    """Its path in the copy, such as works/updated_date=2026-06-24/part_0000.parquet."""
    records: int
    """Number of its works."""
    needed: int
    """Bytes of it that a corpus needs; for Parquet an estimate."""
    in_base: bool = False
    """Whether the base has its rows, so that it is not fetched."""

    @property
    def to_fetch(self) -> int:
        """Bytes of it that are fetched."""
        return 0 if self.in_base else self.needed


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset of a release; its shards come in the order of their names."""

    shards: tuple[Shard, ...]
    readme: str
    """Its README in the release: schema, licence, whom to cite."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A release as it was when it was listed, with its id, a date, and its datasets, by name."""

    release: str
    datasets: Mapping[str, Dataset]
    since: str | None = None
    """The earlier release that the diffs start from, if the shards are diffs; none for a whole release."""


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write the manifest as JSON; the same release gives the same file."""
    content = asdict(manifest)
    for dataset in content["datasets"].values():
        for shard in dataset["shards"]:
            for exceptional in {"estimated", "in_base"} & {name for name, value in shard.items() if not value}:
                del shard[exceptional]
    write_json(path, content)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. Raises `InputError` if the file is missing, not a manifest or lacks a dataset."""
    again = "delete it and run again, which lists the release."
    try:
        content: Any = read_json(path)
        kind = DiffShard if content.get("since") else Shard
        datasets = {}
        for name, entry in content["datasets"].items():
            shards = ((CopiedShard if "path" in shard else kind)(**shard) for shard in entry["shards"])
            datasets[name] = Dataset(shards=tuple(sorted(shards)), readme=entry["readme"])
        manifest = Manifest(release=content["release"], datasets=datasets, since=content.get("since"))
    except InputError as error:
        raise InputError(f"{str(error).rstrip('.')}; {again}") from None
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: is not a manifest; {again}") from None
    for name in DATASETS:
        if name not in datasets and WORKS not in datasets:
            raise InputError(f"{path}: lacks the dataset {name}; {again}")
    return manifest


def shards_of_part(manifest: Manifest, dataset: str, *, part: int, parts: int, in_base: bool = False) -> list[Shard]:
    """The shards that a part (from 0) works on: those to fetch, or those whose rows the base has."""
    if dataset not in manifest.datasets:
        raise InputError(f"The manifest of release {manifest.release} lacks the dataset {dataset}; list it again.")
    if not 0 <= part < parts:
        raise InputError(f"--part {part} must be from 0 to {parts - 1}, one less than --parts.")
    shards = manifest.datasets[dataset].shards
    return sorted(shard for shard in shards if getattr(shard, "in_base", False) == in_base)[part::parts]


def lacks_dataset(release: str, name: str) -> InputError:
    """The error for a release without a dataset that the pipeline needs, or without a shard of it."""
    required = f"a file that ends in {ENDINGS}); it must have {', '.join(DATASETS)}."
    return InputError(f"Release {release} lacks the dataset {name}, or has no shard of it ({required}")
