"""Where a copy of OpenAlex lies: at a URL, asked with retries and without any key, or in a folder.

The manifests of a copy name its files by the bucket that they were published in (`s3://…`); a file is looked for under
the folder in which its manifest lies, so that a mirror or a folder can stand in for the bucket.
"""

from collections.abc import Sequence
from pathlib import Path

import requests
import urllib3

from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.corpus.release import retry
from cocite.corpus.release.client import Storage, first_of, total_of
from cocite.corpus.release.download import BLOCK, FRUITLESS_ATTEMPTS
from cocite.corpus.release.manifest import CopiedShard
from cocite.corpus.release.remote import other_length

REFUSED, GONE, OUT_OF_RANGE = 403, 404, 416


class MissingError(InputError):
    """A file that the copy does not have."""

    def __init__(self, path: str, origin: str) -> None:
        super().__init__(
            f"{path} is not in the copy at {origin}, though it was listed: the copy has changed since; delete the "
            "manifest and run again, which lists it again."
        )


class FolderCopy:
    """A copy in a folder; `origin` names it in messages."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.origin = folder, str(folder)

    def read(self, path: str, span: range | None = None) -> bytes:
        """A file, or a span of its bytes, by its path below the folder of the manifest. Raises `MissingError`."""
        try:
            with (self.folder / path).open("rb") as file:
                file.seek(span.start if span else 0)
                return file.read(len(span) if span else -1)
        except FileNotFoundError:
            raise MissingError(path, self.origin) from None


class RemoteCopy:
    """A copy at a URL."""

    def __init__(self, url: str) -> None:
        self._url, self._storage = url.rstrip("/"), Storage(doubtful=(REFUSED,))
        self.origin = self._url.replace(self._url.split("://")[1].split("/")[0], retry.host_of(self._url))

    def read(self, path: str, span: range | None = None) -> bytes:
        """As `FolderCopy.read`; what came before a broken connection is not asked for again."""
        content, end, fruitless = bytearray(), span.stop if span else None, 0
        start = span.start if span else 0
        while end is None or start + len(content) < end:
            present = len(content)
            with self.open(path, first=start + present, last=span.stop - 1 if span else None) as response:
                end = end or total_of(response)
                if response.status_code == 200:
                    # This storage takes no ranges.
                    content = bytearray()
                content += _received(response, path)
                if response.status_code == 200 and span:
                    return bytes(content[span.start : span.stop])
            fruitless = 0 if len(content) > present else fruitless + 1
            if end is None or fruitless == FRUITLESS_ATTEMPTS:
                raise InputError(f"{path}: the connections to {self.origin} break; run again later.")
            if fruitless:
                retry.wait(fruitless)
        return bytes(content)

    def open(self, path: str, *, first: int, last: int | None = None) -> requests.Response:
        """Ask for bytes of a file (both ends counted); the status is 206, or 200 for all. Else raises `InputError`."""
        response = self._storage.get(f"{self._url}/{path}", first=first, last=last)
        status, total = response.status_code, total_of(response)
        if status == 206 and first_of(response) != first:
            response.close()
            raise InputError(f"{path}: {self.origin} sends other bytes than it was asked for; run again later.")
        if status in (200, 206):
            return response
        response.close()
        if status == GONE:
            raise MissingError(path, self.origin)
        if status == OUT_OF_RANGE and total is not None:
            raise other_length(path, total)
        raise InputError(f"{path}: {self.origin} answers with status {status}; run again later.")


Copy = FolderCopy | RemoteCopy


def link_shards(folder: Path, shards: Sequence[CopiedShard], output: Path) -> None:
    """Make a folder of links to files of a copy. Raises `InputError` for one that is missing or has another length."""
    with atomic_path(output) as links:
        links.mkdir()
        for shard in shards:
            file = (folder / shard.path).absolute()
            if not file.is_file():
                raise MissingError(shard.path, str(folder))
            if file.stat().st_size != shard.bytes:
                raise other_length(shard.path, file.stat().st_size)
            (links / shard.name).symlink_to(file)


def _received(response: requests.Response, path: str) -> bytes:
    """The body of an answer, or what came of it before the connection broke."""
    content = bytearray()
    try:
        while block := response.raw.read1(BLOCK, decode_content=False):
            content += block
    except urllib3.exceptions.HTTPError as error:
        report(f"{path}: the connection broke ({type(error).__name__}); resuming.")
    return bytes(content)
