"""Which fields a document is read as, and where those come from that stand in no table of texts.

What an encoder reads lies in its folder and travels with it. Where it reads more than title and abstract, venue,
authors and year are looked up by the document's id in a second table: those of papers in the table `papers`, those of a
benchmark's documents in `document_fields`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cocite.config.encoders import TITLE_AND_ABSTRACT, EncoderSettings
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import open_table, read_json, write_json

FILE = "document_text.json"
ROWS_READ = 10_000
"""Rows of a table with fields that are read together."""

Values = dict[str, str | None]
"""The text of each further field of a document; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How an encoder reads a document."""

    fields: tuple[str, ...] = TITLE_AND_ABSTRACT
    """The fields, in their order."""
    sentence_wise: bool = False
    """Whether sentences are embedded by themselves."""
    separator: str | None = None
    """What stands between the fields; None for the tokenizer's separator."""

    @property
    def further(self) -> list[str]:
        """The fields beside title and abstract."""
        return [name for name in self.fields if name not in TITLE_AND_ABSTRACT]


def write_reading(folder: Path, settings: EncoderSettings) -> None:
    """Write what the settings say into the folder of an encoder; nothing where they say nothing."""
    if settings.text is None and not settings.sentence_wise and settings.separator is None:
        return
    said = {"fields": list(settings.text or TITLE_AND_ABSTRACT), "sentence_wise": bool(settings.sentence_wise)}
    write_json(folder / FILE, said if settings.separator is None else said | {"separator": settings.separator})


def read_reading(folder: Path) -> Reading:
    """What the folder of an encoder says; title and abstract as one text where it says nothing."""
    if not (folder / FILE).is_file():
        return Reading()
    said = read_json(folder / FILE)
    return Reading(fields=tuple(said["fields"]), sentence_wise=said["sentence_wise"], separator=said.get("separator"))


def as_text(value: Any) -> str | None:
    """A field as text: the names of authors with commas between them, a year in digits."""
    if isinstance(value, list):
        value = ", ".join(name for name in value if name)
    return None if value is None else str(value).strip() or None


def source_of(documents: Path, table: str, papers: Sequence[Path] = ()) -> tuple[Path, str] | None:
    """The file that has the further fields of a file of documents, and the name of its table; none for brought texts.

    Those of papers stand with them, those of examples in the bucket of `papers` with the same name, and those of a
    benchmark beside its documents. Raises `InputError` where that bucket is not given.
    """
    match table:
        case "papers":
            return documents, "papers"
        case "documents":
            return documents.with_name("document_fields.parquet"), "document_fields"
        case "sampled_texts":
            return None
    for bucket in papers:
        if bucket.name == documents.name:
            return bucket, "papers"
    raise InputError(
        f"{documents}: the encoder reads fields that stand in the table papers, whose bucket {documents.name} is not "
        "given."
    )


class FurtherFields:
    """Looks up the further fields of documents that come in the order of their ids, in a table that is read once."""

    def __init__(self, source: tuple[Path, str] | None, names: Sequence[str]) -> None:
        """Open the table. Raises `InputError` where it lacks one of the fields."""
        self.names = names
        self.missing = dict.fromkeys(names, 0)
        """How many of the documents that were looked up lack each field."""
        self.looked_up = 0
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._held: pa.Table | None = None
        if source is None or not names:
            return
        path, table = source
        file = open_table(path, table)
        for name in names:
            if name not in file.schema_arrow.names:
                raise InputError(f"{path}: has no column {name}, which the encoder reads; set corpus.{name}: true.")
        [self._key] = TABLES[table].key
        self._batches = file.iter_batches(ROWS_READ, columns=[self._key, *names])
        self._held = file.schema_arrow.empty_table().select([self._key, *names])

    def of(self, ids: pa.Array) -> list[Values]:
        """The fields of the documents with these ids, which rise from call to call; those that it lacks are None.

        What is held is the rows that were read and have not been asked for.
        """
        if self._held is None or len(ids) == 0:
            return [{} for _ in range(len(ids))]
        last, read = ids[-1], [self._held]
        reached = self._held[self._key][-1] if len(self._held) else None
        while reached is None or pc.less(reached, last).as_py():
            batch = next(self._batches, None)
            if batch is None:
                break
            reached = batch[self._key][-1]
            wanted = pc.or_(pc.is_in(batch[self._key], value_set=ids), pc.greater(batch[self._key], last))
            read.append(pa.Table.from_batches([batch.filter(wanted)]))
        rows = pa.concat_tables(read).combine_chunks()
        places = pc.index_in(ids, value_set=rows[self._key].combine_chunks())
        self._held = rows.filter(pc.greater(rows[self._key], last))
        found = rows.select(self.names).take(places).to_pylist()
        values = [{name: as_text(value) for name, value in row.items()} for row in found]
        self.looked_up += len(values)
        for name in self.names:
            self.missing[name] += sum(row[name] is None for row in values)
        return values

    def tell(self, documents: str) -> None:
        """Report how many documents lack each field."""
        for name, count in self.missing.items():
            report(f"{name}: {count} of {self.looked_up} {documents} have none; it is left out of their texts.")
