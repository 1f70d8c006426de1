"""The datasets of a release at the API, or the diffs that lead to it: listed, and reached through links that lapse."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import requests

from cocite.config.release_folder import DATASETS
from cocite.core.errors import InputError
from cocite.core.progress import progress, report
from cocite.corpus.release import retry
from cocite.corpus.release.client import DatasetAnswer, DatasetsApi, Diff, Storage, shard_name, total_of
from cocite.corpus.release.manifest import Dataset, DiffShard, Manifest, Shard, lacks_dataset

LAPSED = (400, 403, 416)
"""Statuses of a link that has lapsed: 403, or 416 for a range; 400 where the session that signed it has ended."""
LISTINGS = 5
"""Times that the links are listed for one shard before such a status is taken to mean something else."""


def list_release(api: DatasetsApi, release: str, since: str | None = None) -> Manifest:
    """The manifest of a release or, since an earlier one, of the diffs that lead to it; `latest` is pinned here.

    Raises `InputError` for what the API does not have, a refused key, and a release that is not later than `since`.
    """
    description = api.release(release)
    pinned = description.release_id
    if since is not None and pinned <= since:
        raise InputError(f"Release {pinned} is not later than {since}, so no diffs lead to it from there.")
    readmes = {dataset.name: dataset.README for dataset in description.datasets}
    if lacking := next((name for name in DATASETS if name not in readmes), None):
        raise lacks_dataset(pinned, lacking)
    datasets = {}
    for name in DATASETS:
        shards = sorted(remote_dataset(api, pinned, since, name).shards())
        datasets[name] = Dataset(shards=tuple(shards), readme=readmes[name])
    return Manifest(release=pinned, datasets=datasets, since=since)


def remote_dataset(api: DatasetsApi, release: str, since: str | None, name: str) -> "RemoteDataset":
    """A dataset of a release or, since an earlier one, of the diffs that lead to it."""
    return RemoteDiffs(api, since, release, name) if since else RemoteDataset(api, release, name)


def other_length(shard: str, found: int | None) -> InputError:
    """The error for a shard that is not the listed one; no part of it may be joined to the bytes that are there."""
    return InputError(
        f"Shard {shard} has {found} bytes at the storage and another length in the manifest; delete the manifest and "
        "run again."
    )


class RemoteDataset:
    """The current links of a dataset's shards; listed again when one has lapsed, and found by the shard's name."""

    def __init__(self, api: DatasetsApi, release: str, name: str) -> None:
        self._api, self._storage = api, Storage()
        self._release, self._name = release, name

    def shards(self) -> Iterator[Shard]:
        """The shards with their lengths. Raises `InputError` where there are none."""
        names = sorted(self._links())
        if not names:
            raise lacks_dataset(self._release, self._name)
        for name in progress(names, of=f"list {self._name}", unit="shards"):
            yield Shard(name=name, bytes=self.size(name))

    def size(self, shard: str) -> int:
        """Length of a shard, bytes. Links are signed for GET, so one byte is asked for instead of the head."""
        with self.open(shard, first=0, last=0) as response:
            size = total_of(response)
        if size is None:
            raise InputError(f"Shard {shard}: the storage does not state its length (status {response.status_code}).")
        return size

    def open(self, shard: str, *, first: int, last: int | None = None) -> requests.Response:
        """Ask for bytes of a shard (both ends counted); the status is 206, or 200 for all. Else raises `InputError`."""
        for listing in range(1, LISTINGS + 1):
            links = self._links()
            if shard not in links:
                raise InputError(f"Release {self._release} does not list the shard {shard}; delete the manifest.")
            response = self._storage.get(links[shard], first=first, last=last)
            if response.status_code in (200, 206):
                return response
            response.close()
            if response.status_code == 416 and total_of(response) is not None:
                raise other_length(shard, total_of(response))
            if response.status_code not in LAPSED:
                break
            report(f"Shard {shard}: the link has lapsed (status {response.status_code}, listing {listing}).")
            if listing > 1:
                retry.wait(listing - 1)
            self._forget_listing()
        raise InputError(f"Shard {shard}: the storage answers with status {response.status_code}; run again later.")

    @cached_property
    def _listing(self) -> DatasetAnswer:
        return self._api.dataset(self._release, self._name)

    def _forget_listing(self) -> None:
        del self._listing

    def _links(self) -> dict[str, str]:
        links: dict[str, str] = {}
        for name, link in self._named_links():
            if name in links:
                raise InputError(
                    f"Release {self._release}: the dataset {self._name} lists several shards named {name}."
                )
            links[name] = link
        return links

    def _named_links(self) -> Iterable[tuple[str, str]]:
        return ((shard_name(link), link) for link in self._listing.files)


class RemoteDiffs(RemoteDataset):
    """The current links of the files of a dataset's diffs.

    The API gives a diff for each release on the way, with files of updates and of deletes. All are named by their date
    and a number; here they get names of their own, so that they are listed, downloaded and found again like shards.
    """

    def __init__(self, api: DatasetsApi, since: str, release: str, name: str) -> None:
        super().__init__(api, release, name)
        self._since = since

    def shards(self) -> Iterator[DiffShard]:
        """The files, in the order of the steps. Raises `InputError` where the steps have a gap."""
        self._check_steps()
        files = list(self._files())
        for step, deletes, name, _ in progress(files, of=f"list diffs of {self._name}", unit="files"):
            yield DiffShard(name=name, bytes=self.size(name), step=step, deletes=deletes)

    @cached_property
    def _diffs(self) -> list[Diff]:
        return self._api.diffs(self._since, self._release, self._name).diffs

    def _forget_listing(self) -> None:
        del self._diffs

    def _named_links(self) -> Iterable[tuple[str, str]]:
        return ((name, link) for *_, name, link in self._files())

    def _files(self) -> Iterator[tuple[int, bool, str, str]]:
        """Number of the step, whether it is of deletes, name and link of each file."""
        for step, diff in enumerate(self._diffs, start=1):
            for kind, links in (("updates", diff.update_files), ("deletes", diff.delete_files)):
                for link in links:
                    name = f"{diff.from_release}-to-{diff.to_release}_{kind}_{shard_name(link)}"
                    yield step, kind == "deletes", name, link

    def _check_steps(self) -> None:
        reached = self._since
        for diff in self._diffs:
            if diff.from_release != reached:
                break
            reached = diff.to_release
        if reached != self._release:
            raise InputError(
                f"The diffs of {self._name} from release {self._since} lead to {reached} and not on to "
                f"{self._release}; ingest that release whole (without corpus.base)."
            )
