"""A release in a folder of the user's, in the layout of a release: its shards are read where they are."""

from pathlib import Path
from typing import ClassVar

from cocite.config.corpus import LATEST
from cocite.config.release_folder import DATASETS, find_shards, readme_of, stated_by
from cocite.corpus.release.manifest import Dataset, Manifest, Shard, check_datasets, check_shards
from cocite.corpus.sources.source import Source
from cocite.ground.errors import InputError


class Directory(Source):
    """The source `directory`."""

    downloads = False
    # Records with little else than what is kept. The release hci: 0.77, 1.03 and 0.38; synergy: 0.75, 1.03 and 0.39.
    parquet_of_packed: ClassVar = {"papers": 0.8, "abstracts": 1.05, "citations": 0.4}

    @property
    def origin(self) -> str:
        """The folder that the configuration names."""
        return str(self.corpus["path"])


def list_folder(folder: Path, release: str) -> Manifest:
    """The manifest of the release in a folder. Raises `InputError` where it is not there, or not whole."""
    if not folder.is_dir():
        raise InputError(f"The folder {folder} does not exist; it must hold a release.")
    pinned = _pin(folder, release)
    check_datasets(pinned, {child.name for child in folder.iterdir() if child.is_dir()})
    datasets = {}
    for name in DATASETS:
        files = find_shards(folder / name)
        check_shards(pinned, name, len(files))
        shards = tuple(Shard(name=file.name, bytes=file.stat().st_size) for file in files)
        datasets[name] = Dataset(shards=shards, readme=readme_of(folder / name))
    return Manifest(release=pinned, datasets=datasets)


def _pin(folder: Path, release: str) -> str:
    """The id of the release in a folder, which its release.json states, if it has one."""
    stated: str | None = stated_by(folder).get("release_id")
    if stated is None and release == LATEST:
        raise InputError(
            f"{folder / 'release.json'} does not say which release the folder holds; name it instead of `{LATEST}`."
        )
    if stated is not None and release not in (LATEST, stated):
        raise InputError(f"Release {release} does not exist in {folder}; it holds {stated}.")
    return stated or release
