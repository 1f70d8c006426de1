from pathlib import Path

from cocite.plan.plan import begin, check_files, either, has_page, refuse_unknown_targets, start
from cocite.plan.stage import as_text, folders_of, folders_of_buckets, megabytes, minutes, option, warn_of_memory
from cocite.tools.run_progress import report_failures
from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.27")
check_files(workflow)

if not workflow.configfiles:

    configfile: "config.yaml"


plan = begin(workflow, config)
configuration = plan.config
buckets, named, settings, state, value = plan.buckets, plan.named, plan.settings, plan.state, plan.value


container: f"{workflow.basedir}/envs/cocite.sif"  # only with --software-deployment-method apptainer


wildcard_constraints:
    bucket=r"\d+",
    seed=r"\d+",
    part=r"\d+",
    dataset=either(plan.corpus.datasets),
    graph=named("graphs"),
    embedding=named("embeddings"),
    triplets=named("triplets"),
    model=either(plan.evaluation.scored),
    index=named("indexes"),
    baseline=named("baselines"),
    benchmark=named("benchmarks"),
    map=named("maps"),
    probe=named("probes"),
    suite=either(plan.evaluation.suite_names),


include: "rules/demo.smk"
include: "rules/corpus.smk"
include: "rules/graph.smk"
include: "rules/embeddings.smk"
include: "rules/neighbours.smk"
include: "rules/triplets.smk"
include: "rules/encoder.smk"
include: "rules/retrieval.smk"
include: "rules/baselines.smk"
include: "rules/evaluation.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        "<results>/report/index.html",
        "<results>/cocite.duckdb",
        plan.retrieval.indexes(),


rule corpus:
    input:
        plan.corpus.papers(),
        plan.corpus.citations(),
        buckets("<results>/corpus/contexts/{bucket}.parquet") if plan.corpus.with_contexts else [],
        "<results>/corpus/queries.parquet",


rule graph:
    input:
        plan.graph.edges(list(configuration.graphs)),


rule embeddings:
    input:
        expand("<results>/embeddings/{embedding}/graph_embeddings.parquet", embedding=configuration.embeddings),
        expand("<results>/embeddings/{embedding}/graph_scores.parquet", embedding=configuration.embeddings),


rule neighbours:
    input:
        plan.neighbours.all_neighbours(),
        expand("<results>/neighbours/{embedding}/search_quality.parquet", embedding=plan.neighbours.approximate),


rule triplets:
    input:
        plan.triplets.materialised("examples.parquet"),
        plan.triplets.materialised("documents"),
        expand("<results>/triplets/{triplets}/checks.parquet", triplets=configuration.triplets),
        expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=plan.neighbours.rankings),


rule probe:
    input:
        expand("<results>/evaluation/probe_{probe}/scores.parquet", probe=configuration.probes),


rule encoder:
    input:
        plan.encoder.trained("<results>/encoder/{model}/seed-{seed}/model"),


rule retrieval:
    input:
        plan.retrieval.answers(),
        plan.retrieval.indexes(),


rule baselines:
    input:
        plan.baselines.embeddings(),


rule evaluation:
    input:
        plan.evaluation.of_runs("scores", *configuration.benchmarks),
        plan.evaluation.all_reported(),
        plan.evaluation.summaries(),
        "<results>/evaluation/task_comparisons.parquet" if configuration.benchmarks else [],


rule report:
    input:
        "<results>/report/index.html",
        "<results>/cocite.duckdb",


onstart:
    start(workflow, plan, log)


onsuccess:
    if has_page(workflow):
        from cocite.tools.leaderboard import report_verdict  # not for every job of a cluster

        report_verdict(Path(plan.results))
        logger.info(f"The report: {plan.results}/report/index.html")


onerror:
    report_failures(Path(plan.results))


refuse_unknown_targets(workflow, plan)
warn_of_memory(workflow)
