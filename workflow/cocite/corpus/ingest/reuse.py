"""Take what an earlier run ingested of files that a newer copy of OpenAlex still has.

A work that changes moves to another file, so such a file holds what it held: its rows and its lines in the account are
those of the earlier run, and what comes out is what ingesting the file again would give. Each row of the earlier run
says which file it is from, and no row group has rows of two files.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.release_folder import WORKS
from cocite.core.errors import InputError
from cocite.core.tables.declarations.corpus import SHARD
from cocite.core.tables.files import checked_files, open_table, read_table, table_writer, write_table
from cocite.corpus.options import (
    IngestedAbstracts,
    IngestedCitations,
    IngestedPapers,
    ManifestFile,
    Part,
    Parts,
    Report,
)
from cocite.corpus.release.manifest import read_manifest, shards_of_part


def reuse_works(
    *,
    manifest: ManifestFile,
    base: Annotated[Path, typer.Option(help="Folder corpus of the results of an earlier copy.")],
    part: Part,
    parts: Parts,
    papers: IngestedPapers,
    abstracts: IngestedAbstracts,
    citations: IngestedCitations,
    report: Report,
) -> None:
    """Take the rows of works from an earlier run, of files that a newer copy of OpenAlex still has.

    Raises `InputError` where the base has not ingested one of the files, or does not say which files its rows are from.
    """
    reused = shards_of_part(read_manifest(manifest), WORKS, part=part, parts=parts, in_base=True)
    shards = {shard.name for shard in reused}
    lines = read_table(base / "ingest_report/works", "ingest_report")
    lines = lines.filter(pc.is_in(lines[SHARD], pa.array(sorted(shards), pa.string())))
    missing = shards - {*lines[SHARD].to_pylist()}
    if missing:
        raise InputError(
            f"{base} has no rows of the file {min(missing)}, which the manifest takes from there: the base has "
            "changed; delete the manifest and run again."
        )
    for dataset, output in (("papers", papers), ("abstracts", abstracts), ("citations", citations)):
        _copy_rows(base / "ingested" / dataset, f"ingested_{dataset}", shards, output)
    write_table(report, "ingest_report", lines.sort_by([(name, "ascending") for name in ("dataset", SHARD, "outcome")]))


def _copy_rows(folder: Path, table: str, shards: Collection[str], output: Path) -> None:
    """Write the rows of some files; all files of a base have the same columns, and row groups of one file each."""
    paths = checked_files(folder, table)
    columns = open_table(paths[0], table).schema_arrow
    if SHARD not in columns.names:
        raise InputError(f"{folder}: does not say which files its rows are from; ingest without corpus.base.")
    with table_writer(output, table, columns) as write:
        for path in paths:
            file = open_table(path, table)
            place = file.metadata.schema.names.index(SHARD)
            for group in range(file.num_row_groups):
                if _is_of_some(file.metadata.row_group(group).column(place).statistics, shards):
                    for batch in file.read_row_group(group).to_batches():
                        write(batch)


def _is_of_some(statistics: Any, shards: Collection[str]) -> bool:
    return statistics is not None and statistics.min in shards
