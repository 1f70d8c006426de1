"""The folder that engines train from, in the layout of PyTorch-BigGraph's importer, and how it is made.

    entities/entity_count_paper_<p>.txt    number of papers of a partition
    entities/entity_names_paper_<p>.json   their corpus ids, in the order of the rows of the embedding
    training/edges_<i>_<j>.h5              edges from partition i to partition j: lhs, rel, rhs, rows of a partition;
    holdout/edges_<i>_<j>.h5               and their weight if the import keeps it

In arrays, papers have one row over all partitions, which follow each other. PyTorch-BigGraph's own importer
(`import_tsv`), the published way, keeps papers and edges as Python objects. Here the papers are a sorted array, and the
edges are put into a random order, because PyTorch-BigGraph shuffles only within a chunk: each gets a random 64-bit key,
is written to a pile on disk by its first bits, and each pile is sorted in memory.
"""

import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Annotated

import h5py
import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from cocite.config.engine import EdgeSettings
from cocite.config.settings import GivenAsJson
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.options import MemoryMb, Output, Seed, Threads
from cocite.core.progress import progress_bar, report
from cocite.core.randomness import derive_seed, generator, priorities
from cocite.core.tables.files import count_rows, scan_table
from cocite.core.written_ids import distinct
from cocite.embeddings import edges as of_edges
from cocite.embeddings.edges import BLOCK_ROWS, HOLDOUT, TRAINING, ImportedBlock, Mean, Papers, Rows, Weights

ENTITY, RELATION, ENTITIES = "paper", "edge", "entities"
COUNT_FILE, NAMES_FILE = f"{ENTITIES}/entity_count_{ENTITY}_{{}}.txt", f"{ENTITIES}/entity_names_{ENTITY}_{{}}.json"
FORMAT_VERSION = 1
WEIGHT = "weight"
VALUES_IN_CHUNK = 65_536
NAMES_IN_MEMORY = 1_000_000
EDGES_IN_MEMORY = 4_000_000
MOST_PAPERS = 2**31 - 1
EDGES_IN_PILE = 4_000_000
MOST_PILES = 512
EDGE = np.dtype([("key", np.uint64), ("lhs", np.int32), ("rhs", np.int32)])
WEIGHTED_EDGE = np.dtype([*EDGE.descr, ("weight", np.float32)])
SHARE_IN_PILES = {TRAINING: 1.0, HOLDOUT: 0.5}
LINE = pa.schema([("source", pa.int64()), ("target", pa.int64())])
LINES_IN_MEMORY = 100_000


def import_graph(
    edges: Annotated[Sequence[Path], typer.Argument(help="Files of the table edges.")],
    settings: GivenAsJson[EdgeSettings],
    *,
    directed: Annotated[
        bool, typer.Option("--directed/--undirected", help="Train undirected edges in both directions.")
    ],
    seed: Seed,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Turn the edges of a graph into the folder that engines train from, as the settings say."""
    if settings.import_ == "arrow":
        import_edges(edges, settings, directed=directed, seed=seed, output=output)
        return
    training, holdout = (output.with_name(f"{side}.tsv") for side in (TRAINING, HOLDOUT))
    how = {"memory_mb": memory_mb, "threads": threads, "seed": seed}
    try:
        split_edges(edges, settings, directed=directed, training=training, holdout=holdout, **how)
        import_tsv(training=training, holdout=holdout, partitions=settings.partitions, seed=seed, output=output)
    finally:
        for path in (training, holdout):
            path.unlink(missing_ok=True)


def import_edges(edges: Sequence[Path], settings: EdgeSettings, *, directed: bool, seed: int, output: Path) -> None:
    """Make the folder `output`. The same edges and seed give the same bytes, whatever the buckets of the edges. Raises
    `InputError` if there is nothing to train on or to hold out, for weights that are not positive, and for more papers
    than PyTorch-BigGraph can number or fewer than partitions."""
    papers, graph, total = _distinct_papers(edges), edges[0].parent, count_rows(edges)
    if len(papers) > MOST_PAPERS:
        said = f"no more than {MOST_PAPERS:,} can be numbered; raise the graph's min_count"
        raise InputError(f"{graph}: has {len(papers):,} papers with an edge, but {said}.")
    if 0 < len(papers) < settings.partitions:
        said = f"fewer than partitions ({settings.partitions})"
        raise InputError(f"{graph}: has {len(papers)} papers with an edge, {said}.")
    unit = of_edges.unit_of(edges, settings)
    rows = generator(seed, "biggraph", "rows").permutation(len(papers)).astype(np.int32)
    starts = partition_starts(len(papers), settings.partitions)
    most = settings.max_repetitions if settings.weights else 1
    at_once = BLOCK_ROWS // most
    blocks = (
        of_edges.with_positive_weights(edges, "weighted", at_once)
        if settings.weighted
        else of_edges.blocks_of_edges(edges, at_once)
    )
    with atomic_path(output) as folder, ExitStack() as opened:
        piles = {
            side: Piles(folder / "piles" / side, opened, int(2 * total * most * share), weighted=settings.weighted)
            for side, share in SHARE_IN_PILES.items()
        }
        counts, mean = dict.fromkeys(piles, 0), Mean()
        with progress_bar(of="import", unit="edges", total=total) as bar:
            for block in blocks:
                divided = of_edges.divide(*block, settings, directed=directed, unit=unit, seed=seed)
                for side, chosen in zip(piles, divided, strict=True):
                    counts[side] += len(chosen)
                    keys = priorities(seed, "order of edges", chosen.source, chosen.target, chosen.copy)
                    lhs, rhs = (rows[_places(papers, end)] for end in (chosen.source, chosen.target))
                    piles[side].add(keys, lhs, rhs, chosen.weight)
                if divided[0].weight is not None:
                    mean.add(divided[0].weight)
                bar.update(len(block[0]))
        of_edges.check_sides(graph, settings.holdout, counts[TRAINING], counts[HOLDOUT])
        for side, shuffled in piles.items():
            in_multiples = of_edges.relative(shuffled.in_order(), mean, settings.max_weight)
            write_edges(folder, side, starts, in_multiples, weighted=settings.weighted)
        shutil.rmtree(folder / "piles")
        by_row = np.empty_like(papers)
        by_row[rows] = papers
        write_papers(folder, by_row, starts)
    if settings.weighted:
        report(f"the mean weight of the edges to train on is {float(mean):g}")
    report(f"{len(papers):,} papers, {counts[TRAINING]:,} edges to train on, {counts[HOLDOUT]:,} held out")


def _distinct_papers(edges: Sequence[Path]) -> Papers:
    """The papers that have an edge, rising."""
    found = np.empty(0, dtype=np.int64)
    for source, target, _ in of_edges.blocks_of_edges(edges):
        rising = np.sort(np.concatenate([found, distinct(source, target)]), kind="stable")  # merges two sorted runs
        found = rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising
    return found


def _places(papers: Papers, ids: Papers) -> Rows:
    """The place of each id among the papers; looked up in rising order, which is many times faster."""
    order = np.argsort(ids)
    places = np.empty(len(ids), dtype=np.int64)
    places[order] = np.searchsorted(papers, ids[order])
    return places


class Piles:
    """Files of edges by the first bits of their keys, to be sorted one after the other."""

    def __init__(self, folder: Path, opened: ExitStack, expected: int, *, weighted: bool) -> None:
        """Make piles in a folder for about `expected` edges; `opened` closes their files."""
        self.edge = WEIGHTED_EDGE if weighted else EDGE
        folder.mkdir(parents=True)
        self.bits = max(1, min(MOST_PILES.bit_length() - 1, (expected // EDGES_IN_PILE).bit_length()))
        self.paths = [folder / str(pile) for pile in range(2**self.bits)]
        self.files = [opened.enter_context(path.open("wb")) for path in self.paths]

    def add(
        self, keys: NDArray[np.uint64], lhs: NDArray[np.int32], rhs: NDArray[np.int32], weight: Weights | None
    ) -> None:
        """Add edges with their keys, and their weights if the piles keep them."""
        edges = np.empty(len(keys), dtype=self.edge)
        edges["key"], edges["lhs"], edges["rhs"] = keys, lhs, rhs
        if weight is not None:
            edges["weight"] = weight
        pile = (keys >> np.uint64(64 - self.bits)).astype(np.uint16)
        ends = np.cumsum(np.bincount(pile, minlength=len(self.files)))
        dealt = np.split(edges[np.argsort(pile, kind="stable")], ends[:-1])
        for file, part in zip(self.files, dealt, strict=True):
            part.tofile(file)

    def in_order(self) -> Iterator[ImportedBlock]:
        """All edges in the order of their keys, in blocks; each pile is removed once it is read."""
        for path, file in zip(self.paths, self.files, strict=True):
            file.close()
            edges = np.fromfile(path, dtype=self.edge)
            path.unlink()
            edges = edges[np.argsort(np.ascontiguousarray(edges["key"]))]
            yield edges["lhs"], edges["rhs"], edges["weight"] if self.edge is WEIGHTED_EDGE else None


def partition_starts(papers: int, partitions: int) -> Rows:
    """First row of each partition, and the number of papers: blocks of nearly one size."""
    return np.array([-(-part * papers // partitions) for part in range(partitions + 1)])


def write_papers(imported: Path, papers: Papers, starts: Rows) -> None:
    """Write the counts and names of all partitions; `papers` are corpus ids by row."""
    (imported / ENTITIES).mkdir(parents=True)
    for part in range(len(starts) - 1):
        of_part = papers[starts[part] : starts[part + 1]]
        (imported / COUNT_FILE.format(part)).write_text(f"{len(of_part)}\n")
        with (imported / NAMES_FILE.format(part)).open("w") as file:
            for start in range(0, len(of_part), NAMES_IN_MEMORY):
                names = map(str, of_part[start : start + NAMES_IN_MEMORY].tolist())
                file.write(("," if start else "[") + '\n"' + '",\n"'.join(names) + '"')
            file.write("\n]\n")


class ImportedFolder:
    """An imported graph, to be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def starts(self) -> Rows:
        """First row of each partition, and the number of papers."""
        partitions = len(list(self.folder.glob(COUNT_FILE.format("*"))))
        counts = ((self.folder / COUNT_FILE.format(part)).read_text() for part in range(partitions))
        return np.cumsum([0, *map(int, counts)])

    def papers(self) -> Papers:
        """The corpus ids of all papers by row."""
        files = [self.folder / NAMES_FILE.format(part) for part in range(len(self.starts()) - 1)]
        lines = (path.read_bytes().translate(None, b'[]" \n') for path in files)
        return np.concatenate([np.fromstring(of_part, dtype=np.int64, sep=",") for of_part in lines])

    def edges(self, side: str) -> Iterator[tuple[Rows, Rows]]:
        """The edges of a side as rows of source and target, in blocks."""
        return ((lhs, rhs) for lhs, rhs, _ in self.weighted_edges(side))

    def weighted_edges(self, side: str) -> Iterator[ImportedBlock]:
        """The same with weights, in multiples of the mean of the edges to train on; None if the import kept none."""
        starts = self.starts()
        for lhs_part, rhs_part in product(range(len(starts) - 1), repeat=2):
            with h5py.File(edge_file(self.folder, side, lhs_part, rhs_part)) as file:
                lhs, rhs = file["lhs"], file["rhs"]
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
    """The file of the edges from one partition to another."""
    return imported / side / f"edges_{lhs_part}_{rhs_part}.h5"


def write_edges(
    imported: Path, side: str, starts: Rows, blocks: Iterable[ImportedBlock], *, weighted: bool = False
) -> None:
    """Write the edges of one side to a file for each pair of partitions."""
    (imported / side).mkdir(parents=True)
    parts = range(len(starts) - 1)
    kinds = {"lhs": np.int64, "rel": np.int64, "rhs": np.int64, **({WEIGHT: np.float32} if weighted else {})}
    with ExitStack() as opened:
        files = {
            pair: opened.enter_context(h5py.File(edge_file(imported, side, *pair), "w"))
            for pair in product(parts, repeat=2)
        }
        for file in files.values():
            file.attrs["format_version"] = FORMAT_VERSION
            for name, kind in kinds.items():
                file.create_dataset(name, shape=(0,), maxshape=(None,), dtype=kind, chunks=(VALUES_IN_CHUNK,))
        for lhs, rhs, weight in blocks:
            lhs_parts, rhs_parts = (np.searchsorted(starts, rows, side="right") - 1 for rows in (lhs, rhs))
            for (lhs_part, rhs_part), file in files.items():
                chosen = (lhs_parts == lhs_part) & (rhs_parts == rhs_part) if len(files) > 1 else slice(None)
                columns = {"lhs": lhs[chosen] - starts[lhs_part], "rhs": rhs[chosen] - starts[rhs_part]}
                if weight is not None:
                    columns[WEIGHT] = weight[chosen]
                before, after = len(file["lhs"]), len(file["lhs"]) + len(columns["lhs"])
                for name, values in columns.items() if after > before else ():
                    file[name].resize((after,))
                    file[name][before:] = values
                # The one relation has the number 0, as which all reads that is never written.
                file["rel"].resize((after,))


def split_edges(
    edges: Sequence[Path], settings: EdgeSettings, *, directed: bool, seed: int, memory_mb: int, threads: int,
    training: Path, holdout: Path,
) -> None:  # fmt: skip
    """Write files of tab-separated lines, sorted over all buckets. Raises `InputError` if either would be empty."""
    from pyarrow import csv

    from cocite.core.database import connect

    unit = of_edges.unit_of(edges, settings)
    lines = [0, 0]
    with ExitStack() as stack, connect(memory_mb=memory_mb, threads=threads, spill_to=training.parent) as db:
        whole = [stack.enter_context(atomic_path(path)) for path in (training, holdout)]
        options = csv.WriteOptions(include_header=False, delimiter="\t")
        writers = [stack.enter_context(csv.CSVWriter(path, LINE, write_options=options)) for path in whole]
        db.register("edges", scan_table(edges, "edges"))
        rows = db.sql("SELECT source, target, weight FROM edges ORDER BY source, target")
        for batch in rows.to_arrow_reader(LINES_IN_MEMORY):
            source, target, weight = (column.to_numpy() for column in batch.columns)
            divided = of_edges.divide(source, target, weight, settings, directed=directed, unit=unit, seed=seed)
            for number, chosen in enumerate(divided):
                writers[number].write_batch(pa.record_batch([chosen.source, chosen.target], schema=LINE))
                lines[number] += len(chosen)
        of_edges.check_sides(edges[0].parent, settings.holdout, *lines)
    report(f"{lines[0]:,} edges to train on, {lines[1]:,} held out")


def import_tsv(*, training: Path, holdout: Path, partitions: int, seed: int, output: Path) -> None:
    """Make the folder `output` with PyTorch-BigGraph's importer; the same edges and seed give the same bytes."""
    from torchbiggraph.config import EntitySchema, RelationSchema
    from torchbiggraph.converters.import_from_tsv import convert_input_data
    from torchbiggraph.edgelist import EdgeList
    from torchbiggraph.graph_storages import EDGE_STORAGES

    before = random.getstate()
    random.seed(derive_seed(seed, "import"))  # with which the importer shuffles the papers
    try:
        with atomic_path(output) as folder:
            convert_input_data(
                {ENTITY: EntitySchema(num_partitions=partitions)},
                [RelationSchema(name=RELATION, lhs=ENTITY, rhs=ENTITY)],
                str(folder / ENTITIES),
                [str(folder / TRAINING), str(folder / HOLDOUT)],
                [training, holdout],
                lhs_col=0,
                rhs_col=1,
            )
            for side, lhs, rhs in product((TRAINING, HOLDOUT), range(partitions), range(partitions)):
                # The importer makes no file without edges, and the training would miss it.
                if not edge_file(folder, side, lhs, rhs).exists():
                    EDGE_STORAGES.make_instance(str(folder / side)).save_edges(lhs, rhs, EdgeList.empty())
    finally:
        random.setstate(before)
