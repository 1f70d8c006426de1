"""Vectors that users supply: ids and vectors of whatever model, as Parquet, NPZ or JSON Lines.

Rows come some thousand at a time, and only the vectors that are asked for stay in memory. JSON Lines are read by Polars
in blocks, several times as fast as line by line; where anything in a block looks wrong, the file is read again line by
line, so that the message names the line.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.errors import InputError, explain_unreadable
from cocite.core.plain_columns import plain, whole_numbers
from cocite.core.rows import PARQUET, as_float, is_json_lines, opened, read_batches, read_lines, shown

IDS = ("paper_id", "id", "ids", "document", "corpusid", "corpus_id", "doc_id")
"""What the ids are called, where a file does not say otherwise; SPECTER's have `paper_id`."""
VECTORS = ("embedding", "vector", "embeddings", "vectors")
SUFFIXES = (".parquet", ".npz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
BLOCK = 32 << 20
"""Bytes of JSON that are read at a time."""
ROWS_AT_ONCE = 4096


class Called(NamedTuple):
    """What ids and vectors are called in a file; None for whatever is usual."""

    ids: str | None = None
    vectors: str | None = None


class Part(NamedTuple):
    """Some rows of a file."""

    ids: list[str]
    vectors: NDArray[np.float32]
    place: Callable[[int], str]
    """The file and the row or line of one of them."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The vectors that were asked for, of those that a user supplies."""

    rows: dict[str, int]
    """The row of each id."""
    matrix: NDArray[np.float32]
    read: int
    """How many vectors there were in all."""


def read_vectors(files: Collection[Path], wanted: Collection[str], names: Called = Called()) -> Found:
    """The vectors of the ids that are wanted. Every vector is checked, wanted or not.

    An id may come again in another file, with the same vector. Raises `InputError` where it comes again otherwise,
    where vectors are of different dimensions, and where one is not finite.
    """
    asked, read, first = set(wanted), 0, (0, "")
    rows, vectors, places, last_file = dict[str, int](), list[NDArray[np.float32]](), list[str](), dict[str, Path]()
    for path in files:
        for part in _parts(path, names):
            _check_vectors(part, first)
            if part.ids:
                read += len(part.ids)
                first = first if first[0] else (part.vectors.shape[1], part.place(0))
            for row, name in enumerate(part.ids):
                if name not in asked:
                    continue
                known = rows.setdefault(name, len(vectors))
                if known == len(vectors):
                    vectors.append(part.vectors[row].copy())
                    places.append(part.place(row))
                elif last_file[name] == path or not np.array_equal(vectors[known], part.vectors[row]):
                    again = "a second time" if last_file[name] == path else "again, with another vector"
                    raise InputError(
                        f"{part.place(row)}: the id {name!r} is there {again}; it came first in {places[known]}."
                    )
                last_file[name] = path
    return Found(rows=rows, matrix=np.stack(vectors) if vectors else np.empty((0, first[0]), np.float32), read=read)


def _check_vectors(part: Part, first: tuple[int, str]) -> None:
    """Raise `InputError` where vectors are empty, not finite or of another dimension than the first, which is named."""
    dimension, place = first
    if part.ids and part.vectors.shape[1] == 0:
        raise InputError(f"{part.place(0)}: the vector of {part.ids[0]!r} is empty.")
    if part.ids and dimension and part.vectors.shape[1] != dimension:
        raise InputError(
            f"{part.place(0)}: the vector has {part.vectors.shape[1]} dimensions, and that of {place} has {dimension}; "
            "the vectors of one model have the same number."
        )
    broken = np.flatnonzero(~np.isfinite(part.vectors).all(axis=1))
    if len(broken):
        row = int(broken[0])
        raise InputError(
            f"{part.place(row)}: the vector of {part.ids[row]!r} holds a value that is not finite (NaN or infinite)."
        )


def files_in(path: Path) -> list[Path]:
    """The file, or the files of vectors of a folder. Raises `InputError` where it has none."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and not file.name.startswith("."))
    if not files:
        raise InputError(f"{path}: holds none of {', '.join(SUFFIXES)}.")
    return files


def _parts(path: Path, names: Called) -> Iterator[Part]:
    if path.suffix == ".parquet":
        return _of_parquet(path, names)
    if path.suffix == ".npz":
        return _of_npz(path, names)
    if is_json_lines(path):
        return _of_json_lines(path, names)
    raise InputError(f"{path}: is neither Parquet (.parquet), NPZ (.npz) nor JSON Lines (.jsonl, .jsonl.gz).")


def _of_parquet(path: Path, names: Called) -> Iterator[Part]:
    import pyarrow.parquet as pq

    with explain_unreadable(path, PARQUET):
        ids, vectors = _named(pq.read_schema(path).names, names, path, "columns")
        before = 0
        for batch in read_batches(path, [ids, vectors], rows=ROWS_AT_ONCE):
            yield _from_arrow(batch[ids], batch[vectors], (ids, vectors), _places(path, "row", before))
            before += len(batch)


def _of_npz(path: Path, names: Called) -> Iterator[Part]:
    with explain_unreadable(path, "NPZ file"):
        try:
            with np.load(path, allow_pickle=False) as arrays:
                ids_name, vectors_name = _named(list(arrays), names, path, "arrays")
                ids, vectors = (np.asarray(arrays[name]) for name in (ids_name, vectors_name))
        except ValueError as error:
            if "pickle" not in str(error).lower():
                raise
            raise ValueError("an array of Python objects, which is not read") from None
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(
            f"{path}, {vectors_name}: is {vectors.dtype} of the shape {vectors.shape}; it must be of numbers, "
            "documents × dimension."
        )
    if ids.ndim != 1 or ids.dtype.kind not in "iuU" or len(ids) != len(vectors):
        raise InputError(
            f"{path}, {ids_name}: is {ids.dtype} of the shape {ids.shape}; it must have an id, a text or an integer, "
            f"for each of the {len(vectors)} vectors."
        )
    for start in range(0, len(ids), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        with explain_unreadable(path, "NPZ file"):
            texts = [str(each) for each in ids[some].tolist()]
        yield Part(texts, _as_float32(vectors[some]), _places(path, "row", start))


def _of_json_lines(path: Path, names: Called) -> Iterator[Part]:
    before = 0
    for lines in _blocks(path):
        table = _by_polars(lines, path, names)
        if table is None:
            yield from _line_by_line(path, names, before)
            return
        called = (table.column_names[0], table.column_names[1])
        ids, vectors = (table[name].combine_chunks() for name in called)
        yield _from_arrow(ids, vectors, called, _places(path, "line", before))
        before += len(table)


def _by_polars(lines: bytes, path: Path, names: Called) -> pa.Table | None:
    """Ids and vectors of some lines; None where anything about them may be wrong, and has to be looked at closely."""
    import polars as pl

    try:
        first = json.loads(lines[: lines.index(b"\n")])
        ids, vectors = _named(list(first), names, path, "keys")
        kind = pl.String if isinstance(first[ids], str) else pl.Int64
        table = pl.read_ndjson(lines, schema={ids: kind, vectors: pl.List(pl.Float64)})
    except (Exception, pl.exceptions.PanicException):
        return None
    values, count = table[vectors].list.explode(), lines.count(b"\n")
    if len(table) != count or table[ids].null_count() or values.null_count():
        return None
    # Polars makes texts of lists and truth values, numbers of decimals, and replaces halves of surrogate pairs.
    key = re.escape(json.dumps(ids)).encode()
    written = re.findall(key + (rb'\s*:\s*"' if kind == pl.String else rb"\s*:\s*-?[0-9]+\s*[,}]"), lines)
    is_changed = kind == pl.String and table[ids].str.contains("\ufffd", literal=True).any()
    return table.to_arrow() if len(written) == count and not is_changed else None


def _blocks(path: Path) -> Iterator[bytes]:
    """The lines of a file, some megabytes at a time, each of them with its end."""
    with opened(path) as file:
        while lines := file.readlines(BLOCK):
            if not lines[-1].endswith(b"\n"):
                lines[-1] += b"\n"
            yield b"".join(lines)


def _line_by_line(path: Path, names: Called, after: int) -> Iterator[Part]:
    """The rows behind the first lines of a file, with a message on the first that is not as it should be."""
    for row in read_lines(path):
        if int(row.at) <= after:
            continue
        ids, vectors = _named(list(row.values), names, path, "keys")
        given = row.require(vectors)
        if not isinstance(given, list) or not given:
            raise InputError(f"{row.place}: {vectors} must be a list of numbers, not {shown(given)}.")
        for each in given:
            if isinstance(each, bool) or not isinstance(each, int | float):
                raise InputError(f"{row.place}: {vectors} must be a list of numbers, and holds {shown(each)}.")
        values = np.array([list(map(as_float, given))])
        yield Part([row.identifier(ids)], _as_float32(values), _places(path, "line", int(row.at) - 1))


def _from_arrow(ids: Any, vectors: Any, called: tuple[str, str], place: Callable[[int], str]) -> Part:
    """Rows of two columns. Raises `InputError` where an id or a vector is missing, or of no type that one has."""
    of_ids, of_vectors = called
    given, vectors = plain(ids), plain(vectors)
    ids = whole_numbers(given)
    if not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type)):
        raise InputError(f"{place(0)}: {of_ids} is {ids.type}; ids are texts or integers.")
    if not pa.types.is_list(vectors.type) or not _is_number(vectors.type.value_type):
        raise InputError(f"{place(0)}: {of_vectors} is {vectors.type}; vectors are lists of numbers.")
    for name, column, written in ((of_ids, ids, given), (of_vectors, vectors, vectors)):
        if column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            said = f"{written[row]}, which is no whole number that is exact" if written[row].is_valid else "null"
            raise InputError(f"{place(row)}: {name} is {said}.")
    if not len(ids):
        return Part([], np.empty((0, 0), np.float32), place)
    lengths = pc.list_value_length(vectors)
    other = pc.index(pc.not_equal(lengths, lengths[0]), True).as_py()
    if other >= 0:
        raise InputError(
            f"{place(other)}: the vector has {lengths[other]} dimensions, and that of {place(0)} has {lengths[0]}; the "
            "vectors of one model have the same number."
        )
    flat, dimension = vectors.flatten().cast(pa.float32(), safe=False), lengths[0].as_py()
    if flat.null_count:
        row = pc.index(flat.is_null(), True).as_py() // dimension
        raise InputError(f"{place(row)}: a value of the vector is null.")
    matrix = flat.to_numpy(zero_copy_only=False).reshape(len(ids), dimension)
    return Part(ids.cast(pa.string()).to_pylist(), matrix, place)


def _as_float32(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors as they are kept; a number that is too large for it becomes infinite, which is refused later."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(vectors, np.float32)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _named(there: Collection[str], names: Called, path: Path, kind: str) -> tuple[str, str]:
    """What ids and vectors are called among the names that a file has."""
    chosen = []
    for what, asked, usual in (("ids", names.ids, IDS), ("vectors", names.vectors, VECTORS)):
        found = next((name for name in ([asked] if asked else usual) if name in there), None)
        if found is None:
            wanted = asked or " or ".join(usual)
            raise InputError(f"{path}: has no {what} under {wanted}; its {kind} are {', '.join(there) or 'none'}.")
        chosen.append(found)
    return chosen[0], chosen[1]


def _places(path: Path, unit: str, before: int) -> Callable[[int], str]:
    return lambda row: f"{path}, {unit} {before + row + 1}"
