"""A run from the Snakefile's view: it begins with a configuration that holds, starts, and ends."""

import os
import sys
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from cocite.config.configuration import configure
from cocite.config.folders import make_folders
from cocite.config.started import write_start
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.gpus import gpus
from cocite.core.locked import lock_results, writes_results
from cocite.plan.leftovers import check_times, remove_unneeded
from cocite.plan.plan import Plan
from cocite.plan.recorded import check_folder, record
from cocite.plan.targets import check_spelling, check_targets, surplus_files, targets_of


def check_files(workflow: Any) -> None:
    """Raise `WorkflowError` for what Snakemake's own reader of configuration files accepts in silence."""
    try:
        for file in workflow.configfiles or ["config.yaml"]:
            written_configuration(Path(file))
    except InputError as error:
        raise WorkflowError(error) from None


def begin(workflow: Any, config: dict[str, Any]) -> Plan:
    """The plan of a run. The main process makes and locks the folders that it writes to.

    Raises `WorkflowError`, one sentence, for a configuration or a folder that cannot be used.
    """
    # Jobs call `cocite`; a run started as .venv/bin/snakemake finds it beside its own Python.
    os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
    on_cluster = workflow.resource_settings.nodes is not None
    try:
        configuration = configure(config)
        plan = Plan(configuration, with_gpu=configuration.gpu if on_cluster else bool(gpus()))
        if workflow.is_main_process:
            if writes_results(sys.argv[1:]):
                make_folders(plan.resolved)
                lock_results(Path(plan.results))
            check_folder(plan.resolved)
    except (InputError, OSError) as error:
        raise WorkflowError(error) from None
    # Without a cluster, jobs are given the GPUs of this machine, unless `--resources gpu=…` says how many.
    if not on_cluster and "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", len(gpus()))
    return plan


def refuse_unknown_targets(workflow: Any, plan: Plan) -> None:
    """Raise `WorkflowError` for a target that this configuration does not have; it names those that it has."""
    if not workflow.is_main_process:
        return
    outputs = outputs_of(workflow)
    arguments = [argument for argument in sys.argv[1:] if argument and not argument.startswith("-")]
    try:
        check_targets(arguments, outputs, plan)
        check_spelling(targets_of(sys.argv[1:]), [rule.name for rule in workflow.rules], outputs, Path(plan.results))
    except InputError as error:
        raise WorkflowError(error) from None


def start(workflow: Any, plan: Plan, log: list[str]) -> None:
    """What happens before the first job: leftovers of earlier runs go, and the run is written down."""
    try:
        check_times(workflow)
    except InputError as error:
        raise WorkflowError(error) from None
    for file in surplus_files(outputs_of(workflow), plan):
        file.unlink()
    remove_unneeded(workflow)
    record(plan.resolved, Path(plan.results))
    write_start(workflow, log, Path(plan.results))


def outputs_of(workflow: Any) -> list[str]:
    """The outputs of all rules, as Snakemake writes them, with wildcards in braces."""
    return [str(output) for rule in workflow.rules for output in rule.output]


def has_page(workflow: Any) -> bool:
    """Whether the run was to make the report."""
    return any(job.rule.name == "write_page" for job in workflow.dag.jobs)
