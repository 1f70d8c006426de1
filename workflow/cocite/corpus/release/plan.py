"""Plan a corpus before anything of it is fetched: what is to be downloaded, what is there, what the disk must hold.

The shards are those of the manifest, if the run has one; otherwise the release is listed. A folder is always listed,
as it is by each run. Sizes of what is made of them are estimates.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.config.configuration import results_folder
from cocite.config.consistent_corpus import LATEST
from cocite.config.release_folder import DATASETS
from cocite.corpus.release.diffs import list_diffs
from cocite.corpus.release.estimates import (
    IDS_OF_PACKED,
    imagined_release,
    packed_bytes,
    parquet_of,
    raw_under_way,
    spilled_while_merged,
)
from cocite.corpus.release.listing import list_release
from cocite.corpus.release.manifest import Manifest, read_manifest, shards_of_part
from cocite.tables.places import path_of

KEYS = ("release", "corpus", "pathvars")
"""What a corpus depends on in a configuration; a plan does not ask for the papers, encoders and folders of the rest."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one dataset needs, in bytes where nothing else is said."""

    shards: int
    """How many shards it has."""
    packed: int
    """All of them."""
    downloaded: int
    """What of them is on the disk."""
    ingested: int
    """How many of them are ingested."""
    to_download: int
    """What is to come."""
    parquet: int
    """Its rows as Parquet."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a release needs, and what there is, in bytes."""

    release: str
    """Its id."""
    known_from: str
    """Where its shards are known from."""
    needs: Mapping[str, Need]
    """By dataset."""
    at_peak: int
    """The corpus on the disk, when it takes most."""
    at_end: int
    """What is kept of it."""
    there: int
    """What is there of it already."""
    free: int
    """What is free where the results lie."""
    results: Path
    """The folder of the results."""


def plan_corpus(config: Mapping[str, Any]) -> Plan:
    """The plan of a resolved configuration; its release, corpus and folder of results count.

    Raises `InputError` where the release must be listed and cannot be.
    """
    corpus = config["corpus"]
    results = results_folder(config)
    manifest, known_from = _listed(config, results)
    needs = {name: _need(manifest, name, corpus, results) for name in DATASETS}
    at_peak, at_end = _disk(manifest, needs, corpus)
    return Plan(
        release=manifest.release,
        known_from=known_from,
        needs=needs,
        at_peak=at_peak,
        at_end=at_end,
        there=_bytes(results, "corpus/**/*", ".state/corpus/**/*"),
        free=shutil.disk_usage(_existing(results)).free,
        results=results,
    )


def _listed(config: Mapping[str, Any], results: Path) -> tuple[Manifest, str]:
    corpus, release, turns = config["corpus"], config["release"], results / ".state/api-turns"
    file, generated = results / "corpus/manifest.json", results / "demo/release"
    if file.is_file() and corpus["source"] != "directory":
        manifest = read_manifest(file)
        if release in (LATEST, manifest.release):
            return manifest, f"listed in {file}"
    if corpus["source"] == "demo" and not generated.is_dir():
        demo = corpus["demo"]
        return imagined_release(release, demo["papers"], demo["shards"]), "about as it will be generated"
    origin = {"s2": corpus["api"], "directory": corpus.get("path"), "demo": str(generated)}[corpus["source"]]
    if "base" in corpus:
        base = read_manifest(Path(corpus["base"], "corpus/manifest.json"))
        return list_diffs(origin, release, base, turns=turns), f"as diffs since {base.release}, listed from {origin}"
    return list_release(origin, release, turns=turns), f"listed from {origin}"


def _disk(manifest: Manifest, needs: Mapping[str, Need], corpus: Mapping[str, Any]) -> tuple[int, int]:
    """Bytes of the corpus at the peak, and in the end."""
    fetched = corpus["source"] != "directory"
    packed = sum(need.packed for need in needs.values())
    tables = sum(need.parquet for need in needs.values())
    citations = needs["citations"]
    ingested = tables + (round(IDS_OF_PACKED * citations.packed) if corpus["keep_ingested"] else 0)
    kept = packed if fetched and corpus["keep_raw"] else 0
    while_fetched = ingested + max(kept, raw_under_way(manifest) if fetched else 0)
    while_merged = ingested + tables + spilled_while_merged(citations.parquet, corpus["buckets"]) + kept
    return max(while_fetched, while_merged), tables + kept + (ingested if corpus["keep_ingested"] else 0)


def _need(manifest: Manifest, name: str, corpus: Mapping[str, Any], results: Path) -> Need:
    shards = manifest.datasets[name].shards
    fetched = _files(results, f"corpus/raw/{name}/*/*", f".state/corpus/{name}-*/shards/*")
    found = {file.name.removesuffix(".part"): file.stat().st_size for file in fetched}
    present = {shard.name: min(found.get(shard.name, 0), shard.bytes) for shard in shards}
    ingested = _ingested(manifest, name, corpus, results)
    missing = sum(shard.bytes - present[shard.name] for shard in shards if shard.name not in ingested)
    packed = sum(shard.bytes for shard in shards)
    in_base = _bytes(Path(corpus["base"]), f"corpus/ingested/{name}/*") if "base" in corpus else 0
    return Need(
        shards=len(shards),
        packed=packed,
        downloaded=sum(present.values()),
        ingested=len(ingested),
        to_download=0 if corpus["source"] == "directory" else missing,
        parquet=parquet_of(corpus["source"], name, sum(map(packed_bytes, shards))) + in_base,
    )


def _ingested(manifest: Manifest, name: str, corpus: Mapping[str, Any], results: Path) -> set[str]:
    """The shards that are accounted for; what was read from them may have been merged and dropped since."""
    parts = corpus["shards"][name] if corpus["source"] == "s2" else len(manifest.datasets[name].shards)
    done = [part for part in range(parts) if path_of(results, "ingest_report", dataset=name, part=part).is_file()]
    return {shard.name for part in done for shard in shards_of_part(manifest, name, part=part, parts=parts)}


def _files(folder: Path, *patterns: str) -> list[Path]:
    return [file for pattern in patterns for file in folder.glob(pattern) if file.is_file()]


def _bytes(folder: Path, *patterns: str) -> int:
    return sum(file.stat().st_size for file in _files(folder, *patterns))


def _existing(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
