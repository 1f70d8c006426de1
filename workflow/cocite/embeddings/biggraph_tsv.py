"""The published way into PyTorch-BigGraph: two files of tab-separated lines, and its own importer.

The lines are sorted over all buckets, since the order of edges affects training. The importer keeps everything in
Python's memory and takes about 50 µs per edge; it is here for comparison (see `imported.py` for the usual way).
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from duckdb import DuckDBPyConnection
from torchbiggraph.config import EntitySchema, RelationSchema
from torchbiggraph.converters.import_from_tsv import convert_input_data
from torchbiggraph.edgelist import EdgeList
from torchbiggraph.graph_storages import EDGE_STORAGES

from cocite.config.engine import EdgeSettings
from cocite.core.atomic import atomic_path
from cocite.core.database import connect
from cocite.core.progress import report
from cocite.core.randomness import derive_seed
from cocite.core.tables.files import scan_table
from cocite.embeddings.edges import HOLDOUT, TRAINING, EdgeBlock, check_sides, divide, unit_of
from cocite.embeddings.imported import ENTITIES, ENTITY, RELATION, edge_file

BATCH_ROWS = 100_000
LINE = pa.schema([("source", pa.int64()), ("target", pa.int64())])


def import_as_published(
    edges: Sequence[Path], settings: EdgeSettings, *, directed: bool, seed: int, output: Path, **cost: Any
) -> None:
    """Make the folder `output` by way of two files of lines next to it; `cost` is memory_mb and threads."""
    lines: dict[str, Any] = {side: output.with_name(f"{side}.tsv") for side in (TRAINING, HOLDOUT)}
    try:
        split_edges(edges, settings, directed=directed, seed=seed, **cost, **lines)
        import_tsv(**lines, partitions=settings.partitions, seed=seed, output=output)
    finally:
        for path in lines.values():
            path.unlink(missing_ok=True)


def split_edges(
    edges: Sequence[Path], settings: EdgeSettings, *, directed: bool, seed: int, memory_mb: int, threads: int,
    training: Path, holdout: Path,
) -> None:  # fmt: skip
    """Write the two files. Raises `InputError` if either would be empty."""
    unit = unit_of(edges, settings.weight_unit, settings.max_repetitions) if settings.weights else 1.0
    lines = np.zeros(2, dtype=np.int64)
    with ExitStack() as stack, connect(memory_mb=memory_mb, threads=threads, spill_to=training.parent) as db:
        whole = [stack.enter_context(atomic_path(path)) for path in (training, holdout)]
        options = csv.WriteOptions(include_header=False, delimiter="\t")
        writers = [stack.enter_context(csv.CSVWriter(path, LINE, write_options=options)) for path in whole]
        for block in _sorted(edges, db):
            divided = divide(*block, settings, directed=directed, unit=unit, seed=seed)
            for number, chosen in enumerate(divided):
                writers[number].write_batch(pa.record_batch([chosen.source, chosen.target], schema=LINE))
                lines[number] += len(chosen)
        check_sides(edges[0].parent, settings.holdout, *lines.tolist())
    report(f"{lines[0]:,} edges to train on, {lines[1]:,} held out")


def import_tsv(*, training: Path, holdout: Path, partitions: int, seed: int, output: Path) -> None:
    """Make the folder `output` with PyTorch-BigGraph's importer; the same edges and seed give the same bytes."""
    with atomic_path(output) as folder, _seeded_shuffle(derive_seed(seed, "import")):
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


def _sorted(edges: Sequence[Path], db: DuckDBPyConnection) -> Iterator[EdgeBlock]:
    """The edges of all buckets in one order."""
    db.register("edges", scan_table(edges, "edges"))
    rows = db.sql("SELECT source, target, weight FROM edges ORDER BY source, target")
    for batch in rows.to_arrow_reader(BATCH_ROWS):
        source, target, weight = (batch.column(name).to_numpy() for name in ("source", "target", "weight"))
        yield source, target, weight


@contextmanager
def _seeded_shuffle(seed: int) -> Iterator[None]:
    """Seed Python's global generator, with which the importer shuffles the papers, and restore it."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
