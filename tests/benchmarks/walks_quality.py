"""Neighbours by walks on real corpora, beside those of the engines of graph embeddings (`engine_quality.py`).

    python -m tests.benchmarks walks_quality .bench hci

The graphs are those that the engine fastrp is given there, made by the pipeline for each seed. An engine never sees the
edges that are held out, so walks go along the others too: the rows *walks* and *fastrp* are those to compare. The rows
*walks, all edges* walk on the whole graph, as a sampler does. A band's quality is the share of neighbours of these
ranks that have an edge with the query in the whole graph, held-out edges included. *found* is the share of the held-out
edges of queries whose other end is among the first 100 or 1,000 neighbours that the query has no other edge with.
`make bench` leaves it out, because few have the corpora.
"""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from tests.benchmarks.engine_quality import BANDS, GRAPHS, KEPT, SEEDS, band, make
from tests.benchmarks.engines import CORES, mean_and_deviation
from tests.benchmarks.measuring import say

from cocite.config.embeddings import Links, WalkSettings
from cocite.core.tables.files import read_table, write_table
from cocite.embeddings.edges import held_out
from cocite.neighbours.adjacency import build_adjacency
from cocite.neighbours.walking import walk_neighbours

HOLDOUT = 0.05
"""As the embeddings hold out."""
MEMORY_MB = 2000
WAYS = ("fastrp", "walks", "walks, all edges")
WITHIN = (100, 1000)
FOUND = """
    WITH shown AS (
        SELECT source AS query, target AS neighbour FROM read_parquet($shown)
        UNION SELECT target, source FROM read_parquet($shown)
    ),
    hidden AS (
        (SELECT source AS query, target AS neighbour FROM read_parquet($edges)
        UNION SELECT target, source FROM read_parquet($edges)) EXCEPT FROM shown
    ),
    ranked AS (
        SELECT query, neighbour, row_number() OVER (PARTITION BY query ORDER BY rank) AS place
        FROM read_parquet($neighbours) ANTI JOIN shown USING (query, neighbour)
    )
    SELECT avg((coalesce(place, $within + 1) <= $within)::INT)
    FROM hidden LEFT JOIN ranked USING (query, neighbour) WHERE query IN (SELECT query FROM ranked)
"""


def main(
    folder: Path,
    *corpora: str,
    graphs: tuple[str, ...] = GRAPHS,
    score: str = "symmetric",
    seeds: tuple[int, ...] = SEEDS,
    cores: int = CORES,
    memory_mb: int = 8000,
) -> None:
    settings = WalkSettings(score=score, k=2000)
    for corpus in corpora:
        made = {seed: (folder / KEPT / corpus / f"seed-{seed}").resolve() for seed in seeds}
        for seed, of_seed in made.items():
            make(of_seed, corpus, seed, graphs, ["fastrp"], cores, memory_mb)
        names = [f"ranks {first}–{last}" for first, last in BANDS] + [f"found within {within:,}" for within in WITHIN]
        say(f"\n| {corpus} | | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
        for graph in graphs:
            for way in WAYS:
                rows = [quality(of_seed, graph, seed, way, settings, cores) for seed, of_seed in made.items()]
                told = [mean_and_deviation(list(values)) for values in zip(*rows, strict=True)]
                say(f"| {graph} | {way} | {' | '.join(told)} |")


def quality(folder: Path, graph: str, seed: int, way: str, settings: WalkSettings, threads: int) -> list[float]:
    """The share of true neighbours in each band; then, where edges are held out, of those that are found."""
    results, made = folder / "results", folder / "walks"
    edges = results / "graph" / graph / "edges"
    shown = read_table(edges, "edges").sort_by([("source", "ascending"), ("target", "ascending")])
    if way != "walks, all edges":
        ends = (shown[end].to_numpy() for end in ("source", "target"))
        shown = shown.filter(pc.invert(pa.array(held_out(*ends, share=HOLDOUT, of="pairs", seed=seed))))
    write_table(made / "edges.parquet", "edges", shown)
    if way == "fastrp":
        neighbours = str(results / "neighbours" / f"{graph}-fastrp" / "neighbours" / "*.parquet")
    else:
        neighbours = str(made / "neighbours.parquet")
        build_adjacency([made / "edges.parquet"], Links(), memory_mb=MEMORY_MB, output=made / "links")
        limits = {"memory_mb": MEMORY_MB, "threads": threads}
        files = {"state": made / "state", "output": Path(neighbours), "omissions": made / "omissions.parquet"}
        walk_neighbours(made / "links", results / "corpus" / "queries.parquet", settings, **limits, **files)
    whole = str(edges / "*.parquet")
    given = {"edges": whole, "shown": str(made / "edges.parquet"), "neighbours": neighbours}
    found = [duckdb.execute(FOUND, {**given, "within": within}).fetchone() for within in WITHIN]
    hidden = [float(share[0]) for share in found if share is not None and share[0] is not None]
    return [band(whole, neighbours, *ranks) for ranks in BANDS] + hidden
