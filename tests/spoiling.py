"""Files as a disk, a full disk or a hasty hand leaves them."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from cocite.core.atomic import MARK


def change(path: Path) -> None:
    """Change a byte in the middle; the file stays as long as it was."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def spoil_page(path: Path, column: int, group: int = 0) -> Path:
    """Turn over the bits of the last byte of a column in a row group, which belongs to a page."""
    chunk = pq.read_metadata(path).row_group(group).column(column)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[start + chunk.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(content)
    return path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


SPOILS: dict[str, Callable[[Path], None]] = {
    "changed": change,
    "first byte changed": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "zeros at the end": lambda path: path.write_bytes(path.read_bytes()[:-7] + bytes(7)),
    "cut": cut,
    "emptied": empty,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "of another file": lambda path: path.write_bytes(b"{}\n"),
    "gone": Path.unlink,
}


def files_of(state: Path) -> list[Path]:
    """The files of a state that have a checksum."""
    paths = [path for path in state.rglob("*") if path.is_file()]
    return sorted({path.with_name(mark[1]) for path in paths if (mark := MARK.fullmatch(path.name))})
