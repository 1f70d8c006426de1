"""What jobs ask for: by the size of what they read, and enough for what they then take."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.workflow.conftest import SMALL, Plan, Run, edited, planned

MIB = 2**20 / 1e6
"""Snakemake measures memory in MiB; rules ask for MB."""
MANIFEST = "results/corpus/manifest.json"
SCORED = {"kind": "scirepeval", "tasks": ["biomimicry", "relish"], "seeds": [1, 2, 3], "mode": "both"}


def write_sized(results: Path, megabytes: dict[str, float]) -> None:
    """Files of these sizes, which take no room."""
    for name, size in megabytes.items():
        path = results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(round(size * 1e6))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A plan where what jobs read is there, in sizes that are easy to reckon with."""
    run = Run(folder=tmp_path_factory.mktemp("sized"))
    results = run.folder / "results"
    graph = {"graph": "citation", "engine": "biggraph", "dimension": 500, "epochs": 4}
    embeddings = {
        "one": {**graph, "neighbours": {"k": 100}},
        "chunks": {**graph, "chunks": 3, "workers": 8, "neighbours": {"k": 100, "query_jobs": 10}},
        "partitions": {**graph, "partitions": 4},
        "tsv": {**graph, "import": "tsv"},
        "long": {**graph, "epochs": 100},
    }
    links, scored, untrained = "neighbours/steps/adjacency", "evaluation/scirepeval", "encoder/untrained_small/seed-0"
    tables = ("judgements", "labels", "reviewers", "clicks", "collections", "signatures")
    sizes = {f"{scored}/{table}.parquet": 0.0 for table in tables}
    sizes |= {"corpus/papers/0.parquet": 5, "corpus/papers/1.parquet": 100, "corpus/queries.parquet": 0.18}
    sizes |= {f"{links}/ids.npy": 80, f"{links}/others.npy": 800}
    sizes |= {f"{untrained}/model/model.safetensors": 400, f"{untrained}/embeddings/scirepeval.parquet": 100}
    for name in embeddings:
        imported = f"embeddings/{name}/imported"
        edges = (158, 170) if name == "tsv" else (30, 30)
        sizes |= {f"{imported}/training/edges_0_{part}.h5": size for part, size in enumerate(edges)}
        sizes |= {f"embeddings/{name}/graph_embeddings.parquet": 6000}
        (results / imported / "entities").mkdir(parents=True)
        for part, count in enumerate([1000] if name == "tsv" else [100_000] * 4):
            (results / imported / f"entities/entity_count_paper_{part}.txt").write_text(str(count))
    write_sized(results, sizes)
    counts = {"documents": 4000, "tasks": {"biomimicry": 1000, "relish": 3000}}
    (results / scored / "sizes.json").write_text(json.dumps(counts))
    config = edited(
        corpus={"source": "s2", "buckets": 2, "shards": {"citations": 2}},
        embeddings=embeddings,
        walks={"steps": {"graph": "citation", "k": 100, "restart": 0.1, "tolerance": 1e-5}},
        triplets={"specter": SMALL["triplets"]["specter"]},
        models={},
        encoders={**SMALL["encoders"], "large": SMALL["encoders"]["small"]},
        maps={},
        benchmarks={"scirepeval": {**SCORED, "folder": "release"}},
    )
    targets = [
        *(f"results/embeddings/{name}/settings.json" for name in embeddings),
        *(f"results/neighbours/{name}/neighbours/0.parquet" for name in ("one", "chunks", "steps")),
        "results/encoder/untrained_small/seed-0/papers/1.parquet",
        "results/encoder/untrained_large/seed-0/model",
        "results/evaluation/scirepeval/scores/small/untrained_small-0.parquet",
    ]
    (run.folder / "release").mkdir()
    return planned(run, config, *targets, options=["--resources", "mem_mb=9000"])


@pytest.mark.parametrize(
    ("rule", "wildcards", "memory", "time"),
    [
        # 400,000 papers of 500 numbers of four bytes are 800 MB; four passes over 60 MB of edges.
        ("train_graph_embedding", {"embedding": "one"}, 1000 + 3 * 800 + 15 * 60, 30 + 0.002 * 500 * 4 * 60),
        # A third of the edges at a time, by eight processes.
        ("train_graph_embedding", {"embedding": "chunks"}, 1000 + 3 * 800 + 15 * 20, 30 + 0.002 * 500 * 4 * 60 / 8),
        # Two parts of four at a time.
        ("train_graph_embedding", {"embedding": "partitions"}, 1000 + 3 * 400 + 15 * 60, 30 + 0.002 * 500 * 4 * 60),
        # What this importer fills its files up with are no edges.
        ("train_graph_embedding", {"embedding": "tsv"}, 1000 + 3 * 2 + 15 * 12, 30 + 0.002 * 500 * 4 * 12),
        # A day is the most.
        ("train_graph_embedding", {"embedding": "long"}, 1000 + 3 * 800 + 15 * 60, 1440),
        # 90,000 queries past 1.5 billion numbers are 1.35·10¹⁴ products: 4,500 s, of which four times are asked for.
        ("search_neighbours", {"embedding": "one"}, None, 20 + 300),
        ("search_neighbours", {"embedding": "chunks"}, None, 20 + 30),
        # 90,000 queries look at a million links each at most, 10⁷ a second; a desk of 36 bytes for 10 million papers.
        ("walk_neighbours", {"embedding": "steps"}, 700 + 880 + 2 * 360, 20 + 150 / 2),
        # Texts of 100 MB by an encoder of 400: 4,000 minutes, but for a day.
        ("embed_papers", {"model": "untrained_small"}, 1500 + 3 * 400, 1440),
        # A vocabulary reads its largest bucket, of 100 MB, up to the 60 it looks at at once; both buckets take time.
        ("build_encoder", {"encoder": "large"}, 800 + 25 * 60, 15 + 0.5 * 105),
        # A quarter of 100 MB is fitted for three seeds in two modes, three quarters are ranked once.
        ("score_model", {"system": "untrained_small"}, 700 + 12 * 25, 30 + 0.1 * (25 * 3 * 2 + 75)),
    ],
)
def test_a_job_asks_for_memory_and_time_by_what_it_reads(asked, rule, wildcards, memory, time):
    resources = asked.one(rule, **wildcards).resources
    assert int(resources["runtime"]) == pytest.approx(time, abs=1)
    assert memory is None or int(resources["mem_mb"]) == pytest.approx(memory, abs=1)


def test_a_download_asks_for_time_by_what_the_manifest_says_of_its_shards(run):
    shards = [{"name": str(number), "bytes": 600_000_000} for number in range(6)]
    listed = {name: {"shards": shards} for name in ("papers", "abstracts", "citations")}
    (run.folder / MANIFEST).parent.mkdir(parents=True)
    (run.folder / MANIFEST).write_text(json.dumps({"release": SMALL["release"], "datasets": listed}))
    corpus = {"source": "s2", "buckets": 2, "shards": {"citations": 2}}
    plan = planned(run, edited(corpus=corpus, benchmarks={}), "results/corpus/raw/citations/0")
    # Three shards for each of two jobs, at two seconds a MB: an hour beside the two for a server that is away.
    assert plan.one("download_shards").resources["runtime"] == "180"


def test_a_dry_run_leaves_open_what_depends_on_files_that_do_not_exist_yet(plan):
    memory = {job.rule: job.resources["mem_mb"] for job in plan.jobs}
    assert memory["generate_release"] == "304"  # 300 and one for each 200 of the 700 papers
    assert {memory[rule] for rule in ("import_edges", "train_graph_embedding", "score_model")} == {"<TBD>"}


def test_a_dry_run_names_the_jobs_that_would_be_granted_too_little(run, plan):
    told = planned(run, None, MANIFEST, options=["--resources", "mem_mb=100"]).said
    said = re.findall(r"^(\w+) requests [\d,]+ MB of memory, but .* get 100 MB", told, re.MULTILINE)
    assert sorted(said) == ["generate_release", "list_shards"]
    assert "MB of memory, but all jobs" not in plan.said


def jobs_of(folder: Path) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    """The jobs of the first run in a folder: rule, what was asked for, and what Snakemake measured."""
    log = min((folder / ".snakemake/log").glob("*.log")).read_text()
    blocks = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", log, re.MULTILINE)
    jobs = []
    for rule, block in blocks:
        said = dict(line.strip().split(": ", 1) for line in block.splitlines() if ": " in line)
        if "benchmark" in said:
            asked = dict(entry.split("=") for entry in said["resources"].split(", "))
            jobs.append((rule, asked, json.loads((folder / said["benchmark"]).read_text().splitlines()[-1])))
    return jobs


@pytest.mark.end_to_end
def test_no_job_of_a_run_takes_more_than_it_asked_for_and_two_have_room_side_by_side(finished):
    jobs = jobs_of(finished.folder)
    too_much = {
        rule: (measured, asked)
        for rule, asked, measured in jobs
        if isinstance(measured["max_pss"], float) and measured["max_pss"] * MIB > int(asked["mem_mb"])
    }
    assert not too_much
    assert all(measured["s"] < 60 * int(asked["runtime"]) for _, asked, measured in jobs)
    # A job may be over before it is measured; most are not.
    assert sum(isinstance(measured["max_pss"], float) for *_, measured in jobs) > len(jobs) / 2
    assert max(int(asked["mem_mb"]) for _, asked, _ in jobs) <= 2000
    assert {rule for rule, *_ in jobs} >= {"ingest", "train_graph_embedding", "train_encoder"}
