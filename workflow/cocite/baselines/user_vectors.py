"""User-supplied vectors: ids and vectors of any model, as Parquet, NPZ or JSON Lines.

Rows are read some thousand at a time, and only the requested vectors stay in memory.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.core.errors import InputError, explain_unreadable
from cocite.core.rows import PARQUET, as_float, is_json_lines, read_batches, read_line_batches, read_lines, shown
from cocite.core.written_ids import whole_numbers

IDS = ("paper_id", "id", "ids", "document", "corpusid", "corpus_id", "doc_id")  # default names of ids
VECTORS = ("embedding", "vector", "embeddings", "vectors")
SUFFIXES = (".parquet", ".npz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
ROWS_AT_ONCE = 4096
VECTOR = pa.list_(pa.float64())


class FieldNames(NamedTuple):
    """What ids and vectors are called in a file; None for whatever is usual."""

    ids: str | None = None
    vectors: str | None = None


class Part(NamedTuple):
    """Some rows of a file, and what names the file and the row or line of one of them."""

    ids: list[str]
    vectors: NDArray[np.float32]
    place: Callable[[int], str]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The requested vectors among those of a user's files: the row of each id, and the number of vectors read."""

    rows: dict[str, int]
    matrix: NDArray[np.float32]
    read: int


def read_vectors(files: Collection[Path], wanted: Collection[str], names: FieldNames = FieldNames()) -> Found:
    """The vectors of the wanted ids; all are checked. Raises `InputError` if an id is repeated other than in another
    file with the same vector, for vectors of different dimensions, and for one that is not finite."""
    asked, read, dimension, first = set(wanted), 0, 0, ""
    rows, vectors, places, last_file = dict[str, int](), list[NDArray[np.float32]](), list[str](), dict[str, Path]()
    for path in files:
        for part in filter(lambda part: part.ids, _parts(path, names)):
            dimension, first = dimension or part.vectors.shape[1], first or part.place(0)
            if part.vectors.shape[1] == 0:
                raise InputError(f"{part.place(0)}: the vector of {part.ids[0]!r} is empty.")
            if part.vectors.shape[1] != dimension:
                raise _another_dimension(part.place(0), part.vectors.shape[1], first, dimension)
            for row in np.flatnonzero(~np.isfinite(part.vectors).all(axis=1)).tolist():
                said = f"the vector of {part.ids[row]!r} contains a value that is not finite"
                raise InputError(f"{part.place(row)}: {said}.")
            read += len(part.ids)
            for row, name in enumerate(part.ids):
                if name not in asked:
                    continue
                known = rows.setdefault(name, len(vectors))
                if known == len(vectors):
                    vectors.append(part.vectors[row].copy())
                    places.append(part.place(row))
                elif last_file[name] == path or not np.array_equal(vectors[known], part.vectors[row]):
                    again = "a second time" if last_file[name] == path else "again with another vector"
                    said = f"the id {name!r} is there {again}; it came in {places[known]}"
                    raise InputError(f"{part.place(row)}: {said}.")
                last_file[name] = path
    return Found(rows=rows, matrix=np.stack(vectors) if vectors else np.empty((0, dimension), np.float32), read=read)


def _another_dimension(place: str, dimension: int, first: str, expected: int) -> InputError:
    return InputError(f"{place}: the vector has {dimension} dimensions, and that of {first} has {expected}.")


def files_in(path: Path) -> list[Path]:
    """The file, or the files of vectors of a folder. Raises `InputError` if it has none."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and not file.name.startswith("."))
    if not files:
        raise InputError(f"{path}: contains none of {', '.join(SUFFIXES)}.")
    return files


def _parts(path: Path, names: FieldNames) -> Iterator[Part]:
    if path.suffix == ".parquet":
        return _of_parquet(path, names)
    if path.suffix == ".npz":
        return _of_npz(path, names)
    if is_json_lines(path):
        return _of_json_lines(path, names)
    raise InputError(f"{path}: is neither Parquet (.parquet), NPZ (.npz) nor JSON Lines (.jsonl, .jsonl.gz).")


def _of_parquet(path: Path, names: FieldNames) -> Iterator[Part]:
    import pyarrow.parquet as pq

    with explain_unreadable(path, PARQUET):
        called, before = _named(pq.read_schema(path).names, names, path, "columns"), 0
        for batch in read_batches(path, called, rows=ROWS_AT_ONCE):
            yield _from_arrow(batch, called, _places(path, "row", before))
            before += len(batch)


def _of_npz(path: Path, names: FieldNames) -> Iterator[Part]:
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
        said = f"{vectors_name}: is {vectors.dtype} of the shape {vectors.shape}"
        raise InputError(f"{path}, {said}; it must be of numbers, documents × dimension.")
    if ids.ndim != 1 or ids.dtype.kind not in "iuU" or len(ids) != len(vectors):
        said = f"{ids_name}: is {ids.dtype} of the shape {ids.shape}"
        raise InputError(f"{path}, {said}; it must have a text or an integer for each of {len(vectors)} vectors.")
    for start in range(0, len(ids), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        with explain_unreadable(path, "NPZ file"):
            texts = [str(each) for each in ids[some].tolist()]
        yield Part(texts, _as_float32(vectors[some]), _places(path, "row", start))


def _of_json_lines(path: Path, names: FieldNames) -> Iterator[Part]:
    def schema_of(row: dict[str, Any]) -> pa.Schema:
        ids, vectors = _named(row, names, path, "keys")
        return pa.schema({ids: pa.string() if isinstance(row[ids], str) else pa.int64(), vectors: VECTOR})

    before = 0
    for batch in read_line_batches(path, schema_of):
        if batch is None or any(column.null_count for column in batch.columns):
            yield from _line_by_line(path, names, before)
            return
        yield _from_arrow(batch, batch.schema.names, _places(path, "line", before))
        before += len(batch)


def _line_by_line(path: Path, names: FieldNames, after: int) -> Iterator[Part]:
    """The rows behind the first lines of a file, with a message on the first that is not as it should be."""
    for row in islice(read_lines(path), after, None):
        ids, vectors = _named(row.values, names, path, "keys")
        given = row.require(vectors)
        if not isinstance(given, list) or not given:
            raise InputError(f"{row.place}: {vectors} must be a list of numbers, not {shown(given)}.")
        for each in given:
            if isinstance(each, bool) or not isinstance(each, int | float):
                raise InputError(f"{row.place}: {vectors} must be a list of numbers, but is {shown(each)}.")
        values = _as_float32(np.array([list(map(as_float, given))]))
        yield Part([row.identifier(ids)], values, _places(path, "line", int(row.at) - 1))


def _from_arrow(rows: Any, called: Sequence[str], place: Callable[[int], str]) -> Part:
    """Rows of two columns. Raises `InputError` if an id or a vector is missing or of the wrong type."""
    given, vectors = (rows[name] for name in called)
    ids = whole_numbers(given)
    if not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type)):
        raise InputError(f"{place(0)}: {called[0]} is {ids.type}; ids are texts or integers.")
    is_list, kinds = pa.types.is_list(vectors.type), (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    if not is_list or not any(is_kind(vectors.type.value_type) for is_kind in kinds):
        raise InputError(f"{place(0)}: {called[1]} is {vectors.type}; vectors are lists of numbers.")
    for name, column, written in zip(called, (ids, vectors), (given, vectors), strict=True):
        if column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            said = f"{written[row]}, which is no whole number that is exact" if written[row].is_valid else "null"
            raise InputError(f"{place(row)}: {name} is {said}.")
    if not len(ids):
        return Part([], np.empty((0, 0), np.float32), place)
    lengths = pc.list_value_length(vectors)
    dimension = lengths[0].as_py()
    other = pc.index(pc.not_equal(lengths, dimension), True).as_py()
    if other >= 0:
        raise _another_dimension(place(other), lengths[other].as_py(), place(0), dimension)
    flat = vectors.flatten().cast(pa.float32(), safe=False)
    if flat.null_count:
        row = pc.index(flat.is_null(), True).as_py() // dimension
        raise InputError(f"{place(row)}: a value of the vector is null.")
    return Part(ids.cast(pa.string()).to_pylist(), flat.to_numpy().reshape(len(ids), dimension), place)


def _as_float32(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors as they are kept; a number that is too large for it becomes infinite, which is refused later."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(vectors, np.float32)


def _named(there: Collection[str], names: FieldNames, path: Path, kind: str) -> list[str]:
    """What ids and vectors are called among the names that a file has."""
    chosen = []
    for what, asked, usual in (("ids", names.ids, IDS), ("vectors", names.vectors, VECTORS)):
        wanted = (asked,) if asked else usual
        found = [name for name in wanted if name in there]
        if not found:
            said = f"has no {what} under {' or '.join(wanted)}; its {kind} are {', '.join(there) or 'none'}"
            raise InputError(f"{path}: {said}.")
        chosen.append(found[0])
    return chosen


def _places(path: Path, unit: str, before: int) -> Callable[[int], str]:
    return lambda row: f"{path}, {unit} {before + row + 1}"
