"""How tables are read and written: under a temporary name, checked, synced and renamed.

A reader therefore never sees half a file, and a step that is killed leaves nothing under the name of its output.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cocite.core.atomic import atomic_path, begin_sync, sync
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.tables import ID, TABLES, VECTOR, Table, empty_schema
from cocite.core.tables.checksums import verify_pages
from cocite.core.written_ids import look_up

if TYPE_CHECKING:
    from pyarrow import dataset as ds

COMPRESSION = "zstd"
DICTIONARY = "RLE_DICTIONARY"
ROWS_IN_MEMORY = 100_000
VECTORS_AT_ONCE = 8192
VECTOR_BUFFER = 1 << 20
"""Bytes that a column of vectors is read through, since a row group of them is large."""
REMEDY = ". `cocite check --remove` deletes it and lists the commands that make it again"
OPENED = dict[Path, str]()
"""The files that this process opened, and the table in each: where reading fails, one of them is broken."""


def write_table(path: Path, name: str, rows: pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]) -> int:
    """Write a table as it is declared under `name`; return its number of rows.

    Columns are selected by name and cast to their declared types; an optional one is written if the first rows have it.
    Raises `InputError` if a column is missing, unknown, of another type or null without permission, or if rows are not
    in strictly rising order of the primary key.
    """
    batches = iter(rows.to_batches(ROWS_IN_MEMORY) if isinstance(rows, pa.Table) else rows)
    first = [batch for batch in [next(batches, None)] if batch is not None]
    given = getattr(first[0] if first else rows, "schema", pa.schema([]))
    with table_writer(path, name, given) as write:
        return sum(map(write, chain(first, batches)))


@contextmanager
def table_writer(
    path: Path,
    name: str,
    given: pa.Schema,
    *,
    sync_every: int = 0,
    compression: str = COMPRESSION,
    distinct: Sequence[str] = (),
) -> Iterator[Callable[[pa.RecordBatch], int]]:
    """A function that writes rows of a table like `write_table`, a batch at a time, and returns their number.

    `given` is the schema of the rows: the optional columns present, and the dimension of vectors. With `sync_every`,
    the system starts flushing after so many bytes of rows. `compression` is that of columns without their own encoding;
    those in `distinct` have no dictionary, because their values rarely repeat.
    """
    table, unsynced = TABLES[name], 0
    schema = _file_schema(table, given)
    last_key: tuple[Any, ...] | None = None
    with atomic_path(path) as temporary:
        with pq.ParquetWriter(temporary, schema, **_packing(table, compression, distinct)) as writer:

            def write(batch: pa.RecordBatch) -> int:
                nonlocal last_key, unsynced
                conformed = _conform(batch, schema, table, path)
                if table.ordered and len(conformed):
                    last_key = _check_order(conformed, table, path, last_key)
                writer.write_table(conformed)
                unsynced += conformed.nbytes if sync_every else 0
                if unsynced > sync_every:
                    begin_sync(temporary)
                    unsynced = 0
                return len(conformed)

            yield write
        sync(temporary)


def read_table(source: Path | Sequence[Path], name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table, from one file, several, or a folder of buckets; rows come in the order of the files' names."""
    table = scan_table(source, name).to_table(columns=list(columns) if columns else None)
    if len(table) != count_rows(source):  # A page whose header is broken may pass for an empty one.
        raise InputError(f"{source}: has {len(table):,} rows, but {count_rows(source):,} by its footer{REMEDY}.")
    return table


def open_table(path: Path, name: str, *, buffer_size: int = 0) -> pq.ParquetFile:
    """Open one file of a table; with a buffer, in bytes, read through it. Raises `InputError` as `checked_files`."""
    _check_file(path, name)
    return open_parquet(path, buffer_size=buffer_size)


def open_parquet(path: Path, *, footer: pq.FileMetaData | None = None, buffer_size: int = 0) -> pq.ParquetFile:
    """Open a Parquet file, perhaps with a footer that is known; its pages are verified as they are read."""
    # With pre_buffer, a file that is read in batches would be in memory as a whole.
    return pq.ParquetFile(
        path, metadata=footer, buffer_size=buffer_size, pre_buffer=False, page_checksum_verification=True
    )


def scan_table(source: Path | Sequence[Path], name: str) -> "ds.Dataset":
    """Open a table for reading in batches. Raises `InputError` if a file is missing, broken or another table."""
    # Imported here because it imports pandas, which takes longer than a short step.
    from pyarrow import dataset as ds

    verified = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    form = ds.ParquetFileFormat(default_fragment_scan_options=verified)
    return ds.dataset([str(path) for path in checked_files(source, name)], format=form)


def checked_files(source: Path | Sequence[Path], name: str) -> list[Path]:
    """The files of a table. Raises `InputError` if one is missing, broken or another table."""
    paths = _files_of(source)
    for path in paths:
        _check_file(path, name)
    return paths


def verified_files(
    source: Path | Sequence[Path], name: str, columns: Collection[str] | None = None, *, bucket: int | None = None
) -> list[str]:
    """The files of a table for DuckDB or Polars, whose readers ignore checksums: pages are verified here.

    With `columns` or `bucket`, only their pages are verified. Raises `InputError` if a file is missing, broken or
    another table.
    """
    paths = checked_files(source, name)
    for path in paths:
        verify_pages(path, columns, bucket)
    return list(map(str, paths))


def table_in(path: Path) -> str:
    """The name of the table in a file; empty for files of others. Raises `InputError` if it is no Parquet file."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{path} does not exist or is not a Parquet file.") from None
    name = metadata.get(b"cocite.table", b"").decode(errors="replace")
    if name in TABLES:
        OPENED[path] = name
    return name


def count_rows(source: Path | Sequence[Path]) -> int:
    """Number of rows of Parquet files, read from their footers."""
    return sum(pq.read_metadata(path).num_rows for path in _files_of(source))


def write_omissions(path: Path, counts: dict[str, int]) -> None:
    """Write the table `omissions` of one step: reason → how many; reasons that never occurred are kept as zero."""
    reasons = sorted(counts)
    write_table(path, "omissions", pa.table({"reason": reasons, "count": [counts[reason] for reason in reasons]}))


def vectors_of(table: pa.Table, column: str = "vector") -> np.ndarray:
    """The vectors of a table as one array, float32, rows × dimension."""
    chunks = table.column(column).chunks
    if not chunks:
        return np.empty((0, 0), dtype=np.float32)
    flat = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate(flat).reshape(-1, chunks[0].type.list_size)


def finite_vectors(buckets: Iterable[Path]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Papers of the table `paper_embeddings` and their vectors, some thousand at a time, if these are finite."""
    for path in buckets:
        with open_table(path, "paper_embeddings") as file:
            for batch in file.iter_batches(VECTORS_AT_ONCE, columns=["corpusid", "vector"]):
                vectors = vectors_of(pa.table(batch))
                is_finite = np.isfinite(vectors).all(axis=1)
                yield batch["corpusid"].to_numpy()[is_finite], vectors[is_finite]


def vectors_of_papers(source: Path | Sequence[Path], name: str, rising: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of papers by their ids, which rise, papers × dimension, and which of the papers the table has.

    `source` is one file of the table `name`, several, or a folder of buckets, read some thousand rows at a time; the
    rows of papers that it lacks are 0. Raises `InputError` if a file is missing, broken or another table.
    """
    vectors, is_there = np.empty((0, 0), np.float32), np.zeros(len(rising), dtype=np.bool_)
    for path in checked_files(source, name):
        with open_table(path, name, buffer_size=VECTOR_BUFFER) as file:
            if not vectors.size:
                vectors = np.zeros((len(rising), file.schema_arrow.field("vector").type.list_size), np.float32)
            for batch in file.iter_batches(VECTORS_AT_ONCE, columns=["corpusid", "vector"]):
                places, is_asked = look_up(rising, batch["corpusid"].to_numpy())
                vectors[places[is_asked]] = vectors_of(pa.table(batch))[is_asked]
                is_there[places[is_asked]] = True
    return vectors, is_there


def ages_of_papers(source: Path, rising: np.ndarray) -> np.ndarray:
    """The years by which papers are older than the newest of them, by their ids, which rise; NaN if unknown."""
    years = np.full(len(rising), np.nan, np.float32)
    for path in checked_files(source, "papers"):
        with open_table(path, "papers") as file:
            for batch in file.iter_batches(columns=["corpusid", "year"]):
                places, is_asked = look_up(rising, batch["corpusid"].to_numpy())
                years[places[is_asked]] = batch["year"].to_numpy(zero_copy_only=False)[is_asked]
    return np.fmax.reduce(years, initial=0) - years


def vector_column(vectors: np.ndarray) -> pa.FixedSizeListArray:
    """An array of vectors, rows × dimension, as a column for a table."""
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def _file_schema(table: Table, given: pa.Schema) -> pa.Schema:
    """The declared schema with the dimension of the vectors that are given, and the table's name as metadata."""
    fields = []
    for field in empty_schema(table):
        there = field.name in given.names
        if table.columns[field.name].optional and not there:
            continue
        type_ = given.field(field.name).type if there and field.type == VECTOR else field.type
        if type_ == VECTOR and not there:
            type_ = pa.list_(pa.float32(), 1)
        elif field.type == VECTOR and not (pa.types.is_fixed_size_list(type_) and type_.value_type == pa.float32()):
            raise InputError(f"Table {table.name}, column {field.name}: is {type_}, not vectors of float32.")
        fields.append(pa.field(field.name, type_, nullable=field.nullable))
    return pa.schema(fields, metadata={"cocite.table": table.name})


def _packing(table: Table, usual: str, distinct: Sequence[str]) -> dict[str, Any]:
    """Encoding and compression of each column, as Parquet's writer takes them.

    Ids, counts and `distinct` values are too many for a dictionary; every other column gets one. A column with its own
    encoding is not compressed: it would shrink little, or take longer to write than to find.
    """
    encodings, compression = {}, {}
    for name, column in table.columns.items():
        leaf = f"{name}.list.element" if pa.types.is_list(column.type) else name
        encodings[leaf] = column.encoding or ("BYTE_STREAM_SPLIT" if column.type == ID else DICTIONARY)
        compression[leaf] = "none" if column.encoding else usual
    others = {leaf: encoding for leaf, encoding in encodings.items() if encoding != DICTIONARY}
    return {
        "write_page_checksum": not table.read_once,
        "write_statistics": ["bucket"] if table.read_once else True,
        "use_dictionary": [*encodings.keys() - others.keys() - {*distinct}],
        "column_encoding": others,
        "compression": compression,
    }


def _conform(batch: pa.RecordBatch, schema: pa.Schema, table: Table, path: Path) -> pa.Table:
    missing, unknown = set(schema.names) - set(batch.schema.names), set(batch.schema.names) - set(schema.names)
    if missing or unknown:
        said = f"lacks the columns {sorted(missing)} or has the unknown ones {sorted(unknown)}"
        raise InputError(f"{path}: table {table.name} {said}.")
    try:
        return pa.table([batch.column(name) for name in schema.names], names=schema.names).cast(schema)
    except (pa.ArrowNotImplementedError, ValueError) as error:
        raise InputError(f"{path}: does not fit the declaration of table {table.name}: {error}.") from error


def _check_order(batch: pa.Table, table: Table, path: Path, last_key: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Raise unless each row's key is greater than the one before; return the key of the last row."""
    rising = pa.array(np.zeros(len(batch) - 1, dtype=bool))
    for name in reversed(table.key):
        column = batch.column(name).combine_chunks()
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        rising = pc.or_(pc.greater(after, before), pc.and_(pc.equal(after, before), rising))
    first, last = (tuple(batch.column(name)[row].as_py() for name in table.key) for row in (0, -1))
    if (last_key is not None and first <= last_key) or pc.all(rising).as_py() is False:
        raise InputError(f"{path}: rows of table {table.name} are not in rising order of ({', '.join(table.key)}).")
    return last


def _files_of(source: Path | Sequence[Path]) -> list[Path]:
    if not isinstance(source, Path):
        return list(source)
    paths = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    if not paths:
        raise InputError(f"{source}: contains no Parquet file.")
    return paths


def _check_file(path: Path, name: str) -> None:
    with explain_unreadable(path, "Parquet file", REMEDY), open_parquet(path) as file:
        names, footer = file.schema_arrow.names, file.metadata
        if sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups)) != footer.num_rows:
            raise ValueError("the row groups in its footer do not have as many rows as the file")
    columns = TABLES[name].columns.items()
    missing = [column for column, declared in columns if column not in names and not declared.optional]
    if missing:
        raise InputError(f"{path}: is not the table {name}: it lacks the columns {missing}.")
    OPENED[path] = name
