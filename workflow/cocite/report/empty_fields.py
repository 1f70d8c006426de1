"""Which fields of a text no document of a benchmark has, so that what reads them scores as if it did not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cocite.config.encoders import TITLE_AND_ABSTRACT
from cocite.config.lineage import encoder_under
from cocite.config.runs import untrained
from cocite.core.tables.files import scan_table
from cocite.core.tables.places import path_of


def empty_fields(results: Path, configuration: Mapping[str, Any]) -> pl.DataFrame:
    """One row a benchmark and field that is read and that none of its documents has; queries of words do not count."""
    readers = readers_of_fields(configuration)
    rows = []
    for benchmark in configuration["benchmarks"]:
        further = [field for field in readers if field not in TITLE_AND_ABSTRACT]
        documents, filled = _counted(results, benchmark, further)
        rows += [
            {"benchmark": benchmark, "field": field, "documents": documents, "read by": ", ".join(readers[field])}
            for field, number in filled.items()
            if documents and not number
        ]
    schema = {"benchmark": pl.String, "field": pl.String, "documents": pl.Int64, "read by": pl.String}
    return pl.DataFrame(rows, schema=schema)


def readers_of_fields(configuration: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the encoders and models that read each field of a document."""
    named = dict(zip(untrained(configuration), configuration["encoders"], strict=True))
    named |= {name: encoder_under(name, configuration["models"]) for name in configuration["models"]}
    readers: dict[str, list[str]] = {name: ["everything that reads texts"] for name in TITLE_AND_ABSTRACT}
    for name, encoder in named.items():
        for field in configuration["encoders"][encoder].get("text") or ():
            if field not in TITLE_AND_ABSTRACT:
                readers.setdefault(field, []).append(name)
    return readers


def _counted(results: Path, benchmark: str, further: list[str]) -> tuple[int, dict[str, int]]:
    """How many documents a benchmark has that are no short queries, and how many of them have each field."""
    documents, filled = 0, dict.fromkeys((*TITLE_AND_ABSTRACT, *further), 0)
    for batch in _batches(results, "documents", benchmark, [*TITLE_AND_ABSTRACT, "is_query"]):
        if "is_query" in batch.schema.names:
            batch = batch.filter(pc.invert(pc.fill_null(batch["is_query"], False)))
        documents += len(batch)
        for name in TITLE_AND_ABSTRACT:
            filled[name] += _number(batch[name])
    for batch in _batches(results, "document_fields", benchmark, further) if further else ():
        for field in further:
            filled[field] += _number(batch[field])
    return documents, filled


def _number(values: pa.Array) -> int:
    """How many values are neither null nor of length 0."""
    if pa.types.is_integer(values.type):
        return len(values) - values.null_count
    lengths = pc.list_value_length(values) if pa.types.is_list(values.type) else pc.utf8_length(values)
    return int(pc.sum(pc.greater(lengths, 0)).as_py() or 0)


def _batches(results: Path, table: str, benchmark: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a table of a benchmark, as far as it has them, some rows at a time."""
    found = scan_table(path_of(results, table, benchmark=benchmark), table)
    kept = [name for name in columns if name in found.schema.names]
    yield from found.to_batches(columns=kept, batch_readahead=1, fragment_readahead=1)
