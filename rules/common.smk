"""What the rules of all stages share: from names in the configuration to files, and from entries to settings."""

import json
import os
import shlex
import sys
from pathlib import Path

from cocite.config.baseline import points_of
from cocite.config.baselines import (
    POINT,
    AnyBaseline,
    baselines_on,
    baselines_with_vectors,
    kind_of,
    reported_on,
    seed_under,
    seeds_of,
    that_rank_alone,
    trained_entries,
)
from cocite.config.benchmark import MadeOfHeldOut
from cocite.config.benchmarks import (
    KINDS,
    SMALL,
    TASKS,
    tells_spaces_apart,
    is_generated,
    has_hashes,
    ids_of_documents,
    is_held_out,
    on_hub,
    sides_of,
    metrics_asked,
    suites_of,
    tasks_of,
)
from cocite.config.benchmarks.beir import BeirSettings, files_of
from cocite.config.corpus import Corpus
from cocite.config.embeddings import AnyEngine, edge_settings, IndexSettings, SearchSettings
from cocite.config.encoders import EncoderSettings
from cocite.config.entries import as_json
from cocite.config.graphs import PAIRS, Combination, Counting
from cocite.config.map import labels_of
from cocite.config.maps import maps_queries
from cocite.config.mining import SearchedDocuments
from cocite.config.aspects import ASPECTS, CONCATENATED
from cocite.config.models import SIMPLE_POOLINGS, TrainingSettings
from cocite.config.probes import MapTraining, named_sets, probe_sets
from cocite.config.origins import settings_of_origin
from cocite.config.recorded import FOR_PROVENANCE, record
from cocite.config.release_folder import DATASETS, find_shards
from cocite.corpus.sources.demo import GeneratedRelease
from cocite.config.id_spaces import link_between
from cocite.config.lineage import encoder_under, sets_of
from cocite.config.settings import entry_of, parse_settings, settings_of
from cocite.config.runs import (
    adapters_of,
    mapped_runs,
    averages,
    model_of,
    scored_in,
    scored_models,
    runs_of,
    runs_that_rank_alone,
    scored_runs,
    training_seeds,
    untrained,
    with_weights,
)
from cocite.config.walks import Links, WalkSettings, ranking_of, rankings
from cocite.core.gpus import gpus
from cocite.config.leftovers import check_times, remove_unneeded
from cocite.tools.status.described import report_failures
from cocite.config.started import write_start
from cocite.config.targets import check_spelling, check_targets, targets_of
from cocite.config.triplets import (
    ORACLE,
    TripletSet,
    graphs_of_aspects,
    oracles,
    parts_of,
    sets_by_aspect,
    sets_with_texts,
    table_of,
)
from snakemake.logging import logger

# Jobs call `cocite`; a run started as .venv/bin/snakemake finds it beside its own Python.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))

RESULTS = config.get("pathvars", {}).get("results", "results")
BUCKETS = range(config["corpus"]["buckets"])
SOURCE = entry_of(config["corpus"], Corpus)
# The results that diffs lead on from.
BASE = config["corpus"].get("base", "") if SOURCE.updates_by_diffs else ""
PAIRS_OF = {name: PAIRS[entry["signal"]] for name, entry in config["graphs"].items() if entry["signal"] in PAIRS}
HOLDOUTS = [name for name, entry in config["benchmarks"].items() if is_held_out(entry)]
COLLECTIONS = [name for name, entry in config["benchmarks"].items() if entry["kind"] == "beir"]
BY_ASPECT = [
    name
    for name, entry in config["benchmarks"].items()
    if tells_spaces_apart(entry) and any(model["spaces"] for model in config["models"].values())
]
SIDES = sides_of(config)
# How the documents of each benchmark are known to be papers of the corpus: by ids, hashes, matches, or by nothing.
KNOWN_BY = {
    name: link_between(
        ids_of_documents(entry),
        SOURCE.whose_ids,
        has_match=SOURCE.matched_with is not None,
        has_hashes=has_hashes(entry),
    )
    for name, entry in config["benchmarks"].items()
}
# Benchmarks about the corpus itself are small and embedded in one job; published ones get a job each.
OWN_BENCHMARKS = [name for name, entry in config["benchmarks"].items() if name in HOLDOUTS or is_generated(entry)]
FOREIGN_BENCHMARKS = [name for name in config["benchmarks"] if name not in OWN_BENCHMARKS]
APPROXIMATE = [name for name, entry in config["embeddings"].items() if entry["neighbours"]["index"]["kind"] != "flat"]
# What ranks neighbours: embeddings, and walks that stand for one.
RANKINGS = rankings(config)
ASPECT_GRAPHS = graphs_of_aspects(config)
UNTRAINED = untrained(config)
WITH_WEIGHTS = [*with_weights(config), *UNTRAINED]
ON_CLUSTER = workflow.resource_settings.nodes is not None
# Without a cluster, jobs are given the GPUs of this machine, unless `--resources gpu=…` says how many.
WITH_GPU = config["gpu"] if ON_CLUSTER else bool(gpus())
if not ON_CLUSTER and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", len(gpus()))


def either(names):
    """Regular expression that matches one of these names; without names it matches nothing."""
    return "|".join(names) or "(?!)"


def named(section, **having):
    """Regular expression that matches the names of a section whose entries have these values."""
    return either(name for name, entry in config[section].items() if having.items() <= entry.items())


wildcard_constraints:
    bucket=r"\d+",
    seed=r"\d+",
    dataset=either(dict.fromkeys([*SOURCE.holds, *DATASETS])),
    graph=named("graphs"),
    embedding=named("embeddings"),
    triplets=named("triplets"),
    model=either([*scored_models(config), *UNTRAINED]),
    baseline=named("baselines"),
    benchmark=named("benchmarks"),
    map=named("maps"),
    probe=named("probes"),
    part=r"\d+",
    suite=either([SMALL, *TASKS]),


def buckets(path, **wildcards):
    """A file for each bucket of a table."""
    return expand(path, bucket=BUCKETS, **wildcards)


def settings(section, wildcard, kind, part=None):
    """What the entry that a wildcard names holds of the settings of a step, as JSON for `--settings`.

    A step is given the keys that it uses and no others: an edit of another key does not make its result again.
    """

    def as_json(wildcards):
        entry = config[section][wildcards[wildcard]]
        return json.dumps(settings_of(entry if part is None else entry[part], kind), sort_keys=True)

    return as_json


def state(folder):
    """A folder that Snakemake does not know and never deletes, where a killed step keeps what it resumes from."""
    return f"{RESULTS}/.state/{folder}"


def surplus_files():
    """Files of an earlier run with more buckets or parts: tables are read by folder, and would hold rows twice."""
    numbered = {
        "corpus/papers/*.parquet": BUCKETS,
        "corpus/citations/*.parquet": BUCKETS,
        "corpus/contexts/*.parquet": BUCKETS,
        **{f"graph/*/{pairs}/*.parquet": BUCKETS for pairs in PAIRS.values()},
        **{f"graph/omissions/*-{table}-*.parquet": BUCKETS for table in ["edges", *PAIRS.values()]},
        "graph/*/edges/*.parquet": BUCKETS,
        **{
            f"neighbours/{pattern.format(name)}": range(ranking_of(name, config)[1]["shards"])
            for name in RANKINGS
            for pattern in ("{}/neighbours/*.parquet", "omissions/{}_*.parquet")
        },
        "encoder/*/seed-*/papers/*.parquet": BUCKETS,
        "baselines/*/seed-*/papers/*.parquet": BUCKETS,
        "corpus/omissions/merge-*.parquet": BUCKETS,
        "corpus/omissions/update-*.parquet": BUCKETS,
        **{f"corpus/ingested/{dataset}/*.parquet": BUCKETS if BASE else ALL_PARTS[dataset] for dataset in DATASETS},
        "corpus/ingested/citations/contexts/*.parquet": PARTS["citations"],
        **{f"corpus/changes/{dataset}/*.parquet": PARTS[dataset] for dataset in DATASETS},
        **{f"corpus/ingest_report/{dataset}/*.parquet": ALL_PARTS[dataset] for dataset in SOURCE.holds},
    }
    for pattern, numbers in numbered.items():
        for file in Path(RESULTS).glob(pattern):
            number = file.stem.replace("_", "-").rpartition("-")[2]
            if number.isdigit() and int(number) not in numbers:
                yield file


onstart:
    try:
        check_times(workflow)
    except InputError as error:
        raise WorkflowError(error) from None
    for file in surplus_files():
        file.unlink()
    remove_unneeded(workflow)
    record(config, Path(RESULTS))
    write_start(workflow, log, Path(RESULTS))


onsuccess:
    if any(job.rule.name == "write_page" for job in workflow.dag.jobs):
        logger.info(f"The report: {RESULTS}/report/index.html")


onerror:
    report_failures(Path(RESULTS))


def files_in(folder):
    """All files of a folder that the user brings: Snakemake does not notice a change in them by the folder's time."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(name[0] == "." for name in path.relative_to(folder).parts))


def folders_of(inputs):
    """The folders of some files, each once: one folder for all files of a sharded table."""

    def folders(wildcards, input):
        files = [input[inputs]] if isinstance(input[inputs], str) else input[inputs]
        return list(dict.fromkeys(Path(file).parent for file in files))

    return folders


def folders_of_buckets(inputs):
    """The tables among some files: the folder of each sharded one, the file of any other."""

    def tables(wildcards, input):
        paths = [Path(path) for path in input[inputs]]
        return sorted({str(path.parent if path.stem.isdigit() else path) for path in paths})

    return tables


include: "common/resources.smk"
include: "common/corpus.smk"
include: "common/graph.smk"
include: "common/embeddings.smk"
include: "common/neighbours.smk"
include: "common/triplets.smk"
include: "common/encoder.smk"
include: "common/baselines.smk"
include: "common/evaluation.smk"
include: "common/report.smk"
