"""What the API tells about a release: its datasets, their READMEs, and links to their shards."""

import json
from pathlib import Path
from typing import Any

from cocite.demo.links import LinkSigner
from cocite.errors import InputError

STORAGE = "/staging"


class Catalogue:
    """A release in a folder, as the Datasets API describes it."""

    def __init__(self, folder: Path) -> None:
        """Read the folder. Raises `InputError` if it holds no `release.json` with an id and names of datasets."""
        described = _read_release(folder / "release.json")
        self.release: str = described["release_id"]
        self.datasets = {name: _describe(folder / name) for name in described["datasets"]}
        self.shards = {
            f"{STORAGE}/{self.release}/{name}/{path.name}": path
            for name in self.datasets
            for path in sorted((folder / name).glob("*.gz"))
        }

    def describe_release(self) -> dict[str, Any]:
        """The answer to `/release/{id}`."""
        datasets = [{"name": name, **described} for name, described in self.datasets.items()]
        return {"release_id": self.release, "README": "Each dataset has a README of its own.", "datasets": datasets}

    def describe_dataset(self, name: str, origin: str, signer: LinkSigner, *, lapsed: bool) -> dict[str, Any]:
        """The answer to `/release/{id}/dataset/{name}`, with links to its shards at `origin`."""
        paths = [path for path in self.shards if path.startswith(f"{STORAGE}/{self.release}/{name}/")]
        files = [origin + signer.sign(path, lapsed=lapsed) for path in paths]
        return {"name": name, **self.datasets[name], "files": files}


def _read_release(path: Path) -> dict[str, Any]:
    """Not by `files.read_json`, because importing pyarrow takes longer than all that this server does."""
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
