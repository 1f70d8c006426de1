"""What a copy of OpenAlex says of its works, in the manifest of its format, as a manifest of ours.

A manifest of the newer formats has the date of the copy and the files of all entities; the older one has no date, and
is taken to be of the newest day on which a work changed. Files are partitioned by that day, and a work that changes
moves to another file: a file of the same path, length and number of works in two copies is the same in both.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Annotated, Any

from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

from cocite.config.release_folder import WORKS
from cocite.config.source import LATEST
from cocite.core.errors import InputError
from cocite.corpus.release.client import first_fault
from cocite.corpus.release.copies import Copy, MissingError, share_needed
from cocite.corpus.release.manifest import CopiedShard, Dataset, Manifest

LEGACY = "legacy"
ENDINGS = {"parquet": ".parquet", "jsonl": ".gz", LEGACY: ".gz"}
"""Format → suffix of the names of its files."""
_NEW_PLACES = ("manifest.json", f"{WORKS}/manifest.json")
PLACES: Mapping[str, tuple[str, ...]] = {"parquet": _NEW_PLACES, "jsonl": _NEW_PLACES, LEGACY: (f"{WORKS}/manifest",)}
"""Format → possible paths of its manifest: that of all entities, or that of the works."""
PATH = re.compile(rf"(?:.*/)?(?P<path>{WORKS}/(?P<folder>[\w=-][\w=.-]*)/(?P<file>\w[\w.-]*))", re.ASCII)
DAY = re.compile(r"updated_date=(\d{4}-\d\d-\d\d)")
README = "Works of OpenAlex, a catalogue of the world's research (https://openalex.org). The data are CC0."


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
    share = share_needed(copy, works, columns)
    return _with_works(manifest, [replace(shard, needed=round(share * shard.bytes)) for shard in works])


def mark_known(manifest: Manifest, base: Manifest) -> Manifest:
    """The manifest with the files marked that the base has. Raises `InputError` if the base is not older."""
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
            raise InputError(
                f"{place} of the copy at {copy.origin} is no manifest of a copy of OpenAlex in the format {format} "
                f"({first_fault(error)})."
            ) from None
        except ValueError:
            raise InputError(f"{place} of the copy at {copy.origin} is not JSON; fetch it again.") from None
    raise InputError(
        f"The copy at {copy.origin} has no {' and no '.join(PLACES[format])}; check corpus.url or corpus.path, and "
        f"corpus.format, which is {format}."
    )


def _shard(file: _File, format: str, where: str) -> CopiedShard:
    named = PATH.fullmatch(file.url)
    if named is None or not file.url.endswith(ENDINGS[format]):
        raise InputError(
            f"{where} lists {file.url}, which is no file of works in the format {format} "
            f"({WORKS}/updated_date=…/part_…{ENDINGS[format]}); check corpus.format."
        )
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
