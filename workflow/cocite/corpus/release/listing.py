"""List the shards of a release: from the API, or from a folder in the layout of a release.

Out comes a manifest with every dataset that the pipeline needs; `latest` is resolved here, once, and pinned.
"""

from pathlib import Path

from cocite.config.consistent_corpus import LATEST
from cocite.config.release_folder import DATASETS, ENDINGS, find_shards, readme_of, stated_by
from cocite.corpus.release.client import DatasetsApi, Storage
from cocite.corpus.release.manifest import Dataset, Manifest, Shard
from cocite.corpus.release.remote import RemoteDataset
from cocite.ground.errors import InputError
from cocite.ground.progress import progress


def list_release(origin: str, release: str, *, turns: Path) -> Manifest:
    """The manifest of a release. `origin` is the API's base URL, which is asked in `turns`, or a folder.

    Raises `InputError` for a release that the origin does not have, a dataset that the release lacks, and a key that
    is missing or refused.
    """
    return _list_api(DatasetsApi(origin, turns), release) if is_url(origin) else _list_folder(Path(origin), release)


def is_url(origin: str) -> bool:
    """Whether an origin is an API and not a folder."""
    return origin.startswith(("http://", "https://"))


def _list_api(api: DatasetsApi, release: str) -> Manifest:
    description = api.release(release)
    pinned = description["release_id"]
    check_datasets(pinned, {dataset["name"] for dataset in description["datasets"]})
    storage = Storage()
    datasets = {name: _list_dataset(RemoteDataset(api, storage, pinned, name), pinned, name) for name in DATASETS}
    return Manifest(release=pinned, datasets=datasets)


def _list_dataset(remote: RemoteDataset, release: str, name: str) -> Dataset:
    names = remote.shard_names()
    _check_shards(release, name, len(names))
    listed = progress(names, of=f"list {name}", unit="shards")
    return Dataset(shards=tuple(Shard(name=shard, bytes=remote.size(shard)) for shard in listed), readme=remote.readme)


def _list_folder(folder: Path, release: str) -> Manifest:
    if not folder.is_dir():
        raise InputError(f"The folder {folder} does not exist; it must hold a release.")
    pinned = _pin(folder, release)
    check_datasets(pinned, {child.name for child in folder.iterdir() if child.is_dir()})
    datasets = {}
    for name in DATASETS:
        files = find_shards(folder / name)
        _check_shards(pinned, name, len(files))
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


def check_datasets(release: str, found: set[str]) -> None:
    """Raise `InputError` where a release lacks a dataset that the pipeline needs."""
    for name in DATASETS:
        if name not in found:
            raise InputError(f"Release {release} lacks the dataset {name}; it must have {', '.join(DATASETS)}.")


def _check_shards(release: str, dataset: str, count: int) -> None:
    if count == 0:
        raise InputError(f"Release {release}: the dataset {dataset} has no shard (a file that ends in {ENDINGS}).")
