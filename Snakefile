import sys
from pathlib import Path

from cocite.config.configuration import resolve, results_folder
from cocite.config.folders import make_folders
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.config.recorded import check_folder
from cocite.tools.locked import lock_results, writes_results
from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.27")

try:
    for file in workflow.configfiles or ["config.yaml"]:
        written_configuration(Path(file))  # refuses what Snakemake's own reader accepts in silence
except InputError as error:
    raise WorkflowError(error) from None

if not workflow.configfiles:

    configfile: "config.yaml"


try:
    config.update(resolve(config))
    if workflow.is_main_process:
        if writes_results(sys.argv[1:]):
            make_folders(config)
            lock_results(results_folder(config))
        check_folder(config)
except (InputError, OSError) as error:
    raise WorkflowError(error) from None


include: "rules/common.smk"
include: "rules/demo.smk"
include: "rules/corpus.smk"
include: "rules/graph.smk"
include: "rules/embeddings.smk"
include: "rules/neighbours.smk"
include: "rules/triplets.smk"
include: "rules/encoder.smk"
include: "rules/baselines.smk"
include: "rules/evaluation.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        "<results>/report/index.html",
        "<results>/cocite.duckdb",


rule corpus:
    input:
        buckets("<results>/corpus/papers/{bucket}.parquet"),
        buckets("<results>/corpus/citations/{bucket}.parquet"),
        buckets("<results>/corpus/contexts/{bucket}.parquet") if WITH_CONTEXTS else [],
        "<results>/corpus/queries.parquet",


rule graph:
    input:
        buckets("<results>/graph/{graph}/edges/{bucket}.parquet", graph=config["graphs"]),


rule embeddings:
    input:
        expand("<results>/embeddings/{embedding}/graph_embeddings.parquet", embedding=config["embeddings"]),
        expand("<results>/embeddings/{embedding}/graph_scores.parquet", embedding=config["embeddings"]),


rule neighbours:
    input:
        [neighbours_of(name) for name in RANKINGS],
        measured_searches(),


rule triplets:
    input:
        materialised("examples.parquet"),
        materialised("documents"),
        expand("<results>/triplets/{triplets}/checks.parquet", triplets=config["triplets"]),
        expand("<results>/triplets/band_quality/{embedding}.parquet", embedding=RANKINGS),


rule probe:
    input:
        ranked_probes("scores.parquet"),


rule encoder:
    input:
        trained("<results>/encoder/{model}/seed-{seed}/model"),


rule baselines:
    input:
        baseline_embeddings(),


rule evaluation:
    input:
        all_scored("scores"),
        all_reported(),
        summaries(),
        "<results>/evaluation/task_comparisons.parquet" if config["benchmarks"] else [],


rule report:
    input:
        "<results>/report/index.html",
        "<results>/cocite.duckdb",


include: "rules/common/targets.smk"


warn_of_memory()
