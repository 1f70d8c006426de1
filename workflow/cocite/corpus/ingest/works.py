"""From files of OpenAlex's works to the ingested tables of papers, abstracts and citations, in one stream.

DuckDB makes the same columns of JSON Lines and of Parquet. An abstract comes as an inverted index, an object of word →
positions; its words are ordered by (position, word). Rows name their file, because a work that is in two of them counts
as the later one has it; so a work that is left out leaves a row with its id, which says that earlier copies no longer
count either (`merge`). Of files that a base has too, the rows are copied.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from cocite.config.release_folder import DATASETS, WORKS
from cocite.config.settings import GivenAsJson
from cocite.config.source import WorkFilters
from cocite.core.database import connect
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.options import Buckets, MemoryMb, Threads
from cocite.core.progress import ahead, progress
from cocite.core.tables import ID, TABLES, empty_schema
from cocite.core.tables.declarations.corpus import AUTHORS, MAG, SHARD
from cocite.core.tables.files import checked_files, open_table, read_table, table_writer, write_table
from cocite.core.tables.places import as_text
from cocite.corpus.ingest.accounting import (
    ABSTRACTS_OF_WORKS,
    BLANK,
    CITATIONS_OF_WORKS,
    KEPT,
    LONGEST_VALUE,
    Tally,
    fault_of_line,
    tallies_as_table,
)
from cocite.corpus.ingest.citation_scanner import NO_CITED, SELF
from cocite.corpus.ingest.citations import LEFT_OUT
from cocite.corpus.ingest.merge import BUCKET_KEYS
from cocite.corpus.ingest.records import (
    ABSTRACTS,
    BYTES_AT_ONCE,
    NOT_BLANK,
    cut_by_bucket,
    lines_of,
    not_blank,
    outcome_of,
    sql_of_id,
    sql_of_year,
)
from cocite.corpus.ingest.release_shards import Authors, Report, check_filled, find_shard
from cocite.corpus.ingest.unpacking import gather, unpack
from cocite.corpus.release.copies import DATE, INDEX, OF_LISTS, TITLES, columns_read
from cocite.corpus.release.manifest import ManifestFile, Part, Parts, Shard, read_manifest, shards_of_part

IngestedPapers = Annotated[Path, typer.Option(help="Table ingested_papers to write.")]
IngestedAbstracts = Annotated[Path, typer.Option(help="Table ingested_abstracts to write.")]
IngestedCitations = Annotated[Path, typer.Option(help="Table ingested_citations to write.")]

PARQUET = ".parquet"
ROWS_AT_ONCE = 1 << 12
BLOCKS_AHEAD = 4
"""Blocks of lines that are unpacked while others are read and written."""
WORK = "https://openalex.org/W"
"""Prefix of the id of a work; its number follows."""
DOI = "https://doi.org/"
_NAMED = {"display_name": "VARCHAR"}
GIVEN: dict[str, Any] = {
    **dict.fromkeys(("id", "doi", *TITLES, DATE, "type", "language", INDEX), "VARCHAR"),
    **dict.fromkeys(("publication_year", "cited_by_count"), "BIGINT"),
    **dict.fromkeys(("is_retracted", "is_paratext"), "BOOLEAN"),
    "referenced_works": ["VARCHAR"],
    "primary_location": {"source": _NAMED},
    "primary_topic": {"field": _NAMED},
    "topics": [{"field": _NAMED}],
    "authorships": [{"author": _NAMED}],
    "ids": {"mag": "VARCHAR"},
}
"""The keys of a record that are read and their types, as DuckDB's json_transform takes them."""
_OF_LINES = f"""
    SELECT place, record IS NOT NULL AS is_valid, record.*
    FROM (SELECT place, TRY(json_transform(line, '{json.dumps(GIVEN)}')) AS record FROM records)
"""
_AUTHORS = """list_filter(
    list_transform(coalesce(authorships, []), lambda each: filled(each.author.display_name)),
    lambda name: name IS NOT NULL
)"""
_UNLIKE_A_WORK = f", not the id of a work such as {WORK}2741809807"
MACROS = f"""
    CREATE TEMP MACRO filled(words) AS {not_blank("words")};
    CREATE TEMP MACRO shown(value) AS coalesce(to_json(value[:{LONGEST_VALUE}])::VARCHAR, 'null');
    CREATE TEMP MACRO number_of(url) AS
        CASE WHEN starts_with(url, '{WORK}') THEN {sql_of_id(f"substr(url, {len(WORK) + 1})")} END;
    CREATE TEMP MACRO distinct_texts(names) AS
        list_filter(names, lambda name, place: filled(name) IS NOT NULL AND list_position(names, name) = place);
    CREATE TEMP MACRO positions_in(index) AS from_json_strict(json_extract(index, '$.*')::JSON, '["UINTEGER[]"]');
    CREATE TEMP MACRO abstract_of(index) AS
        CASE WHEN json_valid(index) THEN CASE WHEN json_type(index) = 'OBJECT' THEN
        array_to_string(list_transform(list_sort(flatten(list_transform(
            TRY(list_zip(json_keys(index), positions_in(index))), lambda entry:
                list_transform(entry[2], lambda position: {{'position': position, 'word': entry[1]}})
        ))), lambda each: each.word), ' ') END END;
"""
(EMPTY,) = ABSTRACTS.omissions
DISTINCT = {"papers": ("title", "doi"), "abstracts": ("abstract",), "citations": ()}
"""Columns of each table in which hardly a value comes again."""

COMPRESSION = "lz4"
"""Of rows that are written once and read once: zstd takes two to three times as long for many small row groups."""
BYTES_TO_SYNC = 1 << 25
"""Bytes of rows after which the system starts flushing to the disk, to shorten the wait at the end."""
SHARE_IN_MEMORY = 0.12
"""Share of the memory that rows fill before they are cut by bucket; there are twice as many while others are read,
and sorting takes as much again."""


@dataclass(frozen=True, kw_only=True)
class WorksSettings:
    """How files of works are ingested."""

    filters: WorkFilters
    buckets: int
    """Buckets that the rows are cut into, by id modulo this number."""
    memory_mb: int
    threads: int
    authors: bool = False
    mag: bool = False
    """Keep the ids in the Microsoft Academic Graph."""


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
    that is needed. Malformed records are left to `account`."""
    paths = [find_shard(folder, shard) for shard in shards]
    tallies = [Tally(dataset=WORKS, shard=path.name) for path in paths]
    left_out = {name for name, is_kept in ((AUTHORS, settings.authors), (MAG, settings.mag)) if not is_kept}
    with ExitStack() as stack:
        writes = {}
        for name in DATASETS:
            table = f"ingested_{name}"
            schema = pa.schema([field for field in empty_schema(TABLES[table]) if field.name not in left_out])
            how: Any = {"sync_every": BYTES_TO_SYNC, "compression": COMPRESSION, "distinct": DISTINCT[name]}
            writes[name] = stack.enter_context(table_writer(outputs[name], table, schema, **how))
        for path, tally in zip(progress(paths, of="ingest works", unit="files"), tallies, strict=True):
            works = read_works(path, settings, tally, report.parent)
            gathered = gather(works, SHARE_IN_MEMORY * settings.memory_mb * 1e6)
            for batches in ahead(gathered) if settings.threads > 1 else gathered:
                for name, rows in _tables_of(pa.Table.from_batches(batches), tally):
                    shard = pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), pa.array([tally.shard]))
                    named = rows.append_column(SHARD, shard)
                    for batch in cut_by_bucket(BUCKET_KEYS[name], settings.buckets, named):
                        writes[name](batch)
            check_filled(path, tally)
    write_table(report, "ingest_report", tallies_as_table(tallies))


def _tables_of(works: pa.Table, tally: Tally) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each table; abstracts and citations are counted."""
    is_filled = pc.fill_null(pc.match_substring_regex(works["abstract"], NOT_BLANK), False)
    abstracts = works.select(["corpusid", "abstract"]).filter(is_filled)
    given = len(works) - works["abstract"].null_count
    tally.beside[ABSTRACTS_OF_WORKS].update({KEPT: len(abstracts), EMPTY: given - len(abstracts)})
    yield "abstracts", abstracts
    lists = works["references"].combine_chunks()
    citing, cited = works["corpusid"].take(pc.list_parent_indices(lists)), lists.flatten()
    is_own = pc.fill_null(pc.equal(cited, citing), False)
    nothing = {"citationid": pa.nulls(len(cited), ID), "traits": pa.array(np.zeros(len(cited), dtype=np.uint8))}
    is_kept = pc.and_(cited.is_valid(), pc.invert(is_own))
    citations = pa.table({"citing": citing, "cited": cited, **nothing}).filter(is_kept)
    own = pc.sum(is_own).as_py() or 0
    counts = {KEPT: len(citations), LEFT_OUT[NO_CITED]: cited.null_count, LEFT_OUT[SELF]: own}
    tally.beside[CITATIONS_OF_WORKS].update(counts)
    yield "citations", citations
    references = pc.if_else(works["left_out"], None, pc.list_value_length(works["references"]))
    yield "papers", works.drop_columns(["abstract", "references"]).append_column("reference_count", references)


def read_works(path: Path, settings: WorksSettings, tally: Tally, spill: Path) -> Iterator[pa.RecordBatch]:
    """The works of a file, of those that filters leave out only the id; blank and malformed records are only counted. A
    reference is null if it has no id, an abstract if there is none. Raises `InputError` if the file is cut short, or
    Parquet that lacks a column."""
    omissions = _omissions(settings.filters)
    query = _query(settings, omissions)
    with connect(memory_mb=settings.memory_mb // 3, threads=settings.threads, spill_to=spill) as connection:
        connection.execute(MACROS)
        before = 0
        for records, view in _rows_of(path, settings):
            connection.register("records", records)
            connection.execute(f"CREATE OR REPLACE TEMP VIEW given AS {view}")
            found = connection.sql(query).to_arrow_table()
            faults = found.filter(found["fault"].is_valid()).select(["place", "fault"]).sort_by("place")
            for place, fault in zip(*faults.to_pydict().values(), strict=True):
                line = None if fault else records["line"][place].as_py()
                if line is not None and not line.strip():
                    tally.outcomes[BLANK] += 1
                else:
                    tally.note_malformed(before + place + 1, fault or fault_of_line(line))
            before += len(records)
            counts = np.bincount(found["outcome"].to_numpy(), minlength=3 + len(omissions)).tolist()
            tally.outcomes.update({KEPT: counts[0], **dict(zip(omissions, counts[3:], strict=True))})
            works = found.filter(found["fault"].is_null()).drop_columns(["place", "fault", "outcome"])
            yield from works.combine_chunks().to_batches()


def _rows_of(path: Path, settings: WorksSettings) -> Iterator[tuple[pa.Table, str]]:
    """The lines of a file, or the rows of Parquet, and the query that gives them all columns: those that are not needed
    without values."""
    if not path.name.endswith(PARQUET):
        blocks = unpack(path, blocks_ahead=BLOCKS_AHEAD if settings.threads > 1 else 0)
        for texts in gather(map(lines_of, blocks), BYTES_AT_ONCE):
            lines = pa.chunked_array(texts)
            yield pa.table({"place": np.arange(len(lines)), "line": lines}), _OF_LINES
        return
    needed = columns_read(settings.filters, authors=settings.authors, mag=settings.mag)
    opened = partial(pq.ParquetFile, path, pre_buffer=False, page_checksum_verification=True)
    with explain_unreadable(path, "Parquet file of works"), opened() as file:
        for batches in gather(file.iter_batches(ROWS_AT_ONCE, columns=_find(file, path, needed)), BYTES_AT_ONCE):
            table = pa.Table.from_batches(batches)
            table.validate(full=True)
            missing = "".join(f", NULL::VARCHAR AS {name}" for name in GIVEN if name not in table.column_names)
            numbered = table.append_column("place", pa.array(np.arange(len(table))))
            yield numbered, f"SELECT *, true AS is_valid{missing} FROM records"


def _find(file: pq.ParquetFile, path: Path, needed: dict[str, str]) -> list[str]:
    """The paths of the columns in a file. Raises `InputError` if one is missing or of another type."""
    found = {}
    for leaf in map(file.schema.column, range(len(file.schema))):
        name = ".".join(part for part in leaf.path.split(".") if part not in OF_LISTS)
        what, logical = needed.get(name, "text"), leaf.logical_type.type
        if leaf.physical_type == "BOOLEAN":
            holds = what == "true or false"
        elif leaf.physical_type in ("INT32", "INT64"):
            holds = what.startswith("whole numbers")
        else:
            is_text = leaf.physical_type == "BYTE_ARRAY" and logical in ("STRING", "JSON")
            depth = what.count("list") if what.endswith(("text", "structures")) else None
            holds = is_text and leaf.max_repetition_level == depth
        if (name == DATE and logical in ("STRING", "DATE")) or ((name in needed or name in TITLES) and holds):
            found[name] = leaf.path
    missing = [f"{name} ({what})" for name, what in needed.items() if name not in found]
    if not any(name in found for name in TITLES):
        missing.append("title or display_name (text)")
    if missing:
        raise InputError(f"{path}: lacks the column {', '.join(missing)}, which is needed; fetch the file with it.")
    return list(found.values())


def _omissions(filters: WorkFilters) -> dict[str, str]:
    """Reason → condition over the columns of works for those that are left out, for the reasons that are in use."""
    reasons = {} if filters.retracted else {"retracted works": "retracted"}
    if not filters.paratext:
        reasons["paratext"] = "paratext"
    if filters.from_year is not None or filters.to_year is not None:
        first, last = filters.from_year or 0, filters.to_year or 9999
        reasons["works of another year than corpus asks for, or without one"] = f"year NOT BETWEEN {first} AND {last}"
    for kind, column, wanted in (("of", "type", filters.types), ("in", "language", filters.languages)):
        if wanted:
            is_other = f"{column} NOT IN ({', '.join(map(as_text, wanted))})"
            reasons[f"works {kind} another {column} than corpus asks for, or without one"] = is_other
    if filters.fields:
        is_other = f"NOT list_has_any(fields, [{', '.join(map(as_text, filters.fields))}])"
        reasons["works of another field than corpus asks for, or without one"] = is_other
    return {reason: f"coalesce({condition}, true)" for reason, condition in reasons.items()}


def _query(settings: WorksSettings, omissions: Mapping[str, str]) -> str:
    """Query for the columns of works in `given`, the number of an outcome, and what is wrong with each work; that is
    empty for a line that is not JSON."""
    columns = {
        "title": "coalesce(filled(title), filled(display_name))",
        "year": sql_of_year("TRY_CAST(publication_year AS SMALLINT)"),
        "date": f"CASE WHEN regexp_full_match({DATE}::VARCHAR, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') "
        f"THEN TRY_CAST({DATE} AS DATE) END",
        "venue": "filled(primary_location.source.display_name)",
        "fields": "distinct_texts(list_prepend(primary_topic.field.display_name, "
        "coalesce(list_transform(topics, lambda topic: topic.field.display_name), [])))",
        "doi": f"filled(if(starts_with(doi, '{DOI}'), substr(doi, {len(DOI) + 1}), doi))",
        "citation_count": "TRY_CAST(cited_by_count AS INTEGER)",
        **({AUTHORS: _AUTHORS} if settings.authors else {}),
        **({MAG: sql_of_id("ids.mag::VARCHAR")} if settings.mag else {}),
        "references": "coalesce(list_transform(referenced_works, lambda url: number_of(url)), [])",
        "abstract": f"abstract_of({INDEX})",
    }
    made = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    lists = {"fields", AUTHORS, "references"}
    taken = ", ".join(
        f'CASE WHEN outcome = 0 THEN "{name}" {"ELSE []" if name in lists else ""} END AS "{name}"' for name in columns
    )
    return f"""
        SELECT place, fault, outcome, corpusid, outcome > 2 AS left_out, {taken}
        FROM (SELECT *, {outcome_of("false", "fault IS NOT NULL", omissions)} AS outcome FROM (SELECT *, CASE
            WHEN NOT is_valid THEN ''
            WHEN corpusid IS NULL THEN 'id is ' || shown(id) || '{_UNLIKE_A_WORK}'
            WHEN list_count("references") < list_count(referenced_works) THEN 'referenced_works has ' || shown(
                list_filter(referenced_works, lambda url: url IS NOT NULL AND number_of(url) IS NULL)[1]
            ) || '{_UNLIKE_A_WORK}'
            WHEN abstract IS NULL AND {INDEX} <> 'null'
            THEN '{INDEX} is ' || shown({INDEX}) || ', not an object of words and their positions'
            END AS fault
            FROM (
                SELECT place, is_valid, id, referenced_works, {INDEX}, number_of(id) AS corpusid, {made},
                    type::VARCHAR AS type, language::VARCHAR AS language,
                    coalesce(is_retracted::BOOLEAN, false) AS retracted,
                    coalesce(is_paratext::BOOLEAN, false) AS paratext
                FROM given
            )
        ))
    """


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

    Raises `InputError` if the base has not ingested one of the files.
    """
    reused = shards_of_part(read_manifest(manifest), WORKS, part=part, parts=parts, in_base=True)
    shards = {shard.name for shard in reused}
    lines = read_table(base / "ingest_report/works", "ingest_report")
    lines = lines.filter(pc.is_in(lines[SHARD], pa.array(sorted(shards), pa.string())))
    missing = shards - {*lines[SHARD].to_pylist()}
    if missing:
        why = "which the manifest takes from there: the base has changed; delete the manifest and run again."
        raise InputError(f"{base} has no rows of the file {min(missing)}, {why}")
    for dataset, output in zip(DATASETS, (papers, abstracts, citations), strict=True):
        table = f"ingested_{dataset}"
        paths = checked_files(base / "ingested" / dataset, table)
        # All files of a base have the same columns, and row groups of one file of works each.
        with table_writer(output, table, open_table(paths[0], table).schema_arrow) as write:
            for file in (open_table(path, table) for path in paths):
                place = file.metadata.schema.names.index(SHARD)
                for group in range(file.num_row_groups):
                    statistics = file.metadata.row_group(group).column(place).statistics
                    if statistics is not None and statistics.min in shards:
                        for batch in file.read_row_group(group).to_batches():
                            write(batch)
    write_table(report, "ingest_report", lines.sort_by([(name, "ascending") for name in ("dataset", SHARD, "outcome")]))
