"""The Semantic Scholar Datasets API, asked with a key: whole releases, or the diffs since an earlier one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from cocite.config.release_folder import DATASETS
from cocite.corpus.release.client import DatasetsApi, Storage
from cocite.corpus.release.manifest import Dataset, Manifest, Shard, check_datasets, check_shards
from cocite.corpus.release.remote import RemoteDataset, RemoteDiffs
from cocite.corpus.sources.source import Source
from cocite.ground.errors import InputError
from cocite.ground.progress import progress


class S2(Source):
    """The source `s2`."""

    needs_key = True

    # A generated release of 20,000 papers, whose records have all the fields of real ones: 0.27, 0.76 and 0.20.
    parquet_of_packed: ClassVar = {"papers": 0.3, "abstracts": 0.8, "citations": 0.2}

    @property
    def origin(self) -> str:
        """The base URL that the configuration names."""
        return str(self.corpus["api"])

    def parts(self, dataset: str, shards: int) -> int:
        """As many jobs as the configuration says: they are planned before the release is listed."""
        return int(self.corpus["shards"][dataset])

    def jobs_in_words(self, shards: Mapping[str, int]) -> str:
        """Whether the configured numbers of jobs are those of the shards, and otherwise what to configure."""
        if shards == self.corpus["shards"]:
            return "corpus.shards of the configuration is right: each shard has a job of its own."
        return f"For a job a shard, configure corpus.shards: {json.dumps(shards).replace(chr(34), '')}"


def list_api(origin: str, release: str, *, turns: Path) -> Manifest:
    """The manifest of a release at the API with the base URL `origin`.

    Raises `InputError` for a release or a dataset that the API does not have, and a key that is missing or refused.
    """
    api, storage = DatasetsApi(origin, turns), Storage()
    description = api.release(release)
    pinned = description["release_id"]
    check_datasets(pinned, {dataset["name"] for dataset in description["datasets"]})
    datasets = {name: _list_dataset(RemoteDataset(api, storage, pinned, name), pinned, name) for name in DATASETS}
    return Manifest(release=pinned, datasets=datasets)


def list_diffs(origin: str, release: str, since: Manifest, *, turns: Path) -> Manifest:
    """The manifest of the diffs from the release of another manifest to a later one.

    Raises `InputError` as `list_api` does, and for a release that is not later.
    """
    api, storage = DatasetsApi(origin, turns), Storage()
    description = api.release(release)
    pinned = description["release_id"]
    if pinned <= since.release:
        raise InputError(f"Release {pinned} is not later than {since.release}, so no diffs lead to it from there.")
    readmes = {dataset["name"]: dataset["README"] for dataset in description["datasets"]}
    check_datasets(pinned, set(readmes))
    datasets = {}
    for name in DATASETS:
        shards = RemoteDiffs(api, storage, since.release, pinned, name).shards()
        listed = progress(shards, of=f"list diffs of {name}", unit="files")
        datasets[name] = Dataset(shards=tuple(sorted(listed)), readme=readmes[name])
    return Manifest(release=pinned, datasets=datasets, since=since.release)


def _list_dataset(remote: RemoteDataset, release: str, name: str) -> Dataset:
    names = remote.shard_names()
    check_shards(release, name, len(names))
    listed = progress(names, of=f"list {name}", unit="shards")
    return Dataset(shards=tuple(Shard(name=shard, bytes=remote.size(shard)) for shard in listed), readme=remote.readme)
