"""The folder that engines train from, laid out as the importer of PyTorch-BigGraph does it.

    entities/entity_count_paper_<p>.txt    number of papers of a partition
    entities/entity_names_paper_<p>.json   their corpus ids, in the order of the rows of the embedding
    training/edges_<i>_<j>.h5              edges from partition i to partition j: lhs, rel, rhs, rows of a partition;
                                           weight beside them where the import keeps the weights of edges
    holdout/edges_<i>_<j>.h5

Here papers have one row over all partitions, which lie one behind the other. Only arrays are held in memory.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.embeddings.edges import ImportedBlock, Papers, Rows, Weights

ENTITY = "paper"
RELATION = "edge"
ENTITIES = "entities"

FORMAT_VERSION = 1
ENDS = ("lhs", "rhs")
WEIGHT = "weight"
VALUES_IN_CHUNK = 65_536
NAMES_IN_MEMORY = 1_000_000
EDGES_IN_MEMORY = 4_000_000


def partition_starts(papers: int, partitions: int) -> Rows:
    """First row of each partition, and the number of papers: blocks of nearly one size."""
    return np.array([-(-part * papers // partitions) for part in range(partitions + 1)])


def write_papers(imported: Path, papers: Papers, starts: Rows) -> None:
    """Write the counts and names of all partitions; `papers` are corpus ids by row."""
    folder = imported / ENTITIES
    folder.mkdir(parents=True)
    for part in range(len(starts) - 1):
        of_part = papers[starts[part] : starts[part + 1]]
        _count_file(imported, part).write_text(f"{len(of_part)}\n")
        with _names_file(imported, part).open("wb") as file:
            file.write(b"[")
            for start in range(0, len(of_part), NAMES_IN_MEMORY):
                file.write(b",\n" if start else b"\n")
                file.write(_quoted(of_part[start : start + NAMES_IN_MEMORY]))
            file.write(b"\n]\n")


class ImportedFolder:
    """An imported graph, to be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def starts(self) -> Rows:
        """First row of each partition, and the number of papers."""
        partitions = len(list((self.folder / ENTITIES).glob(f"entity_count_{ENTITY}_*.txt")))
        return np.cumsum([0, *(int(_count_file(self.folder, part).read_text()) for part in range(partitions))])

    def papers(self) -> Papers:
        """The corpus ids of all papers by row."""
        partitions = len(self.starts()) - 1
        return np.concatenate([_read_names(_names_file(self.folder, part)) for part in range(partitions)])

    def edges(self, side: str) -> Iterator[tuple[Rows, Rows]]:
        """All edges to train on or all held-out ones, as rows of source and target, in blocks."""
        return ((lhs, rhs) for lhs, rhs, _ in self.weighted_edges(side))

    def weighted_edges(self, side: str) -> Iterator[ImportedBlock]:
        """The same, each block with the weights of its edges (None where the import kept none).

        A weight is a multiple of the mean weight of the edges to train on.
        """
        starts = self.starts()
        for lhs_part, rhs_part in product(range(len(starts) - 1), repeat=2):
            with h5py.File(edge_file(self.folder, side, lhs_part, rhs_part)) as file:
                lhs, rhs = (file[end] for end in ENDS)
                for start in range(0, len(lhs), EDGES_IN_MEMORY):
                    block = slice(start, start + EDGES_IN_MEMORY)
                    weight = file[WEIGHT][block] if WEIGHT in file else None
                    yield lhs[block] + starts[lhs_part], rhs[block] + starts[rhs_part], weight

    def count_edges(self, side: str) -> NDArray[np.int64]:
        """Number of edges from each partition to each, partitions × partitions."""
        partitions = len(self.starts()) - 1
        counts = np.zeros((partitions, partitions), dtype=np.int64)
        for lhs_part, rhs_part in product(range(partitions), repeat=2):
            with h5py.File(edge_file(self.folder, side, lhs_part, rhs_part)) as file:
                counts[lhs_part, rhs_part] = len(file["rel"])
        return counts


def edge_file(imported: Path, side: str, lhs_part: int, rhs_part: int) -> Path:
    """Where the edges from one partition to another lie."""
    return imported / side / f"edges_{lhs_part}_{rhs_part}.h5"


def write_edges(
    imported: Path, side: str, starts: Rows, blocks: Iterable[ImportedBlock], *, weighted: bool = False
) -> None:
    """Write the edges of one side to a file for each pair of partitions; `weighted` says that they have weights."""
    (imported / side).mkdir(parents=True)
    parts = range(len(starts) - 1)
    with ExitStack() as opened:
        files = {
            (lhs, rhs): opened.enter_context(_new_edge_file(edge_file(imported, side, lhs, rhs), weighted))
            for lhs, rhs in product(parts, repeat=2)
        }
        for lhs, rhs, weight in blocks:
            lhs_parts, rhs_parts = (np.searchsorted(starts, rows, side="right") - 1 for rows in (lhs, rhs))
            for (lhs_part, rhs_part), file in files.items():
                chosen = (lhs_parts == lhs_part) & (rhs_parts == rhs_part) if len(files) > 1 else slice(None)
                _append(file["lhs"], lhs[chosen] - starts[lhs_part])
                _append(file["rhs"], rhs[chosen] - starts[rhs_part])
                if weight is not None:
                    _append(file[WEIGHT], weight[chosen])
                # Of the one relation there is, the number is 0: what is never written of a dataset reads as 0.
                file["rel"].resize(file["lhs"].shape)


def _new_edge_file(path: Path, weighted: bool) -> h5py.File:
    file = h5py.File(path, "w")
    file.attrs["format_version"] = FORMAT_VERSION
    for name in ("lhs", "rel", "rhs"):
        file.create_dataset(name, shape=(0,), maxshape=(None,), dtype=np.int64, chunks=(VALUES_IN_CHUNK,))
    if weighted:
        file.create_dataset(WEIGHT, shape=(0,), maxshape=(None,), dtype=np.float32, chunks=(VALUES_IN_CHUNK,))
    return file


def _append(dataset: h5py.Dataset, values: Rows | Weights) -> None:
    if len(values):
        dataset.resize((len(dataset) + len(values),))
        dataset[-len(values) :] = values


def _count_file(imported: Path, part: int) -> Path:
    return imported / ENTITIES / f"entity_count_{ENTITY}_{part}.txt"


def _names_file(imported: Path, part: int) -> Path:
    return imported / ENTITIES / f"entity_names_{ENTITY}_{part}.json"


def _quoted(papers: Papers) -> memoryview:
    """Corpus ids as strings of JSON, separated by commas."""
    words = pa.ListArray.from_arrays([0, len(papers)], pa.array(papers).cast(pa.string()))
    joined = pc.binary_join(words, '",\n"').cast(pa.binary())
    return memoryview(b'"' + joined[0].as_py() + b'"')


def _read_names(path: Path) -> Papers:
    return np.fromstring(path.read_bytes().translate(None, b'[]" \n'), dtype=np.int64, sep=",")
