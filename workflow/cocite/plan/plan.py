"""The plan of a run: what its configuration implies for all stages, and how a run starts.

The Snakefile makes one `Plan`. Each stage has a part of it, whose methods are input functions, parameters and resources
of the stage's rules; rules contain their literal paths and get the rest from here.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.io import expand

from cocite.config.configuration import Configuration, configure
from cocite.config.entries import as_json
from cocite.config.folders import make_folders
from cocite.config.settings import settings_of
from cocite.config.started import write_start
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import remove
from cocite.core.errors import InputError
from cocite.core.gpus import gpus
from cocite.core.locks import lock_results, writes_results
from cocite.core.progress import report
from cocite.plan.baselines import BaselinePlan
from cocite.plan.corpus import CorpusPlan
from cocite.plan.encoder import EncoderPlan
from cocite.plan.evaluation import EvaluationPlan
from cocite.plan.graph import GraphPlan
from cocite.plan.neighbours import NeighbourPlan
from cocite.plan.recorded import missing_records, record, refuse_another_corpus, remake_without_record
from cocite.plan.report import ReportPlan
from cocite.plan.retrieval import RetrievalPlan
from cocite.plan.stage import as_text
from cocite.plan.targets import check_spelling, check_targets, surplus_files, targets_of
from cocite.plan.triplets import TripletPlan

LONGEST_WAIT = 60.0  # seconds for the time of the newest file to come: clocks of network disks differ
MARK = ".snakemake_timestamp"  # the file in a folder whose time Snakemake takes for that of the folder


class Plan:
    """What follows from a configuration."""

    def __init__(self, config: Configuration, *, with_gpu: bool = False) -> None:
        """`with_gpu`: whether jobs that can use a GPU have one."""
        self.config, self.with_gpu = config, with_gpu
        self.results = str(config.folders["results"])
        self.bucket_numbers = range(config.corpus.buckets)
        self.corpus = CorpusPlan(self)
        self.graph = GraphPlan(self)
        self.neighbours = NeighbourPlan(self)
        self.triplets = TripletPlan(self)
        self.encoder = EncoderPlan(self)
        self.baselines = BaselinePlan(self)
        self.retrieval = RetrievalPlan(self)
        self.evaluation = EvaluationPlan(self)
        self.report = ReportPlan(self)

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The configuration as plain values."""
        return as_json(self.config)

    def buckets(self, path: str, **wildcards: Any) -> list[str]:
        """A file for each bucket of a table."""
        return expand(path, bucket=self.bucket_numbers, **wildcards)

    def state(self, folder: str) -> str:
        """A folder that Snakemake does not know and never deletes, where a killed step keeps what it resumes from."""
        return f"{self.results}/.state/{folder}"

    def named(self, section: str, **having: Any) -> str:
        """Regular expression that matches the names of the entries of a section that have these values."""
        entries = getattr(self.config, section).items()
        return either(name for name, entry in entries if all(getattr(entry, k) == v for k, v in having.items()))

    def value(self, section: str, wildcard: str, field: str) -> Callable[[Any], Any]:
        """A field, or what follows from the fields, of the entry that a wildcard names."""
        return lambda wildcards: getattr(getattr(self.config, section)[wildcards[wildcard]], field)

    def settings(self, section: str, wildcard: str, kind: Any) -> Callable[[Any], str]:
        """The settings of a step in the entry that a wildcard names, as JSON for `--settings`. A step gets only the
        keys that it uses, so that editing another key does not make its result stale."""
        return lambda wildcards: as_text(settings_of(getattr(self.config, section)[wildcards[wildcard]], kind))


def either(names: Iterable[str]) -> str:
    """Regular expression that matches one of these names; without names it matches nothing."""
    return "|".join(names) or "(?!)"


def check_files(workflow: Any) -> None:
    """Raise `WorkflowError` for errors that Snakemake's own reader of configuration files accepts silently."""
    try:
        for file in workflow.configfiles or ["config.yaml"]:
            written_configuration(Path(file))
    except InputError as error:
        raise WorkflowError(error) from None


def begin(workflow: Any, config: dict[str, Any]) -> Plan:
    """The plan of a run. The main process makes and locks the folders that it writes to. Raises `WorkflowError`, one
    sentence, for a configuration or a folder that cannot be used."""
    # Jobs call `cocite`; a run started as .venv/bin/snakemake finds it in the folder of its own Python.
    os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
    on_cluster = workflow.resource_settings.nodes is not None
    try:
        configuration = configure(config)
        plan = Plan(configuration, with_gpu=configuration.gpu if on_cluster else bool(gpus()))
        # If a run keeps its results in a storage, steps work in a local copy of it.
        plan.results = str(workflow.modifier.path_modifier.apply_default_storage(plan.results))
        if workflow.is_main_process:
            if writes_results(sys.argv[1:]):
                make_folders(plan.resolved)
                lock_results(Path(plan.results))
                remake_without_record(Path(plan.results))
            refuse_another_corpus(plan.resolved, Path(plan.results))
            if notice := missing_records(plan.resolved, Path(plan.results)):
                report(notice)
    except (InputError, OSError) as error:
        raise WorkflowError(error) from None
    # Without a cluster, jobs share the GPUs of this machine, unless `--resources gpu=…` sets their number.
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
    if not workflow.storage_settings.notemp:
        remove_unneeded(workflow.dag)
    record(plan.resolved, Path(plan.results))
    write_start(workflow, log, Path(plan.results))


def remove_unneeded(dag: Any) -> None:
    """Remove the temporary files and folders whose last reader is done. Snakemake removes them when that job has ended.
    A run that is killed in between leaves them, and the next one does not look for them."""
    temporary = [(job, file) for job in dag.jobs for file in job.temp_output]
    for job, file in temporary:
        # A target other than `all` may lack jobs that read a file: without any reader, it stays.
        readers = [reader for reader, files in dag.depending[job].items() if file in files]
        is_read = readers and not any(map(dag.needrun, [job, *readers]))
        if is_read and Path(file).exists() and not dag.is_needed_tempfile(job, file):
            report(f"Removing {file}, which a killed run left.")
            remove(Path(file))


def outputs_of(workflow: Any) -> list[str]:
    """The outputs of all rules, as Snakemake writes them, with wildcards in braces."""
    return [str(output) for rule in workflow.rules for output in rule.output]


def has_page(workflow: Any) -> bool:
    """Whether the run has made the report, with all that it shows, on this machine."""
    storage = workflow.storage_settings
    is_here = storage.default_storage_provider is None or storage.keep_storage_local
    return is_here and any(job.rule.name == "write_page" for job in workflow.dag.jobs)


def check_times(workflow: Any) -> None:
    """Wait until no input of a job is from the future; raise `InputError` if that would take long. Snakemake fails a
    job whose output is older than an input, and removes that output, though it is whole."""
    dag = workflow.dag
    inputs = {Path(file) for job in dag.jobs if dag.needrun(job) for file in job.input}
    timed = {path: path / MARK if (path / MARK).exists() else path for path in inputs if path.exists()}
    times = {path: mark.stat().st_mtime for path, mark in timed.items()}
    newest = max(times, key=lambda path: times[path], default=None)
    if newest is None or (ahead := times[newest] - time.time()) <= 0:
        return
    if ahead > LONGEST_WAIT:
        then, now = (f"{datetime.fromtimestamp(at).astimezone():%F %T%z}" for at in (times[newest], time.time()))
        raise InputError(
            f"{newest} is of {then}, and the clock of this machine says {now}: a step that reads it would end with an "
            "error and lose what it made. Set the clock, or give the files that are from the future the present time: "
            f"find {newest.parent} -newermt now -exec touch {{}} +"
        )
    time.sleep(ahead)
