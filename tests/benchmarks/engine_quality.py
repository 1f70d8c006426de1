"""Link prediction and neighbours of the engines on real corpora, by the steps of the pipeline, over several seeds.

    python -m tests.benchmarks engine_quality .bench hci synergy
    python -m tests.benchmarks engine_quality .bench hci --seeds 1 --graphs citation --engines biggraph   # a part of it

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
import yaml
from tests.benchmarks.engines import CORES, mean_and_deviation
from tests.benchmarks.measuring import say

from cocite.core.tables.files import read_table

ROOT = Path(__file__).parents[2]
KEPT = "engine_quality"
"""The folder of results."""
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
GRAPHS, SEEDS = ("citation", "cocitation"), (1, 2, 3)
METRICS = (("mrr", False), ("auc", False), ("mrr", True), ("auc", True))
BANDS = ((1, 5), (6, 10), (21, 25), (96, 100), (996, 1000))
LINKED = """
    WITH links AS (
        SELECT source AS query, target AS neighbour FROM read_parquet($edges)
        UNION SELECT target, source FROM read_parquet($edges)
    )
    SELECT avg(((query, neighbour) IN (SELECT (query, neighbour) FROM links))::INT) FROM read_parquet($neighbours)
    WHERE rank BETWEEN $first AND $last
"""


def main(
    folder: Path,
    *corpora: str,
    graphs: tuple[str, ...] = GRAPHS,
    engines: tuple[str, ...] = ("biggraph", "torch", "fastrp"),
    seeds: tuple[int, ...] = SEEDS,
    cores: int = CORES,
    memory_mb: int = 8000,
) -> None:
    for corpus in corpora:
        made = [(folder / KEPT / corpus / f"seed-{seed}").resolve() for seed in seeds]
        for seed, of_seed in zip(seeds, made, strict=True):
            make(of_seed, corpus, seed, graphs, engines, cores, memory_mb)
        for graph in graphs:
            tell(made, graph, corpus, engines)


def make(
    folder: Path, corpus: str, seed: int, graphs: Sequence[str], engines: Sequence[str], cores: int, memory_mb: int
) -> None:
    """Run the pipeline with this seed to the neighbours of the chosen graphs and engines."""
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


def tell(made: Sequence[Path], graph: str, corpus: str, engines: Sequence[str]) -> None:
    names = [f"{metric.upper()}, {'filtered' if filtered else 'raw'}" for metric, filtered in METRICS]
    names += [f"ranks {first}–{last}" for first, last in BANDS]
    say(f"\n| {corpus}, {graph} | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for engine in engines:
        rows = [quality(of_seed / "results", graph, engine) for of_seed in made]
        told = [mean_and_deviation(list(values)) for values in zip(*rows, strict=True)]
        say(f"| {engine} | {' | '.join(told)} |")


def quality(results: Path, graph: str, engine: str) -> list[float]:
    """The metrics after the last epoch, then the share of true neighbours in each band."""
    scores = read_table(results / "embeddings" / f"{graph}-{engine}" / "graph_scores.parquet", "graph_scores")
    rows = {(row["epoch"], row["metric"], row["filtered"]): row["value"] for row in scores.to_pylist()}
    last = max(epoch for epoch, *_ in rows)
    edges, neighbours = (
        str(results / part / "*.parquet")
        for part in (f"graph/{graph}/edges", f"neighbours/{graph}-{engine}/neighbours")
    )
    return [rows[last, *metric] for metric in METRICS] + [band(edges, neighbours, *ranks) for ranks in BANDS]


def band(edges: str, neighbours: str, first: int, last: int) -> float:
    """The share of neighbours of these ranks that have an edge with their query, in either direction."""
    asked = {"edges": edges, "neighbours": neighbours, "first": first, "last": last}
    found = duckdb.execute(LINKED, asked).fetchone()
    if found is None or found[0] is None:
        sys.exit(f"{neighbours} has no ranks {first} to {last}.")
    return float(found[0])
