"""Row groups of tables, the pieces that threads share a reading by: each is opened by the thread that reads it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cocite.tables.files import checked_files


@dataclass(frozen=True, kw_only=True)
class RowGroup:
    """One row group of a file."""

    path: Path
    footer: pq.FileMetaData
    """What the file says of itself: with hundreds of row groups, too long to be read again for each."""
    number: int

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Its rows, at most so many at a time, read by the thread that asks for them."""
        with pq.ParquetFile(self.path, metadata=self.footer, pre_buffer=False) as file:
            yield from file.iter_batches(rows, [self.number], columns=list(columns), use_threads=False)

    def may_meet(self, column: str, first: int, last: int) -> bool:
        """Whether a column may hold a value from `first` to `last`."""
        place = self.footer.schema.names.index(column)
        found = self.footer.row_group(self.number).column(place).statistics
        return found is None or not found.has_min_max or bool(found.min <= last and found.max >= first)


def row_groups(source: Path | Sequence[Path], table: str) -> list[RowGroup]:
    """The row groups of a table, file by file. Raises `InputError` where a file is missing, broken or another table."""
    footers = [(path, pq.read_metadata(path)) for path in checked_files(source, table)]
    return [
        RowGroup(path=path, footer=footer, number=number)
        for path, footer in footers
        for number in range(footer.num_row_groups)
    ]
