"""The jobs of a run, known before it starts: the files of each with their sizes, and the work that it is.

Sizes are known of user-supplied files, of what is listed of a release, and of results; all others follow from them, job
by job. The work of a job is what its rule adds to the constant part of its time request for inputs of that size.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from inspect import signature
from math import exp
from pathlib import Path
from typing import Any

from snakemake.api import SnakemakeApi
from snakemake.exceptions import WorkflowError
from snakemake.settings import types

from cocite.config.configuration import Configuration
from cocite.config.runs import POINT, UNTRAINED, model_of
from cocite.config.started import stage_of
from cocite.core.errors import InputError
from cocite.corpus.release.manifest import shards_of_part
from cocite.corpus.release.plan import parquet_bytes, plan_corpus
from cocite.plan.plan import Plan
from cocite.plan.stage import PLANNED, size_mb
from cocite.tools.cluster import RULES

NUMBERED = ("bucket", "part")
"""Wildcards that divide one task among jobs."""
GPU_SPEED = 100
"""How many cores of a CPU a GPU replaces in a training, as rules assume for embedding."""
BESIDE_WEIGHTS = {"static": 40, "transformer": 4}
"""MB of weights whose work equals that of the other steps of a training, as measured at two sizes of each."""
LONGEST = 256
"""Tokens up to which a longer limit makes texts longer."""
TRIPLET_MB = 6.6e-6
BY_QUERIES = ("select_queries", "count_pairs", "search_neighbours", "walk_neighbours", "check_triplets")
"""Rules whose outputs grow with the number of queries, of which configurations choose as many for any corpus."""
BY_HELD_OUT = ("prepare_holdout", "find_candidates", "rank_candidates", "search_corpus", "score_")
"""Beginnings of rules whose outputs grow with the number of held-out queries, for benchmarks of these."""
DOCUMENTS_MB = 0.016
"""Documents that a held-out query names, MB: 0.019 for papers of hci, 0.013 for those of synergy."""
ENCODERS = ("build_encoder", "train_encoder", "average_weights", "repool_encoder")
"""Rules whose first output is an encoder, whose size does not follow from tables."""

Sizes = Callable[[str, int, float], float | None]
"""From the key of a job, the place of an output and what that grows with, to its size, MB; none if not measured."""


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job of a run, with sizes in MB."""

    number: int
    rule: str
    key: str
    """The rule and what else its rates depend on, such as the kind of encoder."""
    stage: str
    is_needed: bool
    """Whether the run has to do it."""
    after: frozenset[int]
    reads: frozenset[str]
    makes: Mapping[str, float]
    grows_with: tuple[float, ...]
    """What the size of each of its outputs is proportional to, apart from a constant."""
    temporary: frozenset[str]
    """Those of its outputs that are deleted after their last reader."""
    threads: int
    gpus: int
    work: float
    minutes: float | None
    """What it requests, if that is known before its inputs exist."""
    memory_mb: float | None
    log: str | None


@contextmanager
def opened_workflow(config: Path, folder: Path, *, at_once: int | None = None, all_jobs: bool = False) -> Iterator[Any]:
    """Snakemake's workflow with the graph of its jobs; with `at_once`, on a cluster. It is no run: nothing is locked,
    written or started. Raises `InputError` for what Snakemake finds wrong."""
    output = types.OutputSettings(quiet={types.Quietness.ALL}, enable_file_logging=False)
    try:
        with SnakemakeApi(output) as api:
            opened = api.workflow(
                resource_settings=types.ResourceSettings(cores=None if at_once else 1, nodes=at_once),
                config_settings=types.ConfigSettings(configfiles=[config], replace_workflow_config=True),
                workflow_settings=types.WorkflowSettings(exec_mode=types.ExecMode.SUBPROCESS),
                snakefile=RULES.parent / "Snakefile",
                workdir=folder,
            )
            opened.dag(types.DAGSettings(forceall=all_jobs))
            workflow = opened._workflow
            workflow._prepare_dag(forceall=all_jobs, ignore_incomplete=True, lock_warn_only=True)
            workflow._build_dag()
            yield workflow
    except WorkflowError as error:
        raise InputError(str(error).removeprefix("InputError: ")) from None


def planned_jobs(workflow: Any, size_of: Sizes) -> Iterator[PlannedJob]:
    """The jobs of a workflow, each after those that it waits for."""
    dag, plan = workflow.dag, workflow.globals["plan"]
    readers = Counter((str(file), _task(job)) for job in dag.jobs for file in set(job.input))
    parts = Counter(map(_task, dag.jobs))
    PLANNED.clear()
    PLANNED.update(_corpus_mb(plan))
    try:
        for job in TopologicalSorter({job: list(dag.dependencies[job]) for job in dag.jobs}).static_order():
            if job.output:
                made = _planned(job, dag, plan, readers, parts[_task(job)], size_of)
                PLANNED.update(made.makes)
                yield made
    finally:
        PLANNED.clear()


def _corpus_mb(plan: Plan) -> dict[str, float]:
    """The sizes of downloads and of what is read from them, MB, as `cocite corpus plan` estimates them."""
    manifest, corpus, sizes = plan_corpus(plan.resolved).manifest, plan.corpus, dict[str, float]()
    for name, parts in corpus.parts.items():
        for part in parts if corpus.source.fetches and name in manifest.datasets else ():
            shards = shards_of_part(manifest, name, part=part, parts=len(parts))
            sizes[f"{plan.results}/corpus/raw/{name}/{part}"] = sum(shard.to_fetch for shard in shards) / 1e6
    for table, dataset in corpus.held_in.items():
        names = corpus.all_parts[dataset]
        size = parquet_bytes(manifest, table, corpus.source) / len(names) / 1e6
        sizes |= {f"{plan.results}/corpus/ingested/{table}/{part}.parquet": size for part in names}
    return sizes


def _planned(job: Any, dag: Any, plan: Plan, readers: Mapping[Any, int], parts: int, size_of: Sizes) -> PlannedJob:
    for file in map(str, job.input):
        if file not in PLANNED:
            PLANNED[file] = size_mb(file) if Path(file).exists() else 0.0
    key = " ".join(filter(None, [job.rule.name, _kind(job.rule.name, job.wildcards_dict, plan.config)]))
    # Weights are read as well, but tables grow with tables.
    tables = {str(file) for file in job.input if Path(file).name != "model"}
    reads = sum(PLANNED[file] / readers[file, _task(job)] for file in tables)
    work = _work(job, plan) or reads
    outputs = list(map(str, job.output))
    usual = reads if key.startswith("embed") else work
    grows_with = tuple(_grows_with(path, job, plan, parts) or usual for path in outputs)
    makes = {
        path: _size(path, place, job, plan, size_of(key, place, size), size if key.startswith("sample_") else reads)
        for place, (path, size) in enumerate(zip(outputs, grows_with, strict=True))
    }
    return PlannedJob(
        number=dag.jobid(job),
        rule=job.rule.name,
        key=key,
        stage=stage_of(job),
        is_needed=dag.needrun(job),
        after=frozenset(dag.jobid(earlier) for earlier in dag.dependencies[job] if dag.needrun(earlier)),
        reads=frozenset(map(str, job.input)),
        makes=makes,
        grows_with=grows_with,
        temporary=frozenset(map(str, job.temp_output)),
        threads=int(_requested(job, "_cores") or 1),
        gpus=int(_requested(job, "gpu") or 0),
        work=work,
        minutes=_requested(job, "runtime"),
        memory_mb=_requested(job, "mem_mb"),
        log=next(map(str, job.log), None),
    )


def _size(path: str, place: int, job: Any, plan: Plan, usual: float | None, otherwise: float) -> float:
    """The size of an output: as it is, of an encoder as configured or its base, as usual, or, if first, otherwise."""
    if path in PLANNED or Path(path).exists():
        return size_mb(path)
    if place == 0 and job.rule.name in ENCODERS:
        entry: Any = plan.config.encoders.get(job.wildcards_dict.get("encoder", ""))
        if entry is not None and entry.kind == "static":
            return float(entry.vocabulary * entry.dimension * 4 / 1e6)
        if read := [PLANNED[str(file)] for file in job.input if Path(file).name == "model"]:
            return max(read)
    return usual if usual is not None else 0.0 if place or "/omissions/" in path else otherwise


def _grows_with(path: str, job: Any, plan: Plan, parts: int) -> float:
    """What the configuration has of that with which the size of an output grows; 0 if it grows with the inputs."""
    wildcards, queries = job.wildcards_dict, plan.config.queries
    chosen: float = getattr(queries, "count", 0) / parts
    if job.rule.name == "prepare_holdout" and Path(path).name == "documents.parquet":
        papers = sum(PLANNED[str(file)] for file in job.input.papers) or 1e-9
        return papers * (1 - exp(-queries.holdout * DOCUMENTS_MB / papers))  # many name the same
    if wildcards.get("benchmark") in plan.evaluation.holdouts and job.rule.name.startswith(BY_HELD_OUT):
        return 0.0 if Path(path).name == "popularity.parquet" else queries.holdout
    if job.rule.name == "select_vectors":
        return PLANNED[str(job.input.documents)]
    if job.rule.name in BY_QUERIES:
        counting = plan.config.graphs.get(wildcards.get("graph", ""))
        return 0.0 if getattr(counting, "pairs", "") == "all" else chosen
    if job.rule.name.startswith("sample_"):
        entry: Any = plan.config.triplets[wildcards["triplets"]]
        per_query = 0 if entry.asks_all_papers else getattr(entry, "per_query", 0)
        share = getattr(entry, "share", None) or 1.0
        return chosen * per_query * TRIPLET_MB or share * sum(PLANNED[str(file)] for file in job.input.sources)
    # Apart from an encoder, outputs of these do not grow.
    return float(job.rule.name in ("train_encoder", "draw_figures", "lay_out_map", "write_page"))


def _task(job: Any) -> tuple[str, ...]:
    """The jobs that share this are parts of one task, and each reads a part of what they all read."""
    return (job.rule.name, *(str(value) for name, value in job.wildcards_dict.items() if name not in NUMBERED))


def _kind(rule: str, wildcards: Mapping[str, str], config: Configuration) -> str:
    """What the rates of a job depend on besides its rule: a dataset, kind, engine, or whether models are fitted."""
    name = next((wildcards[key] for key in ("system", "model", "encoder", "baseline") if key in wildcards), "")
    if (baseline := config.baselines.get(name.partition(POINT)[0])) is not None:
        return baseline.kind
    if model_of(name) in config.models:
        name = config.base_encoder(model_of(name))
    if (encoder := config.encoders.get(name.removeprefix(UNTRAINED))) is not None:
        tasks = config.benchmarks[wildcards["benchmark"]].suites[wildcards["suite"]] if "suite" in wildcards else []
        return encoder.kind + " fitted" * any(task.is_supervised for task in tasks)
    if (embedding := config.embeddings.get(wildcards.get("embedding", ""))) is not None:
        return embedding.engine
    if rule.startswith("sample_"):
        entry = config.triplets[wildcards["triplets"]]
        graph = config.graphs.get(getattr(entry, "graph", ""))
        return f"{entry.sampler} {graph.signal}" if graph else entry.sampler
    if rule == "materialise_training":  # for each MB of ids, pairs make more examples than queries with negatives do
        return "of pairs" if config.triplets[wildcards["triplets"]].asks_all_papers else ""
    if rule.startswith("merge_"):  # what is in tables of users is estimated in another way
        return "table" if config.corpus.source == "table" else ""
    return wildcards.get("dataset", "")


def _work(job: Any, plan: Plan) -> float:
    """What a request grows by with the inputs of a job. A training, whose request does not, reads its texts, MB, in
    each epoch, and does with them what its weights say."""
    if job.rule.name == "train_encoder":
        entry = plan.config.models[job.wildcards.model]
        encoder = plan.config.encoders[plan.config.base_encoder(job.wildcards.model)]
        length = 1 if encoder.kind == "static" else min(encoder.max_length, LONGEST) / LONGEST
        examples = entry.epochs * sum(PLANNED[str(file)] for file in list(job.input.sets)[::4])
        weights = PLANNED[str(job.input.encoder)] + BESIDE_WEIGHTS[encoder.kind]
        return examples * weights * length / (GPU_SPEED if _requested(job, "gpu") else 1)
    if job.rule.name == "download_shards":
        return sum(PLANNED.get(str(file), 0.0) for file in job.output)
    whole = _requested(job, "runtime")
    sizes = {str(file): PLANNED[str(file)] for file in job.input}
    PLANNED.update(dict.fromkeys(sizes, 0.0))
    constant = _requested(job, "runtime")
    PLANNED.update(sizes)
    return 0.0 if whole is None or constant is None else whole - constant


def _requested(job: Any, resource: str) -> float | None:
    """What a job requests in its first attempt; none if that follows from the content of a missing file."""
    entry = job.rule.resources.get(resource)
    asked = getattr(entry, "_evaluator", None)  # not rounded, as what `evaluate` returns is
    if asked is None:
        return None if entry is None or entry.value is None else float(entry.value)
    known = {"input": job.input, "attempt": 1, "threads": 1}
    try:
        return float(asked(job.wildcards, **{name: known[name] for name in signature(asked).parameters.keys() & known}))
    except (OSError, ValueError):
        return None
