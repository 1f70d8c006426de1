"""Download the shards of one part of a dataset; a killed download resumes where it stopped.

Shards grow as `<shard>.part` in a state folder, are verified (length, then gzip's checksum, or the footer of Parquet)
and renamed; the complete folder then moves to its final place. Of Parquet, only the needed columns may be fetched: each
byte keeps its offset, the rest is a hole, and the length of the file always gives the offset to resume from.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import requests
import urllib3
from isal import igzip, igzip_lib
from tqdm import tqdm

from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError, explain_full_disk
from cocite.core.progress import progress_bar, report
from cocite.corpus.release import retry
from cocite.corpus.release.manifest import Shard
from cocite.corpus.release.retry import first_of, other_length, total_of

BLOCK = 1 << 20
PARQUET = ".parquet"
FRUITLESS_ATTEMPTS = 6
"""Largest number of consecutive connections that break before the first byte."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What is to be fetched of a shard: its bytes, in rising order, but for what it is known to end with."""

    spans: Sequence[range]
    end: bytes = b""


Choose = Callable[[Any, Path], Needed]
"""Lists the needed bytes of a shard; it can cache what it learns in the folder."""
Open = Callable[..., requests.Response]
"""Requests the bytes of a shard, by its name, from `first` to `last` (both inclusive); the status is 206 or 200."""


def whole(shard: Shard, folder: Path) -> Needed:
    """All bytes of a shard."""
    return Needed(spans=[range(shard.bytes)])


def download_shards(
    remote: Open, shards: Sequence[Shard], *, state: Path, output: Path, choose: Choose = whole
) -> None:
    """Put shards into a folder, complete and checked; `state` keeps what has come. Else raises `InputError`."""
    folder = state / "shards"
    with explain_full_disk(state):
        folder.mkdir(parents=True, exist_ok=True)
        total = sum(shard.to_fetch for shard in shards)
        with progress_bar(of="download", unit="B", total=total) as bar:
            for shard in shards:
                _fetch_shard(remote, shard, folder, choose, bar)
        # An earlier listing, or another number of parts, may have left other files.
        for file in {*folder.iterdir()} - {folder / shard.name for shard in shards}:
            file.unlink()
        with atomic_path(output) as temporary:
            shutil.move(folder, temporary)
        shutil.rmtree(state)


def _fetch_shard(remote: Open, shard: Shard, folder: Path, choose: Choose, bar: "tqdm[None]") -> None:
    final, part = folder / shard.name, folder / f"{shard.name}.part"
    needed = choose(shard, folder)
    if _length(final) == shard.bytes:
        bar.update(shard.to_fetch)
        return
    if _length(part) > shard.bytes:
        part.unlink()
    _complete(remote, shard, part, needed.spans, bar)
    if needed.end:
        with part.open("ab") as file:
            file.truncate(shard.bytes - len(needed.end))  # a hole where columns at the end are not needed
            file.write(needed.end)
    kind = "Parquet" if shard.name.endswith(PARQUET) else "gzip"
    try:
        if kind == "Parquet":
            pq.read_metadata(part)
        else:
            with igzip.open(part) as file:
                while file.read(BLOCK):
                    pass
    except (EOFError, igzip.BadGzipFile, igzip_lib.IsalError, pa.ArrowInvalid) as error:  # type: ignore[misc]
        part.unlink()
        remedy = "it is deleted: run again."
        raise InputError(f"Shard {shard.name} is not a whole {kind} file ({error}); {remedy}") from None
    part.replace(final)


def _complete(remote: Open, shard: Shard, part: Path, spans: Sequence[range], bar: "tqdm[None]") -> None:
    """Fetch the rest of the spans, over as many connections as needed, while each makes progress."""
    present = _length(part)
    bar.update(sum(max(0, min(span.stop, present) - span.start) for span in spans))
    fruitless = 0
    while missing := next((span for span in spans if span.stop > present), None):
        _fetch_rest(remote, shard, part, range(max(missing.start, present), missing.stop), bar)
        fruitless = 0 if _length(part) > present else fruitless + 1
        present = _length(part)
        if fruitless == FRUITLESS_ATTEMPTS:
            broke = f"{fruitless} connections in a row broke at byte {present} of {shard.bytes}"
            raise InputError(f"Shard {shard.name}: {broke}; run again later, and it resumes from there.")
        if fruitless:
            retry.wait(fruitless)


def _fetch_rest(remote: Open, shard: Shard, part: Path, missing: range, bar: "tqdm[None]") -> None:
    """Ask once for missing bytes of a shard; what came before a broken connection stays."""
    last = None if missing.stop == shard.bytes else missing.stop - 1
    with remote(shard.name, first=missing.start, last=last) as response:
        total, first = total_of(response), first_of(response)
        if total not in (None, shard.bytes):
            raise other_length(shard.name, total)
        if response.status_code != 200 and first != missing.start:
            begins = "an unknown byte" if first is None else f"byte {first}"
            why = f"but the storage sent bytes from {begins}; run again later to resume."
            raise InputError(f"Shard {shard.name}: requested bytes from {missing.start}, {why}")
        if response.status_code == 200:
            # This storage takes no ranges: it sends the shard from its start.
            bar.update(-_length(part))
            missing = range(shard.bytes)
        with part.open("wb" if response.status_code == 200 else "ab") as file:
            if file.tell() < missing.start:
                file.truncate(missing.start)
                file.seek(missing.start)
            try:
                # Write bytes as they arrive: with whole blocks, the last one would be lost if a connection breaks.
                while block := response.raw.read1(BLOCK, decode_content=False):
                    if file.tell() + len(block) > missing.stop:
                        file.truncate(missing.start)
                        is_last = missing.stop == shard.bytes
                        remedy = "delete the manifest and run again" if is_last else "run again later"
                        span = f"from {missing.start} to {missing.stop - 1} of {shard.bytes} in the manifest"
                        raise InputError(f"Shard {shard.name}: the storage sends more than the bytes {span}; {remedy}.")
                    file.write(block)
                    bar.update(len(block))
            except urllib3.exceptions.HTTPError as error:
                report(f"Shard {shard.name}: the connection broke ({type(error).__name__}); resuming.")


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
