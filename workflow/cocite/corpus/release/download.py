"""Download the shards of one part of a dataset; a killed download resumes where it stopped.

Shards grow as `<shard>.part` in a state folder, are checked whole (length against the manifest, then the checksum
that gzip keeps) and renamed; when all are there, the folder of shards moves to its final place.
"""

import shutil
from pathlib import Path

import requests
import urllib3
from isal import igzip, igzip_lib
from tqdm import tqdm

from cocite.corpus.release import retry
from cocite.corpus.release.client import first_of, total_of
from cocite.corpus.release.manifest import Shard
from cocite.corpus.release.remote import RemoteDataset, other_length
from cocite.ground.errors import InputError
from cocite.ground.progress import progress_bar, report
from cocite.ground.space import explain_full_disk
from cocite.tables.files import atomic_path

BLOCK = 1 << 20
FRUITLESS_ATTEMPTS = 6
"""Connections in a row that may break before they bring a single byte."""


def download_shards(remote: RemoteDataset, shards: list[Shard], *, state: Path, output: Path) -> None:
    """Put `shards` into the folder `output`, whole and checked; until then, `state` keeps what has come.

    Raises `InputError` for a shard whose length or checksum is wrong, a server that gives up, and a full disk.
    """
    folder = state / "shards"
    with explain_full_disk(state):
        folder.mkdir(parents=True, exist_ok=True)
        total = sum(shard.bytes for shard in shards)
        with progress_bar(of="download", unit="B", total=total) as bar:
            for shard in shards:
                _fetch_shard(remote, shard, folder, bar)
        # An earlier listing, or another number of parts, may have left other files.
        for file in {*folder.iterdir()} - {folder / shard.name for shard in shards}:
            file.unlink()
        with atomic_path(output) as temporary:
            shutil.move(folder, temporary)
        shutil.rmtree(state)


def _fetch_shard(remote: RemoteDataset, shard: Shard, folder: Path, bar: "tqdm[None]") -> None:
    final, part = folder / shard.name, folder / f"{shard.name}.part"
    if _length(final) == shard.bytes:
        bar.update(shard.bytes)
        return
    _complete(remote, shard, part, bar)
    _check_gzip(part, shard.name)
    part.replace(final)


def _complete(remote: RemoteDataset, shard: Shard, part: Path, bar: "tqdm[None]") -> None:
    """Fetch the rest of `part`, over as many connections as it takes, as long as each brings something."""
    if _length(part) > shard.bytes:
        part.unlink()
    present = _length(part)
    bar.update(present)
    fruitless = 0
    while present < shard.bytes:
        _fetch_rest(remote, shard, part, bar)
        fruitless = 0 if _length(part) > present else fruitless + 1
        present = _length(part)
        if fruitless == FRUITLESS_ATTEMPTS:
            raise InputError(
                f"Shard {shard.name}: {fruitless} connections in a row broke at byte {present} of {shard.bytes}; "
                "run again later, and it resumes from there."
            )
        if fruitless:
            retry.wait(fruitless)


def _fetch_rest(remote: RemoteDataset, shard: Shard, part: Path, bar: "tqdm[None]") -> None:
    """Ask once for the missing bytes of a shard; what came before a broken connection stays."""
    present = _length(part)
    with remote.open(shard.name, first=present) as response:
        _check_range(response, shard, present)
        if response.status_code == 200:
            # This storage takes no ranges: it sends the shard from its start.
            bar.update(-present)
            present = 0
        with part.open("wb" if response.status_code == 200 else "ab") as file:
            try:
                # What has arrived, as it arrives: whole blocks would lose the last one where a connection breaks.
                while block := response.raw.read1(BLOCK, decode_content=False):
                    if file.tell() + len(block) > shard.bytes:
                        file.truncate(present)
                        raise InputError(
                            f"Shard {shard.name}: the storage sends more than the {shard.bytes} bytes in the manifest; "
                            "delete the manifest and run again."
                        )
                    file.write(block)
                    bar.update(len(block))
            except urllib3.exceptions.HTTPError as error:
                report(f"Shard {shard.name}: the connection broke ({type(error).__name__}); resuming.")


def _check_range(response: requests.Response, shard: Shard, asked: int) -> None:
    """Raise `InputError` for what must not be joined to the bytes before `asked`."""
    total, first = total_of(response), first_of(response)
    if total not in (None, shard.bytes):
        raise other_length(shard.name, total)
    if response.status_code != 200 and first != asked:
        raise InputError(
            f"Shard {shard.name}: asked for what begins at byte {asked}, the storage sends what begins at "
            f"{'an unknown byte' if first is None else f'byte {first}'}; run again later, and it resumes from there."
        )


def _check_gzip(path: Path, name: str) -> None:
    """Unpack a file block by block, and drop what comes out. Raises `InputError`, and deletes it, if it is broken."""
    try:
        with igzip.open(path) as file:
            while file.read(BLOCK):
                pass
    except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError) as error:  # type: ignore[misc]
        path.unlink()
        raise InputError(
            f"Shard {name} is not a whole gzip file ({error}); it is deleted: run again to download it once more."
        ) from None


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
