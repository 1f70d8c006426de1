"""Which columns of a work in Parquet a corpus needs, and which bytes of a file hold them, as its footer says.

The footer of a file is fetched first, then the needed columns of each row group, in as few requests as is reasonable.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from cocite.config.source import WorkFilters
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.corpus.release.copies import Copy
from cocite.corpus.release.download import Choose, Needed, whole
from cocite.corpus.release.manifest import CopiedShard

TITLES = ("title", "display_name")
"""Columns of which either will do."""
INDEX = "abstract_inverted_index"
NAMES_OF_AUTHORS = "authorships.author.display_name"
MAG = "ids.mag"
"""Needed where works are matched with Semantic Scholar's; always downloaded, since a match may be added later."""
_ALWAYS = {
    **dict.fromkeys(("id", "doi", INDEX), "text"),
    **dict.fromkeys(("publication_year", "cited_by_count"), "whole numbers"),
    "referenced_works": "lists of text",
    "primary_location.source.display_name": "text in structures",
    "primary_topic.field.display_name": "text in structures",
    "topics.field.display_name": "text in lists of structures",
}
_OF_AUTHORS = {NAMES_OF_AUTHORS: "text in lists of structures"}
_OF_FILTERS = {"is_retracted": "true or false", "is_paratext": "true or false", "type": "text", "language": "text"}
GAP = 1 << 20
"""Bytes between two needed columns that are fetched with them, as another request would take as long."""
USUAL_FOOTER = 1 << 16
"""Bytes at the end of a file that are read first: most footers are shorter."""
MAGIC = b"PAR1"
LENGTH = 4
"""Bytes of the length of the footer, between it and the magic ones."""
OF_LISTS = {"list", "element", "item", "bag", "array", "array_element"}
"""How Parquet calls the levels that a list adds to the path of a column."""
SAMPLED = 3
"""Files, the largest, whose footers say what share of all files is needed."""


def columns_read(filters: WorkFilters, *, authors: bool, mag: bool = False) -> dict[str, str]:
    """The columns that are read, and what each holds, but for the titles; filters ask for some more."""
    asked = (not filters.retracted, not filters.paratext, filters.types, filters.languages)
    return {
        **_ALWAYS,
        **(_OF_AUTHORS if authors else {}),
        **({MAG: "whole numbers or text"} if mag else {}),
        **{name: what for (name, what), is_asked in zip(_OF_FILTERS.items(), asked, strict=True) if is_asked},
    }


def columns_downloaded(*, authors: bool) -> frozenset[str]:
    """The columns that are downloaded: those of any filters, so that other filters do not mean other files."""
    return frozenset({*_ALWAYS, *TITLES, *_OF_FILTERS, MAG, *(_OF_AUTHORS if authors else {})})


def choose_columns(copy: Copy, columns: Collection[str]) -> Choose:
    """Chooses these columns of each shard, leaves of structures being written as in `ids.mag`.

    The footer of a shard is kept under a name that tells its length and the columns. Without it, what was fetched is of
    another file of the same name, or other columns, and is dropped.
    """

    def choose(shard: CopiedShard, folder: Path) -> Needed:
        if shard.bytes <= GAP:
            return whole(shard, folder)
        kept = folder / f"{shard.name}.{crc32(f'{shard.bytes} {sorted(columns)}'.encode()):08x}.footer"
        if not kept.is_file():
            for fetched in (shard.name, f"{shard.name}.part"):
                (folder / fetched).unlink(missing_ok=True)
            with atomic_path(kept) as temporary:
                temporary.write_bytes(read_footer(copy, shard.path, shard.bytes))
        footer = kept.read_bytes()
        return Needed(spans=spans_of(footer, columns), end=footer)

    return choose


def share_needed(copy: Copy, shards: Sequence[CopiedShard], columns: Collection[str]) -> float:
    """About what share of the bytes of some Parquet files these columns take, in 0 to 1."""
    largest = sorted(shards, key=lambda shard: shard.bytes)[-SAMPLED:]
    needed = 0
    for shard in largest:
        footer = read_footer(copy, shard.path, shard.bytes)
        needed += min(len(footer) + sum(map(len, spans_of(footer, columns))), shard.bytes)
    return needed / max(sum(shard.bytes for shard in largest), 1)


def read_footer(copy: Copy, path: str, size: int) -> bytes:
    """The footer of a Parquet file of so many bytes, with what ends the file. Raises `InputError` where it has none."""
    end = copy.read(path, range(max(size - USUAL_FOOTER, 0), size))
    length = int.from_bytes(end[-len(MAGIC) - LENGTH : -len(MAGIC)], "little") + LENGTH + len(MAGIC)
    if not end.endswith(MAGIC) or length > size:
        raise InputError(
            f"{path} in the copy at {copy.origin} does not end as a Parquet file of {size} bytes, which its manifest "
            "says it is; delete the manifest and run again, which lists it again."
        )
    if length > len(end):
        end = copy.read(path, range(size - length, size - len(end))) + end
    return end[-length:]


def spans_of(footer: bytes, columns: Collection[str]) -> list[range]:
    """The bytes of a file, given its footer, that hold these columns; what lies between close ones is included."""
    spans: list[range] = []
    for chunk in sorted(_chunks(pq.read_metadata(pa.BufferReader(footer)), columns), key=lambda chunk: chunk.start):
        if spans and chunk.start - spans[-1].stop <= GAP:
            spans[-1] = range(spans[-1].start, max(spans[-1].stop, chunk.stop))
        else:
            spans.append(chunk)
    return spans


def _chunks(metadata: pq.FileMetaData, columns: Collection[str]) -> Iterator[range]:
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if _is_among(chunk.path_in_schema, columns):
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                yield range(start, start + chunk.total_compressed_size)


def _is_among(path: str, columns: Collection[str]) -> bool:
    """Whether the path of a column in the schema is one of the columns, or a part of one."""
    parts = [part for part in path.split(".") if part not in OF_LISTS]
    return any(".".join(parts[:depth]) in columns for depth in range(1, len(parts) + 1))
