"""Neighbours on real corpora, by the steps of the pipeline over several seeds: those of the engines, and by walks.

    python -m tests.benchmarks engine_quality .bench hci synergy
    python -m tests.benchmarks engine_quality .bench hci --seeds 1 --graphs citation --engines biggraph   # a part of it
    python -m tests.benchmarks walks_quality .bench hci

The settings are those of experiments/hci-engines.yaml and synergy-engines.yaml; COCITE_SHARED names the folder of the
corpora. Results of finished parts are kept in .bench/engine_quality, and a table is made of all parts that are asked
for. A band's quality is the share of neighbours of these ranks that have an edge with the query in the whole graph,
held-out edges included. It takes hours and corpora that few have, so `make bench` leaves it out.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from tests.benchmarks.engines import CORES
from tests.benchmarks.measuring import mean_and_deviation, say_header, say_row

from cocite.config.embeddings import Links, WalkSettings
from cocite.core.tables.files import read_table, write_table
from cocite.embeddings.edges import held_out
from cocite.neighbours.adjacency import build_adjacency
from cocite.neighbours.walking import walk_neighbours
from cocite.tools.documentation import ROOT

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
GRAPHS, SEEDS = ("citation", "cocitation"), (1, 2, 3)
METRICS = (("mrr", False), ("auc", False), ("mrr", True), ("auc", True))
BANDS = ((1, 5), (6, 10), (21, 25), (96, 100), (996, 1000))
RANKS = [f"ranks {first}–{last}" for first, last in BANDS]
LINKED = """
    WITH links AS (
        SELECT source AS query, target AS neighbour FROM read_parquet($edges)
        UNION SELECT target, source FROM read_parquet($edges)
    )
    SELECT avg(((query, neighbour) IN (SELECT (query, neighbour) FROM links))::INT) FROM read_parquet($neighbours)
    WHERE rank BETWEEN $first AND $last
"""
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


def engine_quality(
    kept: Path,
    *corpora: str,
    graphs: tuple[str, ...] = GRAPHS,
    engines: tuple[str, ...] = ("biggraph", "torch", "fastrp"),
    seeds: tuple[int, ...] = SEEDS,
    cores: int = CORES,
    memory_mb: int = 8000,
) -> None:
    """Link prediction and neighbours of the engines on real corpora, over several seeds."""
    for corpus in corpora:
        made = [_made(kept, corpus, seed, graphs, engines, cores, memory_mb) for seed in seeds]
        for graph in graphs:
            names = [f"{metric.upper()}, {'filtered' if filtered else 'raw'}" for metric, filtered in METRICS]
            say_header(f"{corpus}, {graph}", *names, *RANKS)
            for engine in engines:
                say_row(engine, *_over_seeds([_quality(of_seed / "results", graph, engine) for of_seed in made]))


def walks_quality(
    kept: Path,
    *corpora: str,
    graphs: tuple[str, ...] = GRAPHS,
    score: str = "symmetric",
    seeds: tuple[int, ...] = SEEDS,
    cores: int = CORES,
    memory_mb: int = 8000,
) -> None:
    """Neighbours by walks on real corpora, beside those of the engine fastrp on the same graphs.

    An engine never sees the edges that are held out, so walks go along the others too: the rows *walks* and *fastrp*
    are those to compare. The rows *walks, all edges* walk on the whole graph, as a sampler does. *found* is the share
    of the held-out edges of queries whose other end is among the first 100 or 1,000 neighbours that the query has no
    other edge with.
    """
    settings = WalkSettings(score=score, k=2000)
    for corpus in corpora:
        made = {seed: _made(kept, corpus, seed, graphs, ["fastrp"], cores, memory_mb) for seed in seeds}
        say_header(corpus, "", *RANKS, *(f"found within {within:,}" for within in WITHIN))
        for graph in graphs:
            for way in WAYS:
                rows = [_walked(of_seed, graph, seed, way, settings, cores) for seed, of_seed in made.items()]
                say_row(graph, way, *_over_seeds(rows))


def _made(
    kept: Path, corpus: str, seed: int, graphs: Sequence[str], engines: Sequence[str], cores: int, memory_mb: int
) -> Path:
    """The folder in which the pipeline has run with this seed to the neighbours of the chosen graphs and engines."""
    folder = (kept / "engine_quality" / corpus / f"seed-{seed}").resolve()
    config = yaml.safe_load((ROOT / f"experiments/{corpus}-engines.yaml").read_text())
    names = {f"{graph}-{engine}" for graph in graphs for engine in engines}
    config["embeddings"] = {name: entry for name, entry in config["embeddings"].items() if name in names}
    config["graphs"] = {graph: config["graphs"][graph] for graph in graphs}
    config |= {"run_seed": seed, "pathvars": {part: str(folder / part) for part in ("results", "logs", "benchmarks")}}
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "config.yaml"
    written.write_text(yaml.safe_dump(config))
    options = ("--cores", str(cores), "--resources", f"mem_mb={memory_mb}", "--rerun-incomplete")
    command = [SNAKEMAKE, "neighbours", *options, "--configfile", written, "--replace-workflow-config", "--quiet"]
    subprocess.run(list(map(str, command)), cwd=ROOT, check=True)
    return folder


def _over_seeds(rows: Sequence[Sequence[float]]) -> list[str]:
    return [mean_and_deviation(values) for values in zip(*rows, strict=True)]


def _quality(results: Path, graph: str, engine: str) -> list[float]:
    """The metrics after the last epoch, then the share of true neighbours in each band."""
    scores = read_table(results / "embeddings" / f"{graph}-{engine}" / "graph_scores.parquet", "graph_scores")
    rows = {(row["epoch"], row["metric"], row["filtered"]): row["value"] for row in scores.to_pylist()}
    last = max(epoch for epoch, *_ in rows)
    edges, neighbours = (
        str(results / part / "*.parquet")
        for part in (f"graph/{graph}/edges", f"neighbours/{graph}-{engine}/neighbours")
    )
    return [rows[last, *metric] for metric in METRICS] + [_band(edges, neighbours, *ranks) for ranks in BANDS]


def _walked(folder: Path, graph: str, seed: int, way: str, settings: WalkSettings, threads: int) -> list[float]:
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
    return [_band(whole, neighbours, *ranks) for ranks in BANDS] + hidden


def _band(edges: str, neighbours: str, first: int, last: int) -> float:
    """The share of neighbours of these ranks that have an edge with their query, in either direction."""
    asked = {"edges": edges, "neighbours": neighbours, "first": first, "last": last}
    found = duckdb.execute(LINKED, asked).fetchone()
    if found is None or found[0] is None:
        sys.exit(f"{neighbours} has no ranks {first} to {last}.")
    return float(found[0])
