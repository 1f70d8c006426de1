"""The documents of a benchmark, looked up among vectors that were brought."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.baselines.brought import SUFFIXES, Names, read_vectors
from cocite.baselines.steps import Batch, Embedding
from cocite.core.errors import InputError
from cocite.core.progress import report

if TYPE_CHECKING:
    from cocite.baselines.methods.brought import BroughtVectors


def vectors_for(
    embedding: Embedding, path: Path, brought: "BroughtVectors"
) -> Iterator[tuple[list[Any], NDArray[np.float32]]]:
    """The vectors of the documents that have one. Raises `InputError` where none has."""
    by_paper = brought.names == "papers"
    wanted = {name for batch in embedding.documents() for name in _ids_of(batch, by_paper=by_paper) if name}
    files = _files(path)
    found = read_vectors(files, wanted, Names(brought.ids, brought.vectors))
    if not found.rows:
        first = min(wanted, default="nothing")
        raise InputError(
            f"{path}: none of its {found.read:,} ids is one of the {len(wanted):,} of {embedding.source}, such as "
            f"{first!r}; ids are those that the benchmark has."
        )
    report(f"{path}: {len(found.rows):,} of {found.read:,} vectors are of the documents of {embedding.source}.")
    for batch in embedding.documents():
        ids = _ids_of(batch, by_paper=by_paper)
        rows = [None if each is None else found.rows.get(each) for each in ids]
        names = [name for name, row in zip(batch.names, rows, strict=True) if row is not None]
        yield names, found.matrix[[row for row in rows if row is not None]]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and not file.name.startswith("."))
    if not files:
        raise InputError(f"{path}: holds none of {', '.join(SUFFIXES)}.")
    return files


def _ids_of(batch: Batch, *, by_paper: bool) -> list[str | None]:
    """The id that each document is looked up by; none for a short query, which is no paper, where ids are of papers.

    A document's name is its id, behind a colon where several texts of a benchmark share the id.
    """
    if not by_paper:
        return [str(name) for name in batch.names]
    rows = zip(batch.names, batch.are_queries, strict=True)
    return [None if is_query else str(name).rpartition(":")[2] for name, is_query in rows]
