"""What the server of a release or of a copy serves from a folder, and what the Datasets API says of it."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.releases.successor import DELETES, UPDATES, diff_folder, read_release

from cocite.config.release_folder import readme_of

STORAGE = "/staging"
LATEST = "latest"
Link = Callable[[str], str]
"""Makes a link of the path of a file."""


class Catalogue:
    """A release in a folder, as the Datasets API describes it, and the diffs that lead to it from those it follows.

    These are listed too, and the diffs from each to each later one can be fetched, but none of their shards.
    """

    storages: tuple[str, ...] = (f"{STORAGE}/", f"/{UPDATES}/", f"/{DELETES}/")

    def __init__(self, folder: Path) -> None:
        """Read the folder. Raises `InputError` if it has no `release.json` with an id and names of datasets."""
        described = read_release(folder)
        self._folder = folder
        self.release: str = described["release_id"]
        self.releases: list[str] = [*described.get("earlier_releases", []), self.release]
        """All that are known, the oldest first."""
        readmes = {name: readme_of(folder / name) for name in described["datasets"]}
        texts = {name: text or f"The dataset {name} of a local release." for name, text in readmes.items()}
        self.datasets = {name: {"description": text.partition("\n")[0], "README": text} for name, text in texts.items()}
        whole = [path for name in self.datasets for path in sorted((folder / name).glob("*.gz"))]
        self.files = {f"{STORAGE}/{self.release}/{path.parent.name}/{path.name}": path for path in whole}
        """The file behind each path that a link can lead to."""
        diffs = [path for kind in (UPDATES, DELETES) for path in (folder / kind).rglob("*.gz")]
        self.files |= {self._path_of(path): path for path in diffs}

    def file(self, path: str) -> Path | None:
        return self.files.get(path)

    def describe_release(self) -> Mapping[str, Any]:
        """The answer to `/release/{id}`."""
        datasets = [{"name": name, **described} for name, described in self.datasets.items()]
        return {"release_id": self.release, "README": "Each dataset has a README of its own.", "datasets": datasets}

    def describe_dataset(self, name: str, link: Link) -> Mapping[str, Any]:
        """The answer to `/release/{id}/dataset/{name}`."""
        paths = [path for path in self.files if path.startswith(f"{STORAGE}/{self.release}/{name}/")]
        return {"name": name, **self.datasets[name], "files": [link(path) for path in paths]}

    def leads(self, start: str, end: str, name: str) -> bool:
        """Whether the second release, which may be `latest`, is the first or comes after it, and has the dataset."""
        later = [*self.releases[self.releases.index(start) :], LATEST] if start in self.releases else []
        return name in self.datasets and end in later

    def describe_diffs(self, start: str, end: str, name: str, link: Link) -> Mapping[str, Any]:
        """The answer to `/diffs/{start}/to/{end}/{name}`: a diff for each step from one release to the next."""
        end = self.release if end == LATEST else end
        span = self.releases[self.releases.index(start) : self.releases.index(end) + 1]
        diffs: list[dict[str, Any]] = []
        for older, newer in pairwise(span):
            diffs.append({"from_release": older, "to_release": newer})
            for kind in (UPDATES, DELETES):
                files = sorted(diff_folder(self._folder, kind, older, newer, name).glob("*.gz"))
                diffs[-1][f"{kind.removesuffix('s')}_files"] = [link(self._path_of(file)) for file in files]
        return {"dataset": name, "start_release": start, "end_release": end, "diffs": diffs}

    def _path_of(self, file: Path) -> str:
        return f"/{file.relative_to(self._folder).as_posix()}"


class CopyCatalogue(Catalogue):
    """A copy of OpenAlex in a folder: all files that lie in it when they are asked for are given to everyone."""

    storages = ("/",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def file(self, path: str) -> Path | None:
        file = (self._folder / unquote(path).lstrip("/")).resolve()
        return file if file.is_relative_to(self._folder) and file.is_file() else None
