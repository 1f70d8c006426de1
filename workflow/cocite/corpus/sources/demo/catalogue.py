"""What the API says of a release in a folder: its datasets, their READMEs, and signed links to their shards."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode

from cocite.config.release_folder import readme_of, stated_by
from cocite.core.errors import InputError

STORAGE = "/staging"
_NONCE_DIGITS = 16


class Catalogue:
    """A release in a folder, as the Datasets API describes it."""

    storages: tuple[str, ...] = (f"{STORAGE}/",)
    """What the paths begin with that a link can lead to."""
    is_open = False
    """Whether files are given to everyone, without a signed link."""

    def __init__(self, folder: Path) -> None:
        """Read the folder. Raises `InputError` if it holds no `release.json` with an id and names of datasets."""
        described = read_release(folder)
        self.release: str = described["release_id"]
        self.releases: list[str] = [self.release]
        """All that are known, the oldest first."""
        self.datasets = {name: _describe(folder / name) for name in described["datasets"]}
        self.files = {
            f"{STORAGE}/{self.release}/{name}/{path.name}": path
            for name in self.datasets
            for path in sorted((folder / name).glob("*.gz"))
        }
        """The file behind each path that a link can lead to."""

    def file(self, path: str) -> Path | None:
        """The file behind a path, if there is one."""
        return self.files.get(path)

    def describe_release(self) -> dict[str, Any]:
        """The answer to `/release/{id}`."""
        datasets = [{"name": name, **described} for name, described in self.datasets.items()]
        return {"release_id": self.release, "README": "Each dataset has a README of its own.", "datasets": datasets}

    def describe_dataset(self, name: str, link: Callable[[str], str]) -> dict[str, Any]:
        """The answer to `/release/{id}/dataset/{name}`; `link` makes a link of the path of a shard."""
        paths = [path for path in self.files if path.startswith(f"{STORAGE}/{self.release}/{name}/")]
        return {"name": name, **self.datasets[name], "files": [link(path) for path in paths]}


class CopyCatalogue(Catalogue):
    """A copy of OpenAlex in a folder: all its files are given to everyone, by their paths."""

    storages = ("/",)
    is_open = True

    def __init__(self, folder: Path) -> None:
        """The files are those that lie in the folder when they are asked for."""
        self._folder = folder.resolve()

    def file(self, path: str) -> Path | None:
        """The file at a path below the folder, if there is one."""
        file = (self._folder / unquote(path).lstrip("/")).resolve()
        return file if file.is_relative_to(self._folder) and file.is_file() else None


class LinkSigner:
    """Signs paths and checks links: whoever holds one may fetch one file until it lapses, without any key.

    Like the links of a storage host, a link carries the time it lapses at and a signature over its path and that time.
    A random part makes the links of every listing differ, so that no link can be mistaken for the name of a file. The
    secret never leaves the signer.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def sign(self, path: str, seconds: float) -> str:
        """The path with a query string that allows fetching it for so many seconds; 0 or less makes a lapsed link."""
        expires = f"{time.time() + seconds:.3f}"
        nonce = secrets.token_hex(_NONCE_DIGITS // 2)
        return f"{path}?{urlencode({'Expires': expires, 'Signature': nonce + self._digest(path, expires, nonce)})}"

    def refusal(self, path: str, query: str) -> str | None:
        """Why a link is not valid, or None if it is."""
        given = parse_qs(query)
        expires, signature = (given.get(name, [""])[0] for name in ("Expires", "Signature"))
        nonce, digest = signature[:_NONCE_DIGITS], signature[_NONCE_DIGITS:]
        if not hmac.compare_digest(digest.encode(), self._digest(path, expires, nonce).encode()):
            return "SignatureDoesNotMatch"
        return "Request has expired" if time.time() >= float(expires) else None

    def _digest(self, path: str, expires: str, nonce: str) -> str:
        return hmac.new(self._secret, f"{path}\n{expires}\n{nonce}".encode(), hashlib.sha256).hexdigest()


def read_release(folder: Path) -> Mapping[str, Any]:
    """What the release in a folder states of itself. Raises `InputError` where it lacks the id or the datasets."""
    path = folder / "release.json"
    if not path.exists():
        raise InputError(f"{path} does not exist, so {folder} is not the folder of a release.")
    described = stated_by(folder)
    for name in ("release_id", "datasets"):
        if name not in described:
            raise InputError(f"{path}: lacks the key {name!r}.")
    return described


def _describe(folder: Path) -> dict[str, str]:
    text = readme_of(folder) or f"The dataset {folder.name} of a local release."
    return {"description": text.partition("\n")[0], "README": text}
