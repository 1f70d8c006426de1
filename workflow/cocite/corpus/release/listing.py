"""List a release, or the diffs that lead to one, at the Semantic Scholar Datasets API."""

from cocite.config.release_folder import DATASETS
from cocite.corpus.release.client import DatasetsApi, Storage
from cocite.corpus.release.manifest import Dataset, Manifest, Shard, check_datasets, check_shards
from cocite.corpus.release.remote import RemoteDataset, RemoteDiffs
from cocite.ground.errors import InputError
from cocite.ground.progress import progress


def list_whole(api: DatasetsApi, release: str) -> Manifest:
    """The manifest of a release, with every dataset that the pipeline needs; `latest` is pinned here.

    Raises `InputError` for a release or a dataset that the API does not have, and a key that is refused.
    """
    storage = Storage()
    description = api.release(release)
    pinned = description["release_id"]
    check_datasets(pinned, {dataset["name"] for dataset in description["datasets"]})
    datasets = {name: _list_dataset(RemoteDataset(api, storage, pinned, name), pinned, name) for name in DATASETS}
    return Manifest(release=pinned, datasets=datasets)


def list_diffs(api: DatasetsApi, release: str, since: Manifest) -> Manifest:
    """The manifest of the diffs from the release of another manifest to a later one.

    Raises `InputError` as `list_whole` does, and for a release that is not later.
    """
    storage = Storage()
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


def remote_dataset(api: DatasetsApi, manifest: Manifest, dataset: str) -> RemoteDataset:
    """A dataset of a listed release, or of listed diffs, to download from."""
    if manifest.since:
        return RemoteDiffs(api, Storage(), manifest.since, manifest.release, dataset)
    return RemoteDataset(api, Storage(), manifest.release, dataset)


def _list_dataset(remote: RemoteDataset, release: str, name: str) -> Dataset:
    names = remote.shard_names()
    check_shards(release, name, len(names))
    listed = progress(names, of=f"list {name}", unit="shards")
    return Dataset(shards=tuple(Shard(name=shard, bytes=remote.size(shard)) for shard in listed), readme=remote.readme)
