"""A copy of OpenAlex: its location, and the bytes of its Parquet files that a corpus needs.

It is at a URL, requested with retries and without a key, or in a folder. Its manifests name files by the bucket that
they were published in (`s3://…`); a file is looked for in the folder of its manifest, which may be a mirror. Of a
Parquet file the footer is fetched first, then the needed columns, in as few requests as is reasonable.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import requests
import urllib3

from cocite.config.source import WorkFilters
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.corpus.release import retry
from cocite.corpus.release.download import BLOCK, FRUITLESS_ATTEMPTS, Choose, Needed, whole
from cocite.corpus.release.manifest import CopiedShard
from cocite.corpus.release.retry import Storage, first_of, other_length, total_of

TITLES = ("title", "display_name")
"""Columns of which either will do."""
DATE = "publication_date"
"""Read if a file has it."""
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
"""Number of the largest files whose footers determine the needed share of all files."""
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
        """As `FolderCopy.read`; after a broken connection, only the rest is requested."""
        content, end, fruitless = bytearray(), span.stop if span else None, 0
        start = span.start if span else 0
        while end is None or start + len(content) < end:
            present = len(content)
            with self.open(path, first=start + present, last=span.stop - 1 if span else None) as response:
                end = end or total_of(response)
                is_whole = response.status_code == 200  # this storage takes no ranges
                content = bytearray() if is_whole else content
                try:
                    while block := response.raw.read1(BLOCK, decode_content=False):
                        content += block
                except urllib3.exceptions.HTTPError as error:
                    report(f"{path}: the connection broke ({type(error).__name__}); resuming.")
            if is_whole and span:
                return bytes(content[span.start : span.stop])
            fruitless = 0 if len(content) > present else fruitless + 1
            if end is None or fruitless == FRUITLESS_ATTEMPTS:
                raise InputError(f"{path}: the connections to {self.origin} break; run again later.")
            if fruitless:
                retry.wait(fruitless)
        return bytes(content)

    def open(self, path: str, *, first: int, last: int | None = None) -> requests.Response:
        """Request bytes of a file (both ends inclusive); the status is 206, or 200 for all. Else raises
        `InputError`."""
        response = self._storage.get(f"{self._url}/{path}", first=first, last=last)
        status, total = response.status_code, total_of(response)
        if status == 206 and first_of(response) != first:
            response.close()
            raise InputError(f"{path}: {self.origin} sent other bytes than requested; run again later.")
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


def columns_read(filters: WorkFilters, *, authors: bool, mag: bool = False) -> dict[str, str]:
    """The columns that are read, and their uses, except the titles; filters need some more."""
    asked = (not filters.retracted, not filters.paratext, filters.types, filters.languages)
    return {
        **_ALWAYS,
        **(_OF_AUTHORS if authors else {}),
        **({MAG: "whole numbers or text"} if mag else {}),
        **{name: what for (name, what), is_asked in zip(_OF_FILTERS.items(), asked, strict=True) if is_asked},
    }


def columns_downloaded(*, authors: bool) -> frozenset[str]:
    """The columns that are downloaded: those of any filters, so that other filters do not mean other files."""
    return frozenset({*_ALWAYS, *TITLES, DATE, *_OF_FILTERS, MAG, *(_OF_AUTHORS if authors else {})})


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
    """The footer of a Parquet file of so many bytes, and the bytes after it. Raises `InputError` without a footer."""
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
    """The ranges of a file with these columns, by its footer; gaps between close ones are included."""
    metadata, chunks = pq.read_metadata(pa.BufferReader(footer)), []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            parts = [part for part in chunk.path_in_schema.split(".") if part not in OF_LISTS]
            if any(".".join(parts[:depth]) in columns for depth in range(1, len(parts) + 1)):
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                chunks.append(range(start, start + chunk.total_compressed_size))
    spans: list[range] = []
    for needed in sorted(chunks, key=lambda chunk: chunk.start):
        if spans and needed.start - spans[-1].stop <= GAP:
            spans[-1] = range(spans[-1].start, max(spans[-1].stop, needed.stop))
        else:
            spans.append(needed)
    return spans
