"""Plan a corpus before any of it is fetched: what is to be downloaded, what is there, what the disk must hold.

The shards are those of the manifest, if the run has one; otherwise the release is listed. A folder is always listed,
as each run lists it. The sizes of tables are estimates from releases that were measured. They err on the side of too
much: a disk that turns out too small is worse than one that turns out too large.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.config.configuration import results_folder
from cocite.config.corpus import Corpus
from cocite.config.release_folder import is_packed
from cocite.config.settings import entry_of
from cocite.config.source import LATEST, Source
from cocite.core.space import existing_folder
from cocite.core.tables.places import path_of
from cocite.corpus.release.manifest import CopiedShard, Manifest, Shard, read_manifest, shards_of_part

KEYS = ("release", "corpus", "pathvars")
"""The sections of a configuration that a corpus depends on; a plan does not check the others."""
TEXT_OF_PACKED = 3
"""Bytes of text for each byte of a packed shard, at least: 3.3 to 14 in the releases hci and synergy."""
INGESTED_CONTEXTS_OF_PACKED, CONTEXTS_OF_PACKED = 2.0, 0.8
"""Bytes of contexts for each packed byte of citations, where they are asked for: as they are ingested (1.92 in a
generated shard of 14 million citations), and as they are merged (0.70 of the same, none of them cited twice)."""
MEMORY_OF_PARQUET = 10
"""A citation has 3.2 to 3.5 bytes in the Parquet of the three releases. In memory it has 17, twice while it is sorted:
what does not fit there is spilled."""
BLOCK = 512
"""Bytes of the blocks in which systems count what a file takes."""
JOBS_AT_ONCE = 8
"""As many as profiles/slurm lets download at once; one machine has fewer."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one dataset needs, in bytes where nothing else is said."""

    shards: int
    """How many shards it has."""
    packed: int
    """Length of all shards."""
    downloaded: int
    """Length of what is on the disk of them."""
    ingested: int
    """How many shards are ingested."""
    to_download: int
    """Length of what is still to be downloaded."""
    parquet: int
    """Length of its rows as Parquet, an estimate."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a release needs on the disk, and what is there, in bytes."""

    source: Source
    """Where it comes from."""
    release: str
    """Its id."""
    known_from: str
    """Where the list of its shards comes from."""
    needs: Mapping[str, Need]
    """By dataset."""
    at_peak: int
    """The corpus on the disk, at its largest."""
    at_end: int
    """What is kept of it."""
    there: int
    """The part of it that is there already."""
    free: int
    """Free space on the disk of the results."""
    results: Path
    """The folder of the results."""


def plan_corpus(config: Mapping[str, Any]) -> Plan:
    """The plan of a resolved configuration; its release, corpus and folder of results count.

    Raises `InputError` where the release must be listed and cannot be.
    """
    results = results_folder(config)
    source: Source = entry_of(config["corpus"], Corpus)
    manifest, known_from = _listed(source, config["release"], results)
    needs = {name: _need(manifest, name, source, results) for name in source.holds}
    at_peak, at_end = _disk(manifest, needs, source)
    return Plan(
        source=source,
        release=manifest.release,
        known_from=known_from,
        needs=needs,
        at_peak=at_peak,
        at_end=at_end,
        there=_bytes(results, "corpus/**/*", ".state/corpus/**/*"),
        free=shutil.disk_usage(existing_folder(results)).free,
        results=results,
    )


def _listed(source: Source, release: str, results: Path) -> tuple[Manifest, str]:
    """The manifest of the release, and where it comes from."""
    file = results / "corpus/manifest.json"
    if file.is_file() and source.fetches:
        manifest = read_manifest(file)
        if release in (LATEST, manifest.release):
            return manifest, f"listed in {file}"
    imagined: Manifest | None = source.imagined(release, results)
    if imagined is not None:
        return imagined, "about as it will be generated"
    manifest = source.list_release(release, results)
    since = f"as diffs since {manifest.since}, " if manifest.since else ""
    return manifest, f"{since}listed from {source.origin(results)}"


def _disk(manifest: Manifest, needs: Mapping[str, Need], source: Source) -> tuple[int, int]:
    """Bytes of the corpus at the peak, and in the end."""
    of_papers, of_citations = (needs[dataset_of(table, source)].packed for table in ("papers", "citations"))
    authors = round(source.authors_of_packed * of_papers) if source.authors else 0
    tables = sum(need.parquet for need in needs.values()) + authors
    citations = _parquet(manifest, "citations", source)
    ingested = tables + (round(source.ids_of_packed * of_citations) if source.keep_ingested else 0)
    contexts, ingested_contexts = (
        round(share * of_citations) if source.contexts else 0
        for share in (CONTEXTS_OF_PACKED, INGESTED_CONTEXTS_OF_PACKED)
    )
    kept = sum(map(_to_fetch, _shards(manifest))) if getattr(source, "keep_raw", False) and source.downloads else 0
    while_fetched = ingested + ingested_contexts + max(kept, raw_under_way(manifest) if source.downloads else 0)
    spilled = spilled_while_merged(citations, source.buckets)
    while_merged = ingested + ingested_contexts + tables + contexts + spilled + kept
    at_end = tables + contexts + kept + (ingested if source.keep_ingested else 0)
    return max(while_fetched, while_merged), at_end


def _need(manifest: Manifest, name: str, source: Source, results: Path) -> Need:
    shards = manifest.datasets[name].shards
    fetched = _files(results, f"corpus/raw/{name}/*/*", f".state/corpus/{name}-*/shards/*")
    found = {file.name.removesuffix(".part"): _on_disk(file) for file in fetched}
    present = {shard.name: min(found.get(shard.name, 0), shard.to_fetch) for shard in shards}
    ingested = _ingested(manifest, name, source.parts(name), results)
    missing = sum(shard.to_fetch - present[shard.name] for shard in shards if shard.name not in ingested)
    return Need(
        shards=len(shards),
        packed=sum(shard.bytes for shard in shards),
        downloaded=sum(present.values()),
        ingested=len(ingested),
        to_download=missing if source.downloads else 0,
        parquet=sum(_parquet(manifest, table, source) for table in source.holds[name]),
    )


def _ingested(manifest: Manifest, name: str, parts: int, results: Path) -> set[str]:
    """The shards that are accounted for; what was read from them may have been merged and dropped since."""
    reports = (path_of(results, "ingest_report", dataset=name, part=part) for part in range(parts))
    done = [part for part, report in enumerate(reports) if report.is_file()]
    return {shard.name for part in done for shard in shards_of_part(manifest, name, part=part, parts=parts)}


def _parquet(manifest: Manifest, table: str, source: Source) -> int:
    """Bytes of the rows of papers, abstracts or citations as Parquet, an estimate."""
    shards = manifest.datasets[dataset_of(table, source)].shards
    base = getattr(source, "base", None) if source.updates_by_diffs else None
    in_base = _bytes(Path(base), f"corpus/ingested/{table}/*") if base else 0
    return round(source.parquet_of_byte(table) * sum(map(packed_bytes, shards))) + in_base


def dataset_of(table: str, source: Source) -> str:
    """The dataset of a release whose records hold papers, abstracts or citations."""
    return next(name for name, held in source.holds.items() if table in held)


def packed_bytes(shard: Shard) -> int:
    """Bytes of what is read from a shard, as if it were packed."""
    if isinstance(shard, CopiedShard):
        return shard.needed
    is_dense = is_packed(shard.name) or shard.name.lower().endswith((".parquet", ".pq"))
    return shard.bytes if is_dense else shard.bytes // TEXT_OF_PACKED


def _to_fetch(shard: Shard) -> int:
    return shard.to_fetch


def _shards(manifest: Manifest) -> Iterator[Shard]:
    return (shard for dataset in manifest.datasets.values() for shard in dataset.shards)


def raw_under_way(manifest: Manifest) -> int:
    """Bytes of the largest shards, as many as can be downloaded and ingested at one time."""
    return sum(sorted(map(_to_fetch, _shards(manifest)))[-2 * JOBS_AT_ONCE :])


def spilled_while_merged(citations: int, buckets: int) -> int:
    """Bytes that merging may spill, given the bytes of citations in Parquet."""
    return MEMORY_OF_PARQUET * citations * min(JOBS_AT_ONCE, buckets) // buckets


def _files(folder: Path, *patterns: str) -> list[Path]:
    return [file for pattern in patterns for file in folder.glob(pattern) if file.is_file()]


def _bytes(folder: Path, *patterns: str) -> int:
    return sum(map(_on_disk, _files(folder, *patterns)))


def _on_disk(file: Path) -> int:
    """Bytes that a file takes: of a link none, and none of the holes that columns leave which are not fetched."""
    status = file.lstat()
    return 0 if file.is_symlink() else min(status.st_size, BLOCK * status.st_blocks)
