"""What the API tells about a release: its datasets, their READMEs, and links to their shards and to its diffs.

A folder holds one release whole. Where it is the successor of others (see `diffs.py`), they are listed too, and the
diffs from each to each later one can be fetched, but none of their shards.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from cocite.demo.diffs import DELETES, UPDATES, diff_folder
from cocite.demo.links import LinkSigner
from cocite.ground.errors import InputError

LATEST = "latest"
STORAGE = "/staging"
STORAGES = tuple(f"{folder}/" for folder in (STORAGE, f"/{UPDATES}", f"/{DELETES}"))
"""What the paths begin with that a link can lead to."""


class Catalogue:
    """A release in a folder, as the Datasets API describes it."""

    def __init__(self, folder: Path) -> None:
        """Read the folder. Raises `InputError` if it holds no `release.json` with an id and names of datasets."""
        described = read_release(folder / "release.json")
        self._folder = folder
        self.release: str = described["release_id"]
        self.releases: list[str] = [*described.get("earlier_releases", []), self.release]
        """All that are known, the oldest first."""
        self.datasets = {name: _describe(folder / name) for name in described["datasets"]}
        self.shards = {
            f"{STORAGE}/{self.release}/{name}/{path.name}": path
            for name in self.datasets
            for path in sorted((folder / name).glob("*.gz"))
        }
        self.files = self.shards | {
            self._path_of(path): path for kind in (UPDATES, DELETES) for path in (folder / kind).rglob("*.gz")
        }
        """The file behind each path that a link can lead to."""

    def describe_release(self) -> dict[str, Any]:
        """The answer to `/release/{id}`."""
        datasets = [{"name": name, **described} for name, described in self.datasets.items()]
        return {"release_id": self.release, "README": "Each dataset has a README of its own.", "datasets": datasets}

    def describe_dataset(self, name: str, origin: str, signer: LinkSigner, *, lapsed: bool) -> dict[str, Any]:
        """The answer to `/release/{id}/dataset/{name}`, with links to its shards at `origin`."""
        paths = [path for path in self.shards if path.startswith(f"{STORAGE}/{self.release}/{name}/")]
        files = [origin + signer.sign(path, lapsed=lapsed) for path in paths]
        return {"name": name, **self.datasets[name], "files": files}

    def leads(self, start: str, end: str, name: str) -> bool:
        """Whether the second release, which may be `latest`, is the first or comes after it, and has the dataset."""
        later = [*self.releases[self.releases.index(start) :], LATEST] if start in self.releases else []
        return name in self.datasets and end in later

    def describe_diffs(
        self, start: str, end: str, name: str, origin: str, signer: LinkSigner, *, lapsed: bool
    ) -> dict[str, Any]:
        """The answer to `/diffs/{start}/to/{end}/{name}`: a diff for each step from one release to the next."""
        end = self.release if end == LATEST else end
        span = self.releases[self.releases.index(start) : self.releases.index(end) + 1]
        diffs: list[dict[str, Any]] = []
        for older, newer in pairwise(span):
            folders = {
                f"{kind.removesuffix('s')}_files": diff_folder(self._folder, kind, older, newer, name)
                for kind in (UPDATES, DELETES)
            }
            links = {
                field: [
                    origin + signer.sign(self._path_of(file), lapsed=lapsed) for file in sorted(folder.glob("*.gz"))
                ]
                for field, folder in folders.items()
            }
            diffs.append({"from_release": older, "to_release": newer, **links})
        return {"dataset": name, "start_release": start, "end_release": end, "diffs": diffs}

    def _path_of(self, file: Path) -> str:
        return f"/{file.relative_to(self._folder).as_posix()}"


def read_release(path: Path) -> dict[str, Any]:
    """The content of a `release.json`. Raises `InputError` where it is missing, or lacks the id or the datasets.

    Not by `files.read_json`, because importing pyarrow takes longer than all that this server does.
    """
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist, so {path.parent} is not the folder of a release.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from None
    for name in ("release_id", "datasets"):
        if name not in described:
            raise InputError(f"{path}: lacks the key {name!r}.")
    return described


def _describe(folder: Path) -> dict[str, str]:
    path = folder / "README.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else f"The dataset {folder.name} of a local release."
    return {"description": text.partition("\n")[0], "README": text}
