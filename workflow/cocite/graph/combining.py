"""Combinations of graphs: the edges of several undirected graphs, added up with a factor for each graph.

An edge that only some of the graphs have counts 0 in the others. The edges of all graphs are sharded by the smaller id,
so one bucket of each is all that one bucket of the sum takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow.compute as pc
from pydantic import PositiveFloat

from cocite.ground.database import connect
from cocite.ground.errors import InputError
from cocite.tables.files import scan_table, write_table

BATCH_ROWS = 100_000


@dataclass(frozen=True, kw_only=True)
class CombinationSettings:
    """What is added up."""

    of: dict[str, PositiveFloat] = field(default_factory=dict)
    """The factor of each graph, by its name."""
    normalise: Literal["none", "max"] = "none"
    """none takes the weights as they are, max divides those of a graph by the largest of them first."""


def combine_graphs(
    edges: Sequence[Path], settings: CombinationSettings, *, bucket: int, memory_mb: int, threads: int, output: Path
) -> int:
    """Add up one bucket of the edges of the graphs; return the number of edges.

    `edges` are folders of the table edges, each in the folder of its graph. Raises `InputError` if that of a graph is
    missing, or if its weights are to be divided by the largest and it has none.
    """
    folders = {folder.parent.name: folder for folder in edges}
    missing = sorted(set(settings.of) - set(folders))
    if missing:
        raise InputError(f"--settings: no folder of edges is given for the graph {missing[0]!r}.")
    scales = {name: factor / _largest_weight(folders[name], settings.normalise) for name, factor in settings.of.items()}
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        for number, name in enumerate(scales):
            db.register(f"graph_{number}", scan_table(folders[name] / f"{bucket}.parquet", "edges"))
        scaled = " UNION ALL ".join(
            f"SELECT source, target, weight * {scale!r}::DOUBLE AS weight, {number} AS number FROM graph_{number}"
            for number, scale in enumerate(scales.values())
        )
        # The last digits of a sum depend on the order of what is added.
        combined = db.sql(f"""
            SELECT source, target, sum(weight ORDER BY number)::FLOAT AS weight FROM ({scaled})
            GROUP BY source, target ORDER BY source, target
        """)
        return write_table(output, "edges", combined.to_arrow_reader(BATCH_ROWS))


def _largest_weight(edges: Path, normalise: str) -> float:
    if normalise == "none":
        return 1.0
    largest = pc.max(scan_table(edges, "edges").to_table(columns=["weight"])["weight"]).as_py()
    if largest is None:
        raise InputError(f"{edges}: the graph has no edges, so there is no largest weight to divide by.")
    return float(largest)
