"""How many citations of a directed citation graph have which intent: what the aspects of links can be made of."""

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from cocite.config.aspects import INTENT_CLASSES, SEVERAL, WITHOUT
from cocite.core.database import connect
from cocite.core.options import MemoryMb, Output, Threads
from cocite.core.tables.files import scan_table, write_table

COUNTED = f"""
    SELECT CASE len(intents) WHEN 0 THEN '{WITHOUT}' WHEN 1 THEN intents[1] ELSE '{SEVERAL}' END, count(*)
    FROM edges
    GROUP BY ALL
"""


def count_intents(
    edges: Annotated[Path, typer.Argument(help="Folder of the edges of a directed citation graph.")],
    *,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Count the citations of a directed graph by their intent."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as database:
        database.register("edges", scan_table(edges, "edges"))
        found = dict(database.sql(COUNTED).fetchall())
    counts = [found.get(intent, 0) for intent in INTENT_CLASSES]
    write_table(output, "intent_counts", pa.table({"intent": INTENT_CLASSES, "citations": counts}))
