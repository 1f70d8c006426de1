"""Tables of papers and citations as people have them: the files, how they are written, and what their columns are."""

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import DELIMITER, Entry, GivenPath, Names, ShortFor, Text
from cocite.config.release_folder import PACKED


class TextFormat(Entry):
    """What formats of text have in common."""

    header: Names = ()
    """Names of the columns, in order, if the files do not begin with them."""
    quotes: bool = True
    """Whether cells may be in double quotes; with false, these are ordinary characters."""


class CsvFormat(TextFormat):
    """One row per line, cells separated by commas or `delimiter`."""

    kind: Literal["csv"]
    """How the files are written."""
    delimiter: Annotated[str, Field(pattern=DELIMITER)] = ","
    """The character between two cells."""


class TsvFormat(TextFormat):
    """One row per line, cells separated by tabs."""

    kind: Literal["tsv"]
    """How the files are written."""
    delimiter: ClassVar[str] = "\t"


class ParquetFormat(Entry):
    """Parquet, of which only the columns that are named are read."""

    kind: Literal["parquet"]
    """How the files are written."""


class JsonLinesFormat(Entry):
    """One JSON object per line, or one JSON list of objects in any layout."""

    kind: Literal["jsonl"]
    """How the files are written."""


Format = CsvFormat | TsvFormat | ParquetFormat | JsonLinesFormat
ENDINGS: dict[str, Format] = {
    ".csv": CsvFormat(kind="csv"),
    **dict.fromkeys((".tsv", ".tab"), TsvFormat(kind="tsv")),
    **dict.fromkeys((".parquet", ".pq"), ParquetFormat(kind="parquet")),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), JsonLinesFormat(kind="jsonl")),
}
"""What the name of a file ends in, but for .gz, and the format that it then has."""


class ListColumn(Entry):
    """A column of lists."""

    column: Text
    """Its name."""
    separator: Text | None = None
    """Separator of the items, if the lists are written as text. Default: such a text is one item."""


AnyList = Annotated[ListColumn, ShortFor("column")]
ListOrNone = Annotated[ListColumn | None, ShortFor("column")]


class PaperColumns(Entry):
    """The columns of a table of papers. Names with dots select nested values, such as venue.raw."""

    id: Text
    """The id of a paper."""
    title: Text | None = None
    """Its title."""
    abstract: Text | None = None
    """Its abstract."""
    year: Text | None = None
    """Its year of publication, or a date that begins with the year; one such as 2020-07-01 is kept as well."""
    venue: Text | None = None
    """Venue of publication."""
    doi: Text | None = None
    """Its digital object identifier."""
    fields: ListOrNone = None
    """Its fields of study."""
    authors: ListOrNone = None
    """Names of its authors; only with corpus.authors."""


class CitationColumns(Entry):
    """The columns of a table of citations. Names with dots select nested values."""

    citing: Text
    """The id of the paper that cites."""
    cited: AnyList
    """The id of the paper that is cited, or the list of all that it cites: a row may be one citation or a paper with
    its references."""


class TableFiles(Entry):
    """Files of one table, and how they are read."""

    files: GivenPath
    """The file, or a pattern of several, such as papers/*.csv.gz. Environment variables are expanded."""
    format: Annotated[Format | None, Field(discriminator="kind"), ShortFor("kind")] = None
    """How the files are written: a name, or a name and its settings. Default: by the suffix of their names. All but
    Parquet may be gzipped."""
    prefix: Text | None = None
    """Prefix of the ids, which is removed, such as `doi:`. If a cell has several ids separated by spaces, the one with
    the prefix counts; a cell without such an id has none."""
    lowercase: bool = False
    """Convert ids to lowercase, for ids that are case-insensitive, such as DOIs."""
    nulls: Names = ()
    r"""Texts of cells or items that mean a missing value, such as NA."""

    def paths(self) -> list[str]:
        """The files, in the order of their paths."""
        if Path(self.files).is_file():
            return [self.files]
        found = glob.glob(self.files, recursive=True)  # noqa: PTH207 (a pattern may be absolute)
        return sorted(path for path in found if Path(path).is_file())

    def format_of(self, path: str) -> Format | None:
        """How a file is written; None where neither the configuration nor its name says it."""
        return self.format or ENDINGS.get(Path(path.lower().removesuffix(PACKED)).suffix)

    def faults_of_files(self, key: str, results: Path) -> Iterator[str]:
        """Files that do not exist, have an unknown format, or are inside the results."""
        paths = self.paths()
        if not paths:
            yield f"{key}.files: there is no file {self.files}."
        for path in paths:
            if self.format_of(path) is None:
                known = ", ".join(ENDINGS)
                yield f"{key}.format is missing: the name of {path} says nothing of it, ending in none of {known}."
            if Path(path).resolve().is_relative_to(results.resolve()):
                yield f"{key}.files: {path} is inside {results}, from which a run removes files; move it elsewhere."


class PaperTable(TableFiles):
    """A table of papers."""

    columns: PaperColumns
    """The names of the columns."""


class CitationTable(TableFiles):
    """A table of citations. It may be that of the papers once more, if this has a column of references."""

    columns: CitationColumns
    """The names of the columns."""


AnyTable = PaperTable | CitationTable


def named_columns(table: TableFiles) -> Iterator[tuple[str, str]]:
    """The columns that a table names: the key of each, and its name."""
    columns: Entry = table.columns  # type: ignore[attr-defined]
    for key, named in columns:
        if named is not None:
            yield key, named.column if isinstance(named, ListColumn) else named
