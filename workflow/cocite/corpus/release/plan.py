"""What a run fetches of a release, from whatever source: planned, listed once, then downloaded part by part.

The shards of a plan are those of the manifest, if the run has one; otherwise the release is listed. The sizes of tables
are estimates from releases that were measured, and err on the side of too much.
"""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cocite.config.configuration import Corpus, read_configuration, results_folder
from cocite.config.release_folder import is_packed
from cocite.config.settings import GivenAsJson, entry_of
from cocite.config.source import LATEST, Source
from cocite.config.started import program
from cocite.core.errors import existing_folder
from cocite.core.options import Output, Results, State
from cocite.core.progress import about, byte_size
from cocite.core.tables.places import path_of
from cocite.corpus.release.manifest import (
    CopiedShard,
    DatasetName,
    Manifest,
    ManifestFile,
    Part,
    Parts,
    read_manifest,
    shards_of_part,
    write_manifest,
)

KEYS = ("release", "corpus", "pathvars")
"""The sections of a configuration that a plan reads and checks."""
TEXT_OF_PACKED = 3
"""Bytes of text for each byte of a packed shard, at least: 3.3 to 14 in the releases hci and synergy."""
INGESTED_CONTEXTS_OF_PACKED, CONTEXTS_OF_PACKED = 2.0, 0.8
"""Bytes of contexts for each packed byte of citations, if they are ingested: as ingested (1.92 in a generated shard of
14 million citations), and as merged (0.70 of the same, none of them cited twice)."""
MEMORY_OF_PARQUET = 10
"""A citation has 3.2 to 3.5 bytes in the Parquet of the three releases. In memory it has 17, twice while it is sorted;
the excess is spilled."""
BLOCK = 512
"""Bytes of the blocks in which systems count what a file takes."""
JOBS_AT_ONCE = 8
"""As many as profiles/slurm lets download at once; one machine has fewer."""
WIDTHS = {"shards": 8, "packed": 12, "downloaded": 12, "ingested": 10, "to download": 13, "as Parquet": 12}
"""Column → characters, in the order of the fields of `Need`."""
RATES = (10, 100)
"""MB per second for which the time of the download is given."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one dataset needs: numbers of shards, of all and of those that are ingested, and bytes."""

    shards: int
    packed: int
    downloaded: int
    """What is on the disk of its shards."""
    ingested: int
    to_download: int
    parquet: int
    """Its rows as Parquet, an estimate."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a release needs on the disk, and what is there, in bytes."""

    source: Source
    manifest: Manifest
    known_from: str
    """Source of the list of its shards."""
    needs: Mapping[str, Need]
    at_peak: int
    """The corpus on the disk, at its largest."""
    at_end: int
    there: int
    """The part of the corpus that is there already."""
    free: int


def plan_corpus(config: Mapping[str, Any]) -> Plan:
    """The plan of a resolved configuration. Raises `InputError` if the release must be listed and cannot be."""
    results = results_folder(config)
    source: Source = entry_of(config["corpus"], Corpus)
    manifest, known_from = _listed(source, config["release"], results)
    needs = {name: _need(manifest, name, source, results) for name in source.holds}
    at_peak, at_end = _disk(manifest, needs, source)
    there = _bytes(results, "corpus/**/*", ".state/corpus/**/*")
    disk = {"at_peak": at_peak, "at_end": at_end, "there": there}
    free = shutil.disk_usage(existing_folder(results)).free
    return Plan(source=source, manifest=manifest, known_from=known_from, needs=needs, **disk, free=free)


def _listed(source: Source, release: str, results: Path) -> tuple[Manifest, str]:
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
    of_papers, of_citations = (needs[dataset_of(table, source)].packed for table in ("papers", "citations"))
    authors = round(source.authors_of_packed * of_papers) if source.authors else 0
    tables = sum(need.parquet for need in needs.values()) + authors
    citations = parquet_bytes(manifest, "citations", source)
    ingested = tables + (round(source.ids_of_packed * of_citations) if source.keep_ingested else 0)
    with_contexts = of_citations if source.contexts else 0
    contexts = round(CONTEXTS_OF_PACKED * with_contexts)
    ingested_contexts = round(INGESTED_CONTEXTS_OF_PACKED * with_contexts)
    to_fetch = sorted(shard.to_fetch for dataset in manifest.datasets.values() for shard in dataset.shards)
    kept = sum(to_fetch) if getattr(source, "keep_raw", False) and source.downloads else 0
    under_way = sum(to_fetch[-2 * JOBS_AT_ONCE :])  # the largest, downloaded and ingested at one time
    while_fetched = ingested + ingested_contexts + max(kept, under_way if source.downloads else 0)
    spilled = MEMORY_OF_PARQUET * citations * min(JOBS_AT_ONCE, source.buckets) // source.buckets
    while_merged = ingested + ingested_contexts + tables + contexts + spilled + kept
    at_end = tables + contexts + kept + (ingested if source.keep_ingested else 0)
    return max(while_fetched, while_merged), at_end


def _need(manifest: Manifest, name: str, source: Source, results: Path) -> Need:
    shards = manifest.datasets[name].shards
    fetched = _files(results, f"corpus/raw/{name}/*/*", f".state/corpus/{name}-*/shards/*")
    found = {file.name.removesuffix(".part"): _on_disk(file) for file in fetched}
    present = {shard.name: min(found.get(shard.name, 0), shard.to_fetch) for shard in shards}
    # What was read from a shard that is accounted for may have been merged and dropped since.
    parts = source.parts(name)
    done = [part for part in range(parts) if path_of(results, "ingest_report", dataset=name, part=part).is_file()]
    ingested = {shard.name for part in done for shard in shards_of_part(manifest, name, part=part, parts=parts)}
    missing = sum(shard.to_fetch - present[shard.name] for shard in shards if shard.name not in ingested)
    return Need(
        shards=len(shards),
        packed=sum(shard.bytes for shard in shards),
        downloaded=sum(present.values()),
        ingested=len(ingested),
        to_download=missing if source.downloads else 0,
        parquet=sum(parquet_bytes(manifest, table, source) for table in source.holds[name]),
    )


def parquet_bytes(manifest: Manifest, table: str, source: Source) -> int:
    """Bytes of the rows of papers, abstracts or citations as Parquet, an estimate."""
    packed = 0
    for shard in manifest.datasets[dataset_of(table, source)].shards:
        if isinstance(shard, CopiedShard):
            packed += shard.needed
        else:
            is_dense = is_packed(shard.name) or shard.name.lower().endswith((".parquet", ".pq"))
            packed += shard.bytes if is_dense else shard.bytes // TEXT_OF_PACKED
    base = getattr(source, "base", None) if source.updates_by_diffs else None
    in_base = _bytes(Path(base), f"corpus/ingested/{table}/*") if base else 0
    return round(source.parquet_of_byte(table) * packed) + in_base


def dataset_of(table: str, source: Source) -> str:
    """The dataset of a release whose records contain papers, abstracts or citations."""
    return next(name for name, held in source.holds.items() if table in held)


def _files(folder: Path, *patterns: str) -> list[Path]:
    return [file for pattern in patterns for file in folder.glob(pattern) if file.is_file()]


def _bytes(folder: Path, *patterns: str) -> int:
    return sum(map(_on_disk, _files(folder, *patterns)))


def _on_disk(file: Path) -> int:
    """Bytes that a file takes: of a link none, and none of the holes that columns leave which are not fetched."""
    status = file.lstat()
    return 0 if file.is_symlink() else min(status.st_size, BLOCK * status.st_blocks)


def list_shards(
    settings: GivenAsJson[Corpus],
    *,
    release: Annotated[str, typer.Option(help="Id of the release, a date, or latest.")],
    results: Results,
    output: Output,
) -> None:
    """List the shards of a release, or of the diffs that lead to it. The source s2 needs the key in S2_API_KEY, a query
    of openalex that in OPENALEX_API_KEY."""
    write_manifest(output, settings.list_release(release, results))


def download(
    dataset: DatasetName,
    settings: GivenAsJson[Corpus],
    *,
    manifest: ManifestFile,
    part: Part,
    parts: Parts,
    results: Results,
    state: State,
    output: Output,
) -> None:
    """Download the shards of a part of a dataset; a killed download resumes where it stopped."""
    listed = read_manifest(manifest)
    shards = shards_of_part(listed, dataset, part=part, parts=parts)
    settings.fetch(listed, dataset, shards, results=results, state=state, output=output)


def print_plan(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
) -> None:
    """Report what a corpus needs before any of it is fetched: shards, downloads, disk space, and what is there."""
    config = read_configuration(configfile, KEYS)
    plan = plan_corpus(config)
    missing = sum(need.to_download for need in plan.needs.values())
    times = " or ".join(f"{about(missing / rate / 1e6)} at {rate} MB/s" for rate in RATES)
    cost = plan.source.cost_in_words(plan.manifest) or f"The download takes {times}."
    arguments = ["--cores", "all", "--configfile", str(configfile), "--replace-workflow-config", "corpus"]
    needed = plan.source.api_key
    key = f"    export {needed.variable}=…\n" if needed and not needed.is_set else ""
    paragraphs = [
        f"Release {plan.manifest.release}, {plan.known_from}:",
        _table(plan.needs),
        *([cost] if missing else []),
        _disk_in_words(plan, results_folder(config)),
        plan.source.jobs_in_words({name: need.shards for name, need in plan.needs.items()}),
        *plan.source.remarks(),
        "Continue with (--profile slurm in place of --cores all on a cluster; interrupted work resumes)\n"
        f"{key}    {program('snakemake', Path.cwd())} {shlex.join(arguments)}",
    ]
    typer.echo("\n\n".join(paragraphs))


def _table(needs: Mapping[str, Need]) -> str:
    rows = {name: astuple(need) for name, need in needs.items()}
    rows["together"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    lines = [" " * 10 + "".join(map(str.rjust, WIDTHS, WIDTHS.values()))]
    for name, row in rows.items():
        cells = [
            str(value) if column in ("shards", "ingested") else byte_size(value) if value else "-"
            for column, value in zip(WIDTHS, row, strict=True)
        ]
        lines.append(f"{name:<10}" + "".join(map(str.rjust, cells, WIDTHS.values())))
    return "\n".join(lines)


def _disk_in_words(plan: Plan, results: Path) -> str:
    missing = plan.at_peak - plan.there - plan.free
    verdict = f"{byte_size(missing)} too little; pathvars.results can be on another disk" if missing > 0 else "enough"
    peak, end, free = map(byte_size, (plan.at_peak, plan.at_end, plan.free))
    there = f"{byte_size(plan.there)} of it" if plan.there else "nothing of it"
    return (
        f"On the disk: about {peak} at the peak, while citations are merged, and {end} in the end\n"
        f"In {results}: {there} so far, {free} free, {verdict}\n"
        "What becomes Parquet is estimated. Graphs, embeddings and models come on top."
    )
