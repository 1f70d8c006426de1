"""The shards of a generated release: gzipped JSON Lines, to which the rows of a dataset are dealt out in turn.

Read back in turn, rows come in the order in which they were written, however many shards there are. So what is made
from a release does not depend on its number of shards.
"""

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from cocite.config.release_folder import find_shards, unpacked
from cocite.core.errors import InputError

Record = dict[str, Any]


def shard_paths(folder: Path, day: date, shards: int) -> list[Path]:
    """The paths of the shards of the dataset in `folder`, named as real ones are."""
    return [folder / f"{day:%Y%m%d}_000000_{shard:05}_{folder.name}.gz" for shard in range(shards)]


def write_rows(rows: Iterable[Record], shards: Sequence[Path]) -> int:
    """Write rows as they come, dealt out to the shards in turn; return their number."""
    written = 0
    with ExitStack() as stack:
        files = [stack.enter_context(open_shard(path)) for path in shards]
        for row in rows:
            write_row(files[written % len(files)], row)
            written += 1
    return written


def read_rows(folder: Path) -> Iterator[Record]:
    """The rows of a dataset's folder in the order in which they were dealt out.

    Raises `InputError` where the folder holds no shard.
    """
    shards = find_shards(folder)
    if not shards:
        raise InputError(f"{folder}: holds no shard of a release.")
    with ExitStack() as stack:
        files = [stack.enter_context(_as_text(shard)) for shard in shards]
        for lines in zip_longest(*files, fillvalue=""):
            yield from (json.loads(line) for line in lines if line.strip())


def _as_text(shard: Path) -> TextIO:
    return io.TextIOWrapper(cast("BinaryIO", unpacked(shard)), encoding="utf-8-sig")


@contextmanager
def open_shard(path: Path) -> Iterator[TextIO]:
    """A gzipped text file without name and time in its header, so that equal content gives equal bytes."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8") as file,
    ):
        yield file


def write_row(file: TextIO, row: Record) -> None:
    """Write one record as one line."""
    file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
