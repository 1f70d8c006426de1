"""What jobs ask for: by the size of what they read, more with each attempt, and enough for what they then take."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.resources import Resource
from tests.workflow.conftest import ROOT

from cocite.config.benchmarks import TASKS
from cocite.config.corpus import Corpus
from cocite.config.embeddings import AnyEngine
from cocite.config.settings import entry_of

MIB = 2**20 / 1e6
"""Snakemake measures memory in MiB; rules ask for MB."""
SIZES = runpy.run_path(str(ROOT / "rules/common/resources.smk"))
CORPUS = SimpleNamespace(benchmark="holdout", embedding="dot", dataset="citations", suite="fos")


class Inputs(dict[str, Any]):
    """The input of a job, by name and as attributes, as Snakemake gives it to functions."""

    def __iter__(self):
        return (file for files in self.values() for file in ([files] if isinstance(files, str) else files))

    def __getattr__(self, name):
        return self[name]


def functions(stage: str, config: dict[str, Any], **names: Any) -> dict[str, Any]:
    """The functions of a stage, as they are with a configuration."""
    imported = {"entry_of": entry_of, "AnyEngine": AnyEngine, "Corpus": Corpus}
    return runpy.run_path(str(ROOT / f"rules/common/{stage}.smk"), {**SIZES, **imported, "config": config, **names})


def file_of(path: Path, megabytes: float) -> str:
    """A file of this size that takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(round(megabytes * 1e6))
    return str(path)


def test_memory_and_time_follow_the_size_of_the_named_inputs(tmp_path):
    inputs = Inputs(papers=file_of(tmp_path / "papers", 20), queries=file_of(tmp_path / "queries", 5))
    assert SIZES["megabytes"](500, papers=3)(None, inputs, 1) == 560
    assert SIZES["minutes"](10, papers=0.02, queries=0.1)(None, inputs, 1) == 11  # 10.9


def test_every_input_counts_where_a_rule_names_none(tmp_path):
    inputs = Inputs(papers=[file_of(tmp_path / name, 2) for name in "ab"], queries=file_of(tmp_path / "c", 1))
    assert SIZES["megabytes"](100, every=10)(None, inputs, 1) == 150


def test_a_second_attempt_asks_for_twice_as_much(tmp_path):
    inputs = Inputs(papers=file_of(tmp_path / "papers", 1.3))
    asked = SIZES["megabytes"](100, papers=1)
    assert [asked(None, inputs, attempt) for attempt in (1, 2, 3)] == [102, 204, 306]


def test_the_files_in_a_folder_count_and_the_folder_itself_does_not(tmp_path):
    for number in range(3):
        file_of(tmp_path / "shards" / str(number) / "shard.gz", 1.5)
    file_of(tmp_path / "one", 0.5)
    assert SIZES["size_mb"](str(tmp_path / "shards")) == 4.5
    assert SIZES["size_mb"]([str(tmp_path / "shards"), str(tmp_path / "one")]) == 5
    assert SIZES["size_mb"]([]) == 0


def test_a_dry_run_leaves_open_what_depends_on_files_that_do_not_exist_yet(plan):
    asked = re.findall(r"^rule (\w+):\n(?:    .*\n)*?    resources: (.*)$", plan, re.MULTILINE)
    of_rule = {rule: dict(entry.split("=") for entry in resources.split(", ")) for rule, resources in asked}
    assert of_rule["generate_release"]["mem_mb"] == "304"  # 300 and one for each 200 of the 700 papers
    for rule in ("import_edges", "train_graph_embedding", "score_model"):
        assert of_rule[rule]["mem_mb"] == "<TBD>"


def imported_graph(folder: Path, papers: list[int], edges: list[float]) -> Inputs:
    """What the training of a graph embedding reads: papers and MB of edges of each part."""
    (folder / "entities").mkdir(parents=True)
    for part, count in enumerate(papers):
        (folder / f"entities/entity_count_paper_{part}.txt").write_text(str(count))
    for part, size in enumerate(edges):
        file_of(folder / f"training/edges_0_{part}.h5", size)
    return Inputs(imported=str(folder))


def embedding(**entry: Any) -> dict[str, Any]:
    """The configuration of one embedding."""
    usual = {"engine": "biggraph", "dimension": 500, "partitions": 1, "chunks": 1, "epochs": 4, "import": "arrow"}
    return {"embeddings": {"dot": {**usual, **entry}}}


@pytest.mark.parametrize(
    ("entry", "memory"),
    [
        ({}, 1000 + 3 * 800 + 15 * 60),  # 400,000 papers of 500 numbers of four bytes are 800 MB
        ({"chunks": 3}, 1000 + 3 * 800 + 15 * 20),  # a third of the edges at a time
        ({"partitions": 4}, 1000 + 3 * 400 + 15 * 60),  # two parts of four at a time
    ],
)
def test_a_graph_training_asks_for_its_vectors_and_the_edges_of_a_chunk(tmp_path, entry, memory):
    inputs = imported_graph(tmp_path / "graph", [100_000] * 4, [30, 30])
    asked = functions("embeddings", embedding(**entry))["graph_training_memory"]
    assert asked(CORPUS, inputs, 1) == pytest.approx(memory, abs=1)
    assert asked(CORPUS, inputs, 2) == pytest.approx(2 * memory, abs=2)


def test_what_an_importer_fills_its_files_up_with_is_not_taken_for_edges(tmp_path):
    inputs = imported_graph(tmp_path / "graph", [1000], [158, 170])
    asked = functions("embeddings", embedding(**{"import": "tsv"}))["graph_training_memory"]
    assert asked(CORPUS, inputs, 1) == pytest.approx(1000 + 3 * 2 + 15 * 12, abs=1)


def test_a_graph_training_asks_for_time_by_passes_over_its_edges_but_for_a_day_at_most(tmp_path):
    inputs = imported_graph(tmp_path / "graph", [1000], [60])

    def asked(attempt, **entry):
        return functions("embeddings", embedding(**entry))["graph_training_minutes"](CORPUS, inputs, attempt)

    assert asked(1) == pytest.approx(30 + 0.002 * 500 * 4 * 60, abs=1)
    assert asked(1, workers=8) == pytest.approx(30 + 0.002 * 500 * 4 * 60 / 8, abs=1)
    assert [asked(attempt, epochs=100) for attempt in (1, 2)] == [1440, 2880]


def test_a_download_asks_for_time_by_what_the_manifest_says_of_its_shards(tmp_path):
    shards = [{"name": str(number), "bytes": 600_000_000} for number in range(6)]
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"datasets": {"citations": {"shards": shards}}}))
    config = {"corpus": {"source": "s2", "shards": {"citations": 2}, "keep_raw": False}}
    names = {"SOURCE": entry_of(config["corpus"], Corpus), "DATASETS": ["citations"]}
    corpus = functions("corpus", config, json=json, **names)
    # Three shards for each of two jobs, at two seconds a MB: an hour beside the two for a server that is away.
    assert corpus["download_minutes"](CORPUS, Inputs(manifest=str(manifest)), 1) == 180


def test_an_update_asks_for_time_by_its_share_of_what_the_base_has_ingested(tmp_path):
    for part in range(3):
        file_of(tmp_path / f"base/corpus/ingested/citations/{part}.parquet", 200)
    config = {"corpus": {"source": "s2", "shards": {"citations": 2}}}
    names = {"SOURCE": entry_of(config["corpus"], Corpus), "DATASETS": ["citations"]}
    names |= {"BASE": str(tmp_path / "base"), "BUCKETS": range(4)}
    assert functions("corpus", config, **names)["update_minutes"](CORPUS, 2) == 2 * (
        20 + 15
    )  # 150 MB, six seconds a MB


@pytest.mark.parametrize(("shards", "threads", "time"), [(1, 1, 20 + 300), (10, 1, 20 + 30), (1, 15, 20 + 20)])
def test_a_search_asks_for_time_by_queries_and_vectors_among_its_shards_and_threads(tmp_path, shards, threads, time):
    # 90,000 queries past 1.5 billion numbers are 1.35·10¹⁴ products: 4,500 s, and four times as much is asked for.
    inputs = Inputs(queries=file_of(tmp_path / "queries", 0.18), vectors=file_of(tmp_path / "vectors", 6000))
    config = {"embeddings": {"dot": {"neighbours": {"shards": shards}}}}
    search_minutes = functions("neighbours", config)["search_minutes"]
    assert search_minutes(CORPUS, inputs, threads, 1) == pytest.approx(time, abs=1)
    assert search_minutes(CORPUS, inputs, threads, 3) == pytest.approx(3 * time, abs=3)


@pytest.mark.parametrize(("tolerance", "shards", "threads", "time"), [(1e-6, 1, 1, 20 + 500), (1e-6, 2, 5, 20 + 50)])
def test_walks_ask_for_time_by_queries_and_tolerance_among_their_shards_and_threads(
    tmp_path, tolerance, shards, threads, time
):
    # 30,000 queries look at 10 million links each at most: 3·10¹¹ at 10⁷ a second.
    inputs = Inputs(queries=file_of(tmp_path / "queries", 0.06), adjacency=str(tmp_path / "adjacency"))
    file_of(tmp_path / "adjacency/others.npy", 80)
    config = {"walks": {"near": {"restart": 0.1, "tolerance": tolerance, "shards": shards}}}
    walk_minutes = functions("neighbours", config)["walk_minutes"]
    wildcards = SimpleNamespace(embedding="near")
    assert walk_minutes(wildcards, inputs, threads, 1) == pytest.approx(time, abs=1)


def test_walks_ask_for_the_memory_of_the_links_and_of_a_desk_for_each_thread(tmp_path):
    file_of(tmp_path / "adjacency/ids.npy", 80)  # 10 million papers
    file_of(tmp_path / "adjacency/others.npy", 800)
    walk_memory = functions("neighbours", {})["walk_memory"]
    assert walk_memory(CORPUS, Inputs(adjacency=str(tmp_path / "adjacency")), 2, 1) == 700 + 880 + 2 * 360


@pytest.mark.parametrize(("gpu", "time"), [(False, 20 + 400), (True, 20 + 4)])
def test_an_embedding_asks_for_time_by_its_texts_and_the_size_of_its_encoder(tmp_path, gpu, time):
    inputs = Inputs(model=str(tmp_path / "model"), documents=file_of(tmp_path / "documents", 10))
    file_of(tmp_path / "model/model.safetensors", 400)
    asked = functions("encoder", {}, WITH_GPU=gpu)["embedding_minutes"]("documents")
    assert asked(CORPUS, inputs, 1) == pytest.approx(time, abs=1)


def test_a_vocabulary_takes_memory_by_its_largest_bucket_up_to_the_papers_it_looks_at_at_once(tmp_path):
    asked = functions("encoder", {})["building_memory"]
    small = Inputs(papers=[file_of(tmp_path / "a", 5), file_of(tmp_path / "b", 10)])
    assert asked(CORPUS, small, 1) == 800 + 60 * 10
    large = Inputs(papers=[file_of(tmp_path / "c", 100), file_of(tmp_path / "d", 300)])
    assert asked(CORPUS, large, 1) == 800 + 60 * 60


def scoring(mode: str) -> dict[str, Any]:
    """The functions of scoring, for a benchmark with three evaluation seeds."""
    fos, relish = TASKS["fos"], TASKS["relish"]
    suites = {"fos": [fos], "relish": [relish], "small": [fos, relish]}
    config = {"models": {}, "benchmarks": {"holdout": {"seeds": [1, 2, 3], "mode": mode}}}
    return functions(
        "evaluation", config, json=json, suites_of=lambda entry: suites, runs_of=lambda config, benchmark: []
    )


@pytest.mark.parametrize(
    ("suite", "mode", "memory", "time"),
    [
        ("fos", "compat", 700 + 12 * 25, 30 + 0.1 * 25 * 3),  # a quarter of the documents, three seeds
        ("fos", "both", 700 + 12 * 25, 30 + 0.1 * 25 * 3 * 2),
        ("relish", "both", 700 + 3 * 75, 30 + 0.1 * 75),  # rankings are scored once
        ("small", "compat", 700 + 12 * 25, 30 + 0.1 * (25 * 3 + 75)),  # one task after the other
    ],
)
def test_scoring_asks_by_the_documents_of_its_tasks_alone(tmp_path, suite, mode, memory, time):
    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps({"documents": 4000, "tasks": {"fos": 1000, "relish": 3000}}))
    inputs = Inputs(sizes=str(sizes), embeddings=file_of(tmp_path / "embeddings", 100))
    wildcards, scored = SimpleNamespace(benchmark="holdout", suite=suite), scoring(mode)
    assert scored["scoring_memory"]("embeddings", 700, ranked=3, fitted=12)(wildcards, inputs, 1) == memory
    assert scored["scoring_minutes"]("embeddings")(wildcards, inputs, 1) == pytest.approx(time, abs=1)


def test_a_job_that_is_granted_less_memory_than_it_asks_for_says_so_once_before_it_starts():
    said: list[str] = []
    names = {
        "workflow": SimpleNamespace(global_resources={"mem_mb": Resource("mem_mb", 8000)}),
        "logger": SimpleNamespace(warning=said.append),
    }
    warned = runpy.run_path(str(ROOT / "rules/common/resources.smk"), names)["warned"]
    asked = Resource("mem_mb", lambda wildcards, input, attempt: input.mb * attempt)
    memory = warned("train_encoder", asked)
    for mb, attempt in ((8000, 1), (9300, 1), (9300, 1), (4500, 2)):
        assert memory(None, input=SimpleNamespace(mb=mb), attempt=attempt, threads=1) == mb * attempt
    (message,) = said
    assert message.startswith("train_encoder asks for 9,300 MB of memory, and all jobs together are granted 8,000 MB (")


def test_a_dry_run_names_the_jobs_that_would_be_granted_too_little(run):
    manifest = "results/corpus/manifest.json"
    told = run.snakemake("--dry-run", manifest, "--resources", "mem_mb=100")
    assert told.returncode == 0, told.stderr
    said = re.findall(
        r"^(\w+) asks for [\d,]+ MB of memory, and .* granted 100 MB", told.stdout + told.stderr, re.MULTILINE
    )
    assert sorted(said) == ["generate_release", "list_shards"]
    assert "MB of memory, and all jobs" not in run.snakemake("--dry-run", manifest).stderr


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
def test_no_job_of_a_run_takes_more_than_it_asked_for(finished):
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


@pytest.mark.end_to_end
def test_two_jobs_of_a_small_run_have_room_side_by_side(finished):
    assert max(int(asked["mem_mb"]) for _, asked, _ in jobs_of(finished.folder)) <= 2000
    assert {rule for rule, *_ in jobs_of(finished.folder)} >= {"ingest", "train_graph_embedding", "train_encoder"}
