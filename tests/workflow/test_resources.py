"""What jobs ask for: by the size of what they read, and enough for what they then take; what a run costs at any scale.

`cocite plan` is compared with dry runs of Snakemake, and with what a finished run took.
"""

import copy
import json
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.benchmarks.rehearse import peak_mb
from tests.published_sizes import experiments as experiments
from tests.tools.builders import invoke
from tests.workflow.conftest import ROOT, SMALL, Plan, Run, edited, planned

from cocite.core.errors import InputError
from cocite.core.progress import last_usage
from cocite.tools.run_cost import measured_jobs

MIB = 2**20 / 1e6
"""Snakemake measures memory in MiB; rules ask for MB."""
MANIFEST = "results/corpus/manifest.json"
TOGETHER = "together"
SCORED = {"kind": "scirepeval", "tasks": ["biomimicry", "relish"], "seeds": [1, 2, 3], "mode": "both"}


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
    for name, size in sizes.items():  # files that take no room
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        with (results / name).open("wb") as file:
            file.truncate(round(size * 1e6))
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
    seen = [each for each in jobs if isinstance(each[2]["max_pss"], float)]  # a job may be over before it is measured
    assert not [each for each in seen if each[2]["max_pss"] * MIB > int(each[1]["mem_mb"])]
    assert all(measured["s"] < 60 * int(asked["runtime"]) for _, asked, measured in jobs)
    assert len(seen) > len(jobs) / 2
    assert max(int(asked["mem_mb"]) for _, asked, _ in jobs) <= 2000
    assert {rule for rule, *_ in jobs} >= {"ingest", "train_graph_embedding", "train_encoder"}


def cost(*arguments: str) -> dict[str, dict]:
    """The rows that `cocite plan` prints, by stage."""
    return {row["stage"]: row for row in json.loads(invoke("plan", "--format", "json", *arguments).stdout)}


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_run_like_a_finished_one_costs_what_that_took(finished, plan, run, monkeypatch):
    monkeypatch.chdir(run.folder)
    like = ["--configfile", "config.yaml", "--like", str(finished.folder / "results")]
    rows, one, many = (cost(*like, "--cores", cores) for cores in ("2", "1", "64"))
    assert rows[TOGETHER]["jobs"] == len(plan.jobs)
    took = Counter[str]()
    for log in (finished.folder / "logs").rglob("*.log"):
        if usage := last_usage(log):
            took[log.relative_to(finished.folder / "logs").parts[0]] += usage.cpu_seconds / 3600
    for stage, hours in took.items():
        assert rows[stage]["processor_hours"] == pytest.approx(hours, rel=0.3, abs=0.002)
    assert one[TOGETHER]["wall_hours"] >= rows[TOGETHER]["processor_hours"]
    assert one[TOGETHER]["wall_hours"] > rows[TOGETHER]["wall_hours"] >= many[TOGETHER]["wall_hours"] > 0
    made = sum(file.stat().st_size for file in (finished.folder / "results").rglob("*") if file.is_file())
    assert rows[TOGETHER]["disk_gb"] == pytest.approx(made / 1e9, rel=0.3)
    assert rows[TOGETHER]["disk_at_peak_gb"] >= rows[TOGETHER]["disk_gb"]
    assert not (run.folder / "results").exists()  # it writes nothing


@pytest.mark.end_to_end
def test_jobs_request_the_memory_and_time_that_a_plan_says(finished, monkeypatch):
    monkeypatch.chdir(finished.folder)
    asked = {each.outputs[0]: each.resources for each in planned(finished, options=["--forceall"]).jobs}
    jobs = list(measured_jobs(Path("config.yaml").absolute(), finished.folder))
    compared = 0
    for job in jobs:
        resources = asked[next(iter(job.makes))]
        if job.rule.startswith("score_") or job.memory_mb is None:
            continue  # a plan does not read what a dry run finds in a file
        if resources["mem_mb"].isdigit() and resources["runtime"].isdigit():  # what it reads was not deleted
            compared += 1
            assert math.ceil(job.memory_mb) == pytest.approx(int(resources["mem_mb"]), abs=1), job.key
            assert math.ceil(job.minutes) == pytest.approx(int(resources["runtime"]), abs=1), job.key
    assert compared > 0.5 * len(jobs)


@pytest.mark.end_to_end
def test_only_what_is_left_of_a_run_is_counted(finished, tmp_path, monkeypatch):
    run = finished.copy(tmp_path / "copy")
    monkeypatch.chdir(run.folder)
    assert "nothing to do" in invoke("plan").stdout
    shutil.rmtree(run.folder / "results/report")
    assert cost()[TOGETHER]["jobs"] == len(planned(run).jobs)


def test_what_is_wrong_with_a_plan_is_one_sentence(run, monkeypatch):
    monkeypatch.chdir(run.folder)
    for arguments in (["--profile", "none"], ["--like", "none"], ["--configfile", "none.yaml"]):
        with pytest.raises(InputError, match="none"):
            invoke("plan", "--configfile", "config.yaml", *arguments)


OTHERS = ("losses", "graph-embeddings", "ablations", "aspects", "objectives")


@pytest.mark.parametrize("name", ["cocite", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_an_experiment_at_paper_scale_is_planned_with_a_training_for_each_model_and_seed(run, experiments, name):
    config = copy.deepcopy(experiments(name))
    config["corpus"] |= {"buckets": 2}
    if config["corpus"]["source"] == "s2":
        config["corpus"]["shards"] = {"papers": 1, "abstracts": 1, "citations": 2}
    jobs = planned(run, config)
    assert len(jobs.of("train_encoder")) == sum(len(model["seeds"]) for model in config["models"].values())
    assert len(jobs.of("train_graph_embedding")) == len(config["embeddings"])


@pytest.mark.long
def test_the_published_setting_has_at_most_1200_jobs(run, experiments):
    assert len(planned(run, experiments("cocite")).jobs) <= 1200


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.timeout(3600)
def test_a_thousandth_of_a_release_goes_through_all_stages_within_the_memory_that_jobs_request(tmp_path):
    command = [sys.executable, "-m", "tests.benchmarks", "rehearse", str(tmp_path), "--scale", "0.001"]
    subprocess.run(command, cwd=ROOT, check=True)
    run = tmp_path / "rehearsal-0.001"
    jobs = [json.loads(line) for path in (run / "benchmarks").rglob("*.jsonl") for line in path.open()]
    rules = {job["rule_name"] for job in jobs}
    assert {"download_shards", "count_pairs", "train_graph_embedding", "rank_candidates"} <= rules
    assert [job["rule_name"] for job in jobs if peak_mb(job) > job["resources"]["mem_mb"]] == []
    counts = json.loads((run / "release/release.json").read_text())["counts"]
    with duckdb.connect(run / "results/whole/cocite.duckdb", read_only=True) as database:
        for table in ("papers", "citations"):
            assert database.sql(f"SELECT count(*) FROM {table}").fetchall() == [(counts[table],)]
    assert (run / "results/whole/report/index.html").is_file()
