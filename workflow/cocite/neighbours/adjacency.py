"""The edges of a graph as rows: for each paper, the papers that it has an edge with, in either direction.

In come the buckets of the table `edges`; out goes a folder of arrays (`core.adjacency`). Edges are read three times or
more: once for the papers, once for the numbers of their links, and once for the links of as many papers as there is
memory for.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numba import njit
from numpy.typing import NDArray

from cocite.config.embeddings import Links
from cocite.config.settings import GivenAsJson
from cocite.core.adjacency import Places, Starts
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.id_sets import IdSet, check_ids, id_set, members_at, places_of, size
from cocite.core.options import MemoryMb, Output
from cocite.core.progress import ahead, report
from cocite.core.tables.files import checked_files, open_table

RESERVED_MB = 400
"""Memory for the program and the edges that are being read."""
BYTES_OF_PAPER = 40
"""Memory that a paper takes while links are laid out: in the set of ids, in three arrays of starts, and its degree."""
EDGES_READ = 1_000_000


def build_adjacency(
    edges: Annotated[Sequence[Path], typer.Argument(help="Buckets of the table edges.")],
    settings: GivenAsJson[Links],
    *,
    memory_mb: MemoryMb,
    output: Output,
) -> None:
    """Write the folder. Raises `InputError` if a graph has no edge, or a weight that counts is not positive."""
    files = checked_files(edges, "edges")
    papers = id_set(chain.from_iterable(_edges(files, ["source", "target"])))
    if size(papers) == 0:
        raise InputError(f"{files[0].parent}: the graph has no edges; lower its min_count or choose more queries.")
    starts = np.zeros(size(papers) + 1, dtype=np.int64)
    for source, target, _ in _placed(files, papers, weighted=False):
        np.add.at(starts, np.concatenate([source, target]) + 1, 1)
    np.cumsum(starts, out=starts)
    report(f"{size(papers):,} papers with {starts[-1] // 2:,} edges")
    left = (memory_mb - RESERVED_MB) * 1e6 - BYTES_OF_PAPER * len(starts)
    room = int(max(1, left) // (8 if settings.weighted else 4))
    with atomic_path(output) as folder:
        folder.mkdir()
        np.save(folder / "ids.npy", members_at(papers, np.arange(size(papers), dtype=np.int32)))
        np.save(folder / "starts.npy", starts)
        _write_links(folder, files, papers, starts, room, settings.weighted)


def _write_links(folder: Path, files: Sequence[Path], papers: IdSet, starts: Starts, room: int, weighted: bool) -> None:
    """Write the links and degrees, for as many papers at a time as have `room` links, and for at least one."""
    degrees, first = np.diff(starts).astype(np.float64), 0
    _append(folder / "others.npy", np.empty(0, np.int32), length=int(starts[-1]))
    if weighted:
        _append(folder / "weights.npy", np.empty(0, np.float32), length=int(starts[-1]))
    while first < len(starts) - 1:
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + room, side="right")) - 1)
        own = starts[first : end + 1] - starts[first]
        # The links of each paper in order, in front of the bits of their weights if these count.
        links, cursor = np.empty(own[-1], dtype=np.uint64 if weighted else np.int32), own[:-1].copy()
        for source, target, weight in _placed(files, papers, weighted=weighted):
            _lay_out(source, target, weight.view(np.uint32), first, cursor, links)
        _sort_rows(own, links)
        if weighted:
            weights = links.astype(np.uint32).view(np.float32)
            _append(folder / "weights.npy", weights)
            degrees[first:end] = _sums(own, weights)
            links = (links >> np.uint64(32)).astype(np.int32)
        _append(folder / "others.npy", links)
        first = end
    np.save(folder / "degrees.npy", degrees)


def _append(path: Path, numbers: NDArray, *, length: int = 0) -> None:
    """Append numbers to the file of an array, whose header has its length; mapped ones would be held in memory."""
    with path.open("ab") as file:
        if length:
            header = {"descr": np.lib.format.dtype_to_descr(numbers.dtype), "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(file, header)
        numbers.tofile(file)


def _placed(files: Sequence[Path], papers: IdSet, *, weighted: bool) -> Iterator[tuple[Places, Places, NDArray]]:
    """The edges as places of papers, with their weights or nothing."""
    nothing = np.empty(0, dtype=np.float32)
    return ahead(
        (places_of(papers, source), places_of(papers, target), weight[0] if weighted else nothing)
        for source, target, *weight in _edges(files, ["source", "target", *(["weight"] if weighted else [])])
    )


def _edges(files: Sequence[Path], columns: list[str]) -> Iterator[list[NDArray]]:
    """Some columns of all edges. Raises `InputError` for a negative id, or a weight that is not positive."""
    for path in files:
        with open_table(path, "edges", buffer_size=1 << 20) as file:
            for batch in file.iter_batches(EDGES_READ, columns=columns):
                block = [batch.column(name).to_numpy() for name in columns]
                for ids in block[:2]:
                    check_ids(ids, path)
                for weight in block[2:]:
                    if len(wrong := weight[~((weight > 0) & (weight < np.inf))]):
                        needed = "walks with weighted: true need positive ones"
                        change = "choose another strength, or weighted: false"
                        raise InputError(f"{path}: contains the weight {wrong[0]}; {needed}; {change}.")
                yield block


@njit(nogil=True, cache=True)
def _lay_out(source, target, weight, first, cursor, links):  # type: ignore[no-untyped-def]
    """Add links to the rows of papers from `first` on, at `cursor`, in front of the bits of their weights if any."""
    for edge in range(len(source)):
        for own, other in ((source[edge], target[edge]), (target[edge], source[edge])):
            row = own - first
            if 0 <= row < len(cursor):
                if len(weight):
                    links[cursor[row]] = (np.uint64(other) << np.uint64(32)) | np.uint64(weight[edge])
                else:
                    links[cursor[row]] = other
                cursor[row] += 1


@njit(nogil=True, cache=True)
def _sort_rows(starts, links):  # type: ignore[no-untyped-def]
    for row in range(len(starts) - 1):
        links[starts[row] : starts[row + 1]].sort()


@njit(nogil=True, cache=True)
def _sums(starts, weights):  # type: ignore[no-untyped-def]
    sums = np.zeros(len(starts) - 1)
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            sums[row] += weights[at]
    return sums
