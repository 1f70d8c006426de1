"""Edges: what a graph embedding is trained on, in one shape for every signal.

An undirected pair has one row, source < target. Papers that are kept out have no edge. Weights are positive: pairs
without a tie by the chosen measure are left out and counted. Directed edges have the intents of their citations. A
combination of undirected graphs adds up their edges, bucket by bucket, with a factor for each graph.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from cocite.config.graphs import INTENT_CLASSES, SEVERAL, WITHOUT, Combination
from cocite.config.settings import GivenAsJson
from cocite.core.database import connect
from cocite.core.errors import InputError
from cocite.core.options import Bucket, Buckets, MemoryMb, Omissions, Output, Queries, Threads
from cocite.core.tables.files import scan_table, write_omissions, write_table
from cocite.core.tables.papers import read_kept_out

BATCH_ROWS = 100_000
RARE = "pairs that occur less often than min_count"
NOT_POSITIVE = "pairs whose strength is not above 0"


def edges_of_pairs(
    pairs: Annotated[Path, typer.Argument(help="One bucket of pairs.")],
    *,
    table: Annotated[Literal["cocitations", "couplings"], typer.Option(help="Name of the table of pairs.")],
    min_count: Annotated[int, typer.Option(help="Smallest count that makes an edge.")],
    output: Output,
    omissions: Omissions,
) -> None:
    """Convert one bucket of `cocitations` or `couplings` into undirected edges, and count the omitted pairs.

    The weight is the strength, or the count if there is no strength. Pointwise mutual information of 0 or less makes no
    edge, so the weights are positive PMI. Raises `InputError` for a strength that is not finite.
    """
    left_out = {RARE: 0, NOT_POSITIVE: 0}

    def weighed() -> Iterator[pa.RecordBatch]:
        for batch in scan_table(pairs, table).to_batches():
            frequent = batch.filter(pc.greater_equal(batch["count"], min_count))
            weight = frequent["strength" if "strength" in frequent.schema.names else "count"].to_numpy()
            if not np.isfinite(weight := weight.astype(np.float32)).all():
                raise InputError(f"{pairs}: contains a strength that is not a finite number; make the table again.")
            positive = weight > 0
            left_out[RARE] += len(batch) - len(frequent)
            left_out[NOT_POSITIVE] += int((~positive).sum())
            kept = frequent.filter(pa.array(positive))
            yield pa.record_batch({"source": kept["paper"], "target": kept["other"], "weight": weight[positive]})

    write_table(output, "edges", weighed())
    write_omissions(omissions, left_out)


def edges_of_citations(
    citations: Annotated[Path, typer.Argument(help="One bucket of the table citations.")],
    by_cited: Annotated[
        Path | None, typer.Argument(help="The same bucket of citations_by_cited, for undirected edges.")
    ] = None,
    *,
    queries: Queries,
    bucket: Bucket,
    buckets: Buckets,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Turn citations into the edges of one bucket of sources, each of weight 1 unless citations have weights.

    Directed edges lead from the citing to the cited paper, are those of the bucket `citations`, and have its intents.
    With the bucket `by_cited` of `citations_by_cited` as well they are undirected: two papers that cite each other have
    one edge, with the larger weight of the two.
    """
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("citations", scan_table(citations, "citations"))
        db.register("kept_out", read_kept_out(queries).select(["corpusid"]))
        weight = "weight" if "weight" in db.table("citations").columns else "1::FLOAT"
        ends = f"SELECT citing AS source, cited AS target, intents, {weight} AS weight FROM citations"
        if by_cited:
            db.register("by_cited", scan_table(by_cited, "citations_by_cited"))
            both = f"SELECT citing, cited, {weight} AS weight FROM"
            ends = f"""
                SELECT least(citing, cited) AS source, greatest(citing, cited) AS target, max(weight) AS weight
                FROM ({both} citations UNION ALL {both} by_cited) GROUP BY ALL
            """
        edges = db.sql(f"""
            SELECT * FROM ({ends})
            WHERE source % {buckets} = {bucket} AND source NOT IN (FROM kept_out) AND target NOT IN (FROM kept_out)
            ORDER BY source, target
        """)
        write_table(output, "edges", edges.to_arrow_reader(BATCH_ROWS))


def combine_graphs(
    edges: Annotated[list[Path], typer.Argument(help="Folder of the edges of each graph, in the folder of its name.")],
    settings: GivenAsJson[Combination],
    *,
    bucket: Bucket,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Add up one bucket of the edges of the graphs.

    Raises `InputError` if the folder of a graph is missing, or if its weights are to be divided by the largest and it
    has none.
    """
    folders = {folder.parent.name: folder for folder in edges}
    if missing := sorted(set(settings.of) - set(folders)):
        raise InputError(f"--settings: no folder of edges is given for the graph {missing[0]!r}.")
    scales = dict(settings.of)
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        for name, factor in settings.of.items() if settings.rescale == "max" else ():
            db.register("edges", scan_table(folders[name], "edges"))
            ((largest,),) = db.execute("SELECT max(weight) FROM edges").fetchall()
            if largest is None:
                raise InputError(f"{folders[name]}: the graph has no edges, so there is no largest weight.")
            scales[name] = factor / largest
        scaled = []
        for number, (name, scale) in enumerate(scales.items()):
            db.register(f"graph_{number}", scan_table(folders[name] / f"{bucket}.parquet", "edges"))
            weight = f"weight * {scale!r}::DOUBLE AS weight"
            scaled.append(f"SELECT source, target, {weight}, {number} AS number FROM graph_{number}")
        # The last digits of a sum depend on the order of what is added.
        combined = db.sql(f"""
            SELECT source, target, sum(weight ORDER BY number)::FLOAT AS weight FROM ({" UNION ALL ".join(scaled)})
            GROUP BY source, target ORDER BY source, target
        """)
        write_table(output, "edges", combined.to_arrow_reader(BATCH_ROWS))


def count_intents(
    edges: Annotated[Path, typer.Argument(help="Folder of the edges of a directed citation graph.")],
    *,
    memory_mb: MemoryMb,
    threads: Threads,
    output: Output,
) -> None:
    """Count the citations of a directed graph by their intent."""
    with connect(memory_mb=memory_mb, threads=threads, spill_to=output.parent) as db:
        db.register("edges", scan_table(edges, "edges"))
        rows = db.sql(f"""
            SELECT CASE len(intents) WHEN 0 THEN '{WITHOUT}' WHEN 1 THEN intents[1] ELSE '{SEVERAL}' END, count(*)
            FROM edges GROUP BY ALL
        """)
        found = dict(rows.fetchall())
    counts = [found.get(intent, 0) for intent in INTENT_CLASSES]
    write_table(output, "intent_counts", pa.table({"intent": INTENT_CLASSES, "citations": counts}))
