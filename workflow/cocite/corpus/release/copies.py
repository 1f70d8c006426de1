"""A copy of OpenAlex: its location, the files of works that its manifest lists, and the bytes of these that are needed.

It is at a URL, requested with retries and without a key, or in a folder. The manifest names files by the bucket
(`s3://…`); they are looked for in its own folder, so that a mirror or a folder can replace the bucket. The older
manifest has no date, and is taken to be of the newest day on which a work changed. Of Parquet, the footer is fetched
first.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import requests
import urllib3
from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

from cocite.config.release_folder import WORKS
from cocite.config.source import LATEST, WorkFilters
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.corpus.release import retry
from cocite.corpus.release.client import first_fault
from cocite.corpus.release.download import BLOCK, FRUITLESS_ATTEMPTS, Choose, Needed, whole
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest
from cocite.corpus.release.retry import Storage, first_of, other_length, total_of

LEGACY = "legacy"
ENDINGS = {"parquet": ".parquet", "jsonl": ".gz", LEGACY: ".gz"}
"""Format → suffix of the names of its files."""
_NEW_PLACES = ("manifest.json", f"{WORKS}/manifest.json")
PLACES: Mapping[str, tuple[str, ...]] = {"parquet": _NEW_PLACES, "jsonl": _NEW_PLACES, LEGACY: (f"{WORKS}/manifest",)}
"""Format → possible paths of its manifest: that of all entities, or that of the works."""
PATH = re.compile(rf"(?:.*/)?(?P<path>{WORKS}/(?P<folder>[\w=-][\w=.-]*)/(?P<file>\w[\w.-]*))", re.ASCII)
DAY = re.compile(r"updated_date=(\d{4}-\d\d-\d\d)")
README = "Works of OpenAlex, a catalogue of the world's research (https://openalex.org). The data are CC0."

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


class _Length(BaseModel):
    content_length: NonNegativeInt
    record_count: NonNegativeInt


class _File(BaseModel):
    url: str
    meta: _Length


class _Entity(BaseModel):
    entity: Any
    files: list[_File]


class _Newer(BaseModel):
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    entities: list[_Entity]


class _Older(BaseModel):
    entries: list[_File]


class MissingError(InputError):
    """A file that the copy does not have."""

    def __init__(self, path: str, origin: str) -> None:
        remedy = "delete the manifest and run again, which lists it again"
        said = "though it was listed: the copy has changed since"
        super().__init__(f"{path} is not in the copy at {origin}, {said}; {remedy}.")


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
    further = (_OF_AUTHORS if authors else {}) | ({MAG: "whole numbers or text"} if mag else {})
    return _ALWAYS | further | {name: _OF_FILTERS[name] for name in compress(_OF_FILTERS, asked)}


def columns_downloaded(*, authors: bool) -> frozenset[str]:
    """The columns that are downloaded: those of any filters, so that other filters do not mean other files."""
    return frozenset({*_ALWAYS, *TITLES, DATE, *_OF_FILTERS, MAG, *(_OF_AUTHORS if authors else {})})


def choose_columns(copy: Copy, columns: Collection[str]) -> Choose:
    """Chooses these columns of each shard, leaves of structures being written as in `ids.mag`. The footer of a shard is
    kept under a name that tells its length and the columns. Without it, what was fetched is of another file of the same
    name, or other columns, and is dropped."""

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


def read_footer(copy: Copy, path: str, size: int) -> bytes:
    """The footer of a Parquet file of so many bytes, and the bytes after it. Raises `InputError` without a footer."""
    end = copy.read(path, range(max(size - USUAL_FOOTER, 0), size))
    length = int.from_bytes(end[-len(MAGIC) - LENGTH : -len(MAGIC)], "little") + LENGTH + len(MAGIC)
    if not end.endswith(MAGIC) or length > size:
        why = "which its manifest says it is; delete the manifest and run again, which lists it again."
        raise InputError(f"{path} in the copy at {copy.origin} does not end as a Parquet file of {size} bytes, {why}")
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


def list_works(copy: Copy, format: str, release: str) -> Manifest:
    """The manifest of the works of a copy; `latest` is pinned to its day. Raises `InputError` if it has none."""
    place, content = _read(copy, format)
    where = f"{place} of the copy at {copy.origin}"
    if isinstance(content, _Older):
        files = content.entries
    else:
        entities = {entity.entity: entity.files for entity in content.entities}
        if WORKS not in entities:
            listed = f"{', '.join(map(str, entities)) or 'nothing'} and no works, of which a corpus is made"
            raise InputError(f"{where} lists {listed}; name a copy that has them.")
        files = entities[WORKS]
    shards = sorted(_shard(file, format, where) for file in files)
    for earlier, later in pairwise(shards):
        if earlier.name == later.name:
            raise InputError(f"{where} lists {later.path} twice; ask whoever keeps the copy.")
    if not shards:
        raise InputError(f"{where} lists no file of works, and a corpus is made of these; name another copy.")
    if isinstance(content, _Older):
        release = _pin_undated(shards, release, where)
    elif release not in (LATEST, content.date):
        to_do = f"set release to {content.date}, or to {LATEST}"
        raise InputError(f"{where} is of {content.date}, and release is {release}; {to_do}.")
    else:
        release = content.date
    return Manifest(release=release, datasets={WORKS: Dataset(shards=tuple(shards), readme=README)})


def with_columns(manifest: Manifest, copy: Copy, columns: Collection[str]) -> Manifest:
    """The manifest of a copy in Parquet, with an estimate of the bytes that these columns take of each file."""
    works = _works(manifest)
    largest = sorted(works, key=lambda shard: shard.bytes)[-SAMPLED:]
    needed = 0
    for shard in largest:
        footer = read_footer(copy, shard.path, shard.bytes)
        needed += min(len(footer) + sum(map(len, spans_of(footer, columns))), shard.bytes)
    share = needed / max(sum(shard.bytes for shard in largest), 1)
    return _with_works(manifest, [replace(shard, needed=round(share * shard.bytes)) for shard in works])


def mark_known(manifest: Manifest, base: Manifest) -> Manifest:
    """The manifest with the files marked that the base has: of one path, length and number of works. Files are
    partitioned by the day of change, and a work that changes moves to another file, so such files are the same. Raises
    `InputError` if the base is not older."""
    if WORKS not in base.datasets:
        raise InputError(f"The release {base.release} in corpus.base is no copy of OpenAlex; leave corpus.base out.")
    if manifest.release <= base.release:
        raise InputError(f"The copy of {manifest.release} is not later than that in corpus.base, of {base.release}.")
    identity = attrgetter("path", "bytes", "records")
    known = set(map(identity, _works(base)))
    return _with_works(manifest, [replace(shard, in_base=identity(shard) in known) for shard in _works(manifest)])


def _works(manifest: Manifest) -> list[CopiedShard]:
    return [shard for shard in manifest.datasets[WORKS].shards if isinstance(shard, CopiedShard)]


def _with_works(manifest: Manifest, shards: Sequence[CopiedShard]) -> Manifest:
    return replace(manifest, datasets={WORKS: replace(manifest.datasets[WORKS], shards=tuple(shards))})


def _read(copy: Copy, format: str) -> tuple[str, _Older | _Newer]:
    """The first manifest that is there, with its path."""
    for place in PLACES[format]:
        try:
            content = copy.read(place)
            return place, TypeAdapter(_Older if format == LEGACY else _Newer).validate_python(json.loads(content))
        except MissingError:
            continue
        except ValidationError as error:  # which is a ValueError
            said = f"no manifest of a copy of OpenAlex in the format {format} ({first_fault(error)})"
            raise InputError(f"{place} of the copy at {copy.origin} is {said}.") from None
        except ValueError:
            raise InputError(f"{place} of the copy at {copy.origin} is not JSON; fetch it again.") from None
    remedy = f"check corpus.url or corpus.path, and corpus.format, which is {format}."
    raise InputError(f"The copy at {copy.origin} has no {' and no '.join(PLACES[format])}; {remedy}")


def _shard(file: _File, format: str, where: str) -> CopiedShard:
    named = PATH.fullmatch(file.url)
    if named is None or not file.url.endswith(ENDINGS[format]):
        expected = f"{WORKS}/updated_date=…/part_…{ENDINGS[format]}"
        said = f"no file of works in the format {format} ({expected}); check corpus.format"
        raise InputError(f"{where} lists {file.url}, which is {said}.")
    length, name = file.meta.content_length, f"{named['folder']}_{named['file']}"
    return CopiedShard(name=name, path=named["path"], bytes=length, records=file.meta.record_count, needed=length)


def _pin_undated(shards: Iterable[CopiedShard], release: str, where: str) -> str:
    """The day that the configuration says the copy is of, or the newest on which one of its works changed."""
    newest = max((day[1] for shard in shards if (day := DAY.search(shard.path))), default="")
    if release == LATEST:
        if not newest:
            raise InputError(f"{where} does not say of which day it is; name it in release instead of {LATEST}.")
        return newest
    if release < newest:
        raise InputError(f"{where} has works that changed on {newest}, after the release {release}; correct release.")
    return release
