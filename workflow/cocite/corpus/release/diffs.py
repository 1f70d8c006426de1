"""List the diffs that lead from one release to a later one, and reach their files through links that lapse.

The API gives a diff for each release on the way, and for each diff files of updates and files of deletes. All files are
named by their date and a number, alike for both kinds and in all datasets; here they get names of their own, so that a
file of a diff is listed, downloaded and found again like a shard.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cocite.config.release_folder import DATASETS
from cocite.corpus.release.client import DatasetsApi, Storage, shard_name
from cocite.corpus.release.listing import check_datasets
from cocite.corpus.release.manifest import Dataset, DiffShard, Manifest
from cocite.corpus.release.remote import RemoteDataset
from cocite.ground.errors import InputError
from cocite.ground.progress import progress


class RemoteDiffs(RemoteDataset):
    """The current links of the files of a dataset's diffs."""

    def __init__(self, api: DatasetsApi, storage: Storage, since: str, release: str, name: str) -> None:
        """Of the diffs of the dataset `name` from the release `since` to `release`."""
        super().__init__(api, storage, release, name)
        self._since = since

    def shards(self) -> Iterator[DiffShard]:
        """The files, in the order of the steps. Raises `InputError` where the steps have a gap."""
        self._check_steps()
        for step, deletes, name, _ in list(self._files()):
            yield DiffShard(name=name, bytes=self.size(name), step=step, deletes=deletes)

    def _list(self) -> dict[str, Any]:
        return self._api.diffs(self._since, self._release, self._name)

    def _named_links(self) -> list[tuple[str, str]]:
        return [(name, link) for *_, name, link in self._files()]

    def _files(self) -> Iterator[tuple[int, bool, str, str]]:
        """Number of the step, whether it is of deletes, name and link of each file."""
        for step, diff in enumerate(self._listed()["diffs"], start=1):
            for kind, links in (("updates", diff["update_files"]), ("deletes", diff["delete_files"])):
                for link in links:
                    name = f"{diff['from_release']}-to-{diff['to_release']}_{kind}_{shard_name(link)}"
                    yield step, kind == "deletes", name, link

    def _check_steps(self) -> None:
        reached = self._since
        for diff in self._listed()["diffs"]:
            if diff["from_release"] != reached:
                break
            reached = diff["to_release"]
        if reached != self._release:
            raise InputError(
                f"The diffs of {self._name} from release {self._since} lead to {reached} and not on to "
                f"{self._release}; ingest that release whole (without corpus.base)."
            )


def list_diffs(origin: str, release: str, since: Manifest, *, turns: Path) -> Manifest:
    """The manifest of the diffs from the release of another manifest. `origin` is the API's base URL.

    Raises `InputError` as `list_release` does, and for a release that is not later.
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
