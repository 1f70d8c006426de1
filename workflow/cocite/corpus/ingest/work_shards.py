"""Turn files of works into the ingested tables of papers, abstracts and citations, in one stream.

A work is read once, and its rows leave by bucket in the three tables. Rows name their file, because a work that is in
two of them counts as the later one has it; so a work that is left out leaves a row with its id, which says that
earlier copies no longer count either (`cocite.corpus.ingest.merge`).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.release_folder import DATASETS, WORKS
from cocite.config.settings import GivenAsJson
from cocite.config.source import WorkFilters
from cocite.core.options import Buckets, MemoryMb, Threads
from cocite.core.progress import ahead, progress
from cocite.core.tables import ID, TABLES, empty_schema
from cocite.core.tables.declarations.corpus import AUTHORS, MAG
from cocite.core.tables.files import table_writer, write_table
from cocite.corpus.ingest.accounting import ABSTRACTS_OF_WORKS, CITATIONS_OF_WORKS, KEPT, Tally, tallies_as_table
from cocite.corpus.ingest.citation_scanner import NO_CITED, SELF
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.records import ABSTRACTS, NOT_BLANK
from cocite.corpus.ingest.release_shards import (
    Authors,
    IngestedAbstracts,
    IngestedCitations,
    IngestedPapers,
    Report,
    check_filled,
    find_shard,
)
from cocite.corpus.ingest.unpacking import gather
from cocite.corpus.ingest.works import WorksSettings, read_works
from cocite.corpus.release.manifest import ManifestFile, Part, Parts, Shard, read_manifest, shards_of_part

(EMPTY,) = ABSTRACTS.omissions
_OF_PAPERS = (
    *("corpusid", "title", "year", "date", "venue", "fields", "doi", "citation_count", "reference_count", AUTHORS, MAG),
    "left_out",
)
DISTINCT = {"papers": ("title", "doi"), "abstracts": ("abstract",), "citations": ()}
"""Columns of each table in which hardly a value comes again."""

Columns = dict[str, pa.ChunkedArray]
"""Rows as `rows_of` gives them, a column a name."""
_JUDGED = ("type", "language", "retracted", "paratext")
"""Columns that only the filters need."""
Made = tuple[dict[str, pa.Array], NDArray[np.int64] | None]
"""Columns of a table, and the number of its rows before each work, if a work has not just one."""
RETRACTED = "retracted works"
PARATEXT = "paratext"
YEAR = "works of another year than corpus asks for, or without one"
TYPE = "works of another type than corpus asks for, or without one"
LANGUAGE = "works in another language than corpus asks for, or without one"
FIELD = "works of another field than corpus asks for, or without one"

COMPRESSION = "lz4"
"""Of rows that are written once and read once: zstd takes two to three times as long for many small row groups."""
BYTES_TO_SYNC = 1 << 25
"""Bytes of rows after which the system starts flushing to the disk, to shorten the wait at the end."""
SHARE_IN_MEMORY = 0.12
"""Share of the memory that rows fill before they are cut by bucket; there are twice as many while others are read,
and sorting takes as much again."""


def ingest_works(
    settings: GivenAsJson[WorkFilters],
    *,
    manifest: ManifestFile,
    shards: Annotated[Path, typer.Option(help="Folder of the files of works.")],
    part: Part,
    parts: Parts,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    papers: IngestedPapers,
    abstracts: IngestedAbstracts,
    citations: IngestedCitations,
    report: Report,
    authors: Authors = False,
    mag: Annotated[bool, typer.Option("--mag", help="Keep the papers' ids in the Microsoft Academic Graph.")] = False,
) -> None:
    """Convert the files of one part of OpenAlex's works to Parquet: papers, abstracts, citations, sorted by bucket."""
    cost = {"memory_mb": memory_mb, "threads": threads}
    how = WorksSettings(filters=settings, buckets=buckets, authors=authors, mag=mag, **cost)
    chosen = shards_of_part(read_manifest(manifest), WORKS, part=part, parts=parts)
    outputs = {"papers": papers, "abstracts": abstracts, "citations": citations}
    ingest_files(how, shards, chosen, outputs, report=report)


def ingest_files(
    settings: WorksSettings, folder: Path, shards: list[Shard], outputs: dict[str, Path], *, report: Path
) -> None:
    """Write the papers, abstracts and citations of some files of works, and the table `ingest_report` about them.

    Raises `InputError` for a file that is missing, of another size than listed, empty, not whole, or without a column
    that is needed. Malformed records are left to `account`.
    """
    paths = [find_shard(folder, shard) for shard in shards]
    tallies = [Tally(dataset=WORKS, shard=path.name) for path in paths]
    given = schemas(authors=settings.authors, mag=settings.mag)
    with ExitStack() as stack:
        writes = {}
        for name in DATASETS:
            how: Any = {"sync_every": BYTES_TO_SYNC, "compression": COMPRESSION, "distinct": DISTINCT[name]}
            writer = table_writer(outputs[name], f"ingested_{name}", given[name], **how)
            writes[name] = stack.enter_context(writer)
        for path, tally in zip(progress(paths, of="ingest works", unit="files"), tallies, strict=True):
            gathered = _gather(settings, path, tally, report.parent)
            for rows in ahead(gathered) if settings.threads > 1 else gathered:
                for name, batch, cuts in tables_of(rows, settings.buckets, tally):
                    writes[name](batch, cuts)
    write_table(report, "ingest_report", tallies_as_table(tallies))


def _gather(settings: WorksSettings, path: Path, tally: Tally, spill: Path) -> Iterator[Columns]:
    """The rows of a file, in batches that fit into memory. Raises `InputError` if the file has no record."""
    works = read_works(path, settings, tally, spill)
    batches = (rows_of(batch, is_taken(batch, settings.filters, tally)) for batch in works)
    for gathered in gather(batches, SHARE_IN_MEMORY * settings.memory_mb * 1e6):
        rows = pa.Table.from_batches(gathered)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        gathered.clear()  # who takes the columns frees them one by one
        del rows
        yield columns
        del columns
    check_filled(path, tally)


def schemas(*, authors: bool, mag: bool) -> dict[str, pa.Schema]:
    """The schema of each table."""
    given = {name: empty_schema(TABLES[f"ingested_{name}"]) for name in DATASETS}
    asked = {AUTHORS: authors, MAG: mag}
    kept = [name for name in given["papers"].names if asked.get(name, True)]
    return given | {"papers": pa.schema([given["papers"].field(name) for name in kept])}


def rows_of(works: pa.RecordBatch, taken: NDArray[np.bool_]) -> pa.RecordBatch:
    """The works for output; of omitted ones only the id."""
    kept = (works if taken.all() else works.filter(pa.array(taken))).drop_columns(list(_JUDGED))
    rows = kept.append_column("left_out", pa.repeat(pa.scalar(False), len(kept)))
    if taken.all():
        return rows
    ids = works.column("corpusid").filter(pa.array(~taken))
    columns = {
        field.name: pa.repeat(pa.scalar([] if pa.types.is_list(field.type) else None, field.type), len(ids))
        for field in rows.schema
    }
    columns |= {"corpusid": ids, "left_out": pa.repeat(pa.scalar(True), len(ids))}
    return pa.concat_batches([rows, pa.record_batch(columns, schema=rows.schema)])


def tables_of(rows: Columns, buckets: int, tally: Tally) -> Iterator[tuple[str, pa.RecordBatch, list[int]]]:
    """The name of each table, its rows, sorted by bucket, and where its buckets begin and end; `rows` is emptied."""
    ids = rows["corpusid"].to_numpy()
    bucket = (ids % buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=buckets))])
    for name, make in (("abstracts", _abstracts), ("citations", _citations), ("papers", _papers)):
        columns, ends = make(rows, order, tally)
        cuts = starts if ends is None else ends[starts]
        length = int(cuts[-1])
        given = {
            "bucket": np.repeat(np.arange(buckets, dtype=np.uint16), np.diff(cuts)),
            "shard": pa.DictionaryArray.from_arrays(np.zeros(length, dtype=np.int32), pa.array([tally.shard])),
        }
        yield name, pa.record_batch(given | columns), np.unique(cuts).tolist()


def _abstracts(rows: Columns, order: NDArray[np.int64], tally: Tally) -> Made:
    given = rows.pop("abstract").combine_chunks().take(pa.array(order))
    is_kept = pc.fill_null(pc.match_substring_regex(given, NOT_BLANK), False)
    kept = pc.sum(is_kept).as_py() or 0
    tally.beside[ABSTRACTS_OF_WORKS].update({KEPT: kept, EMPTY: len(given) - given.null_count - kept})
    ids = rows["corpusid"].to_numpy()[order]
    ends = np.concatenate([[0], np.cumsum(is_kept.to_numpy(zero_copy_only=False), dtype=np.int64)])
    return {"corpusid": pa.array(ids).filter(is_kept), "abstract": given.filter(is_kept)}, ends


def _citations(rows: Columns, order: NDArray[np.int64], tally: Tally) -> Made:
    lists = rows["references"].combine_chunks().take(pa.array(order))
    works, cited = pc.list_parent_indices(lists).to_numpy(), lists.flatten()
    citing = rows["corpusid"].to_numpy()[order][works]
    is_own = pc.fill_null(pc.equal(cited, citing), False)
    is_kept = pc.and_(cited.is_valid(), pc.invert(is_own))
    kept, own = (pc.sum(each).as_py() or 0 for each in (is_kept, is_own))
    tally.beside[CITATIONS_OF_WORKS].update({KEPT: kept, LEFT_OUT[NO_CITED]: cited.null_count, LEFT_OUT[SELF]: own})
    of_work = np.bincount(works[is_kept.to_numpy(zero_copy_only=False)], minlength=len(order))
    columns = {
        "citationid": pa.nulls(kept, ID),
        "citing": pa.array(citing).filter(is_kept),
        "cited": cited.filter(is_kept),
        "traits": np.zeros(kept, dtype=np.uint8),
    }
    return columns, np.concatenate([[0], np.cumsum(of_work)])


def _papers(rows: Columns, order: NDArray[np.int64], tally: Tally) -> Made:
    counts = pc.list_value_length(rows.pop("references"))
    rows["reference_count"] = pc.if_else(rows["left_out"], None, counts)
    places = pa.array(order)
    return {name: rows.pop(name).combine_chunks().take(places) for name in _OF_PAPERS if name in rows}, None


def is_taken(works: pa.RecordBatch, filters: WorkFilters, tally: Tally) -> NDArray[np.bool_]:
    """Which works are taken; all of them are counted, those that are not by the reason."""
    taken = np.ones(len(works), dtype=np.bool_)
    for reason, left_out in _left_out(works, filters).items():
        holds = taken & left_out.to_numpy(zero_copy_only=False)
        tally.outcomes[reason] += int(np.count_nonzero(holds))
        taken &= ~holds
    tally.outcomes[KEPT] += int(np.count_nonzero(taken))
    return taken


def _left_out(works: pa.RecordBatch, filters: WorkFilters) -> dict[str, pa.BooleanArray]:
    """Reason → the works that it applies to, for the reasons that this corpus uses."""
    reasons = {}
    if not filters.retracted:
        reasons[RETRACTED] = works.column("retracted")
    if not filters.paratext:
        reasons[PARATEXT] = works.column("paratext")
    if filters.from_year is not None or filters.to_year is not None:
        year, first, last = works.column("year"), filters.from_year or 0, filters.to_year or 9999
        within = pc.and_(pc.greater_equal(year, first), pc.less_equal(year, last))
        reasons[YEAR] = pc.invert(pc.fill_null(within, False))
    for reason, column, wanted in ((TYPE, "type", filters.types), (LANGUAGE, "language", filters.languages)):
        if wanted:
            reasons[reason] = pc.invert(pc.is_in(works.column(column), pa.array(wanted)))
    if filters.fields:
        reasons[FIELD] = pc.invert(_has_one_of(works.column("fields"), pa.array(filters.fields)))
    return reasons


def _has_one_of(lists: pa.ListArray, wanted: pa.StringArray) -> pa.BooleanArray:
    rows = pc.list_parent_indices(lists).filter(pc.is_in(lists.flatten(), wanted))
    return pa.array(np.isin(np.arange(len(lists)), rows.to_numpy()))
