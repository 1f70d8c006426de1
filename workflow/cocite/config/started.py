"""What a run writes down when it starts: its call, and all its jobs with their files; and how to make files again."""

import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from cocite.core.atomic import read_json, write_text
from cocite.core.errors import InputError

FILE = Path(".state/run.json")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of a run."""

    number: int  # Snakemake's id of it, which its log names
    rule: str
    stage: str
    of: str  # the values of its wildcards, such as `cocite 1`
    is_needed: bool  # whether the run has to do it; otherwise it was done before
    after: list[int]  # the jobs that it waits for
    threads: int
    outputs: list[str]  # the files and folders that stay; paths of a job are as seen from the run's working folder
    log: str | None
    benchmark: str | None


@dataclass(frozen=True, kw_only=True)
class Start:
    """A run as it was started."""

    time: float  # seconds since 1970
    directory: str  # its working folder
    results: str  # the folder of its results, as its configuration names it
    snakefile: str
    configfiles: list[str]
    log: str | None  # Snakemake's own log
    cores: int | None  # cores of this machine that it may use; none if a cluster runs the jobs
    host: str
    process: int
    process_started: float | None  # seconds since 1970: a later process may have the same number
    jobs: list[Job]  # its jobs, in the order of the stages

    def path(self, name: str) -> Path:
        """The path of a file of a job."""
        return Path(self.directory, name)


def write_start(workflow: Any, log: list[str], results: Path) -> None:
    """Write down a run that is about to start, as Snakemake's `workflow` describes it."""
    start = Start(
        time=time.time(),
        directory=str(Path.cwd()),
        results=str(results),
        snakefile=str(workflow.main_snakefile),
        configfiles=[str(path) for path in workflow.configfiles],
        log=str(Path(log[0]).absolute()) if log else None,
        cores=workflow.resource_settings.cores if workflow.local_exec else None,
        host=socket.gethostname(),
        process=os.getpid(),
        process_started=_start_of(os.getpid()),
        jobs=list(_jobs(workflow)),
    )
    write_text(results / FILE, json.dumps(asdict(start)) + "\n")


def read_start(results: Path) -> Start | None:
    """The run that was started last in a folder of results; none if there was none, or if it was in another folder.
    Raises `InputError` if the record is broken."""
    if not (results / FILE).is_file():
        return None
    start = record_of(results)
    return start if start.path(start.results).resolve() == results.resolve() else None


def record_of(results: Path) -> Start:
    """The run that a folder, or a copy of it, has recorded. Raises `InputError` if the record is missing or broken."""
    path = results / FILE
    stated = read_json(path)
    try:
        return Start(**{**stated, "jobs": [Job(**job) for job in stated["jobs"]]})
    except (TypeError, KeyError):
        raise InputError(f"{path}: is no record of a run; delete it, and the next run writes it again.") from None


def is_copy(results: Path) -> bool:
    """Whether the run that is recorded in a folder of results was in another folder."""
    return (results / FILE).is_file() and read_start(results) is None


def is_alive(start: Start) -> bool | None:
    """Whether the run is still active; none if it was started on a machine that cannot be asked from here."""
    if start.host != socket.gethostname():
        return None
    then, now = start.process_started, _start_of(start.process)
    # Linux counts from its boot, whose time moves when the clock is set.
    return isinstance(then, float) and now is not None and abs(now - then) < 60


def _jobs(workflow: Any) -> Iterator[Job]:
    dag, order = workflow.dag, {rule.name: place for place, rule in enumerate(workflow.rules)}
    for job in sorted(dag.jobs, key=lambda job: (order[job.rule.name], dag.jobid(job))):
        if not job.output:
            continue
        # A job's own threads are known once its inputs are there; its rule's are, unless a function gives them.
        threads = getattr(job.rule.resources.get("_cores"), "raw", None)
        yield Job(
            number=dag.jobid(job),
            rule=job.rule.name,
            stage=stage_of(job),
            of=" ".join(map(str, job.wildcards_dict.values())),
            is_needed=dag.needrun(job),
            after=[dag.jobid(earlier) for earlier in dag.dependencies[job] if dag.needrun(earlier)],
            threads=threads if isinstance(threads, int) else 1,
            outputs=[str(file) for file in job.output if file not in job.temp_output],
            log=next(map(str, job.log), None),
            benchmark=str(job.benchmark) if job.benchmark else None,
        )


def stage_of(job: Any) -> str:
    """The stage of a job of Snakemake's: its rule is in a file of this name, or in the folder of a stage with many."""
    path = Path(str(job.rule.snakefile))
    return path.stem if path.parent.name == "rules" else path.parent.name


def _start_of(process: int) -> float | None:
    """When a process started, seconds since 1970; none if it has ended."""
    try:
        running = psutil.Process(process)
        return None if running.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) else running.create_time()
    except psutil.Error:
        return None


def remaking_command(results: Path, targets: Sequence[str], configfile: Path | None = None) -> str:
    """The call of Snakemake that makes these targets, shell text relative to `results`, with the given configuration or
    that of the last run here. Raises `InputError` if that run was in another folder, of which this one is a copy."""
    start = read_start(results)
    folder, named, before = Path.cwd(), str(results), ""
    configfiles = [str(configfile)] if configfile else []
    if configfile is None and start is not None:
        folder, named, configfiles = Path(start.directory), str(Path(start.results)), start.configfiles
        before = "" if folder == Path.cwd() else f"cd {shlex.quote(start.directory)} && "
    elif configfile is None and is_copy(results):
        raise InputError(
            f"{results} is a copy, and the run that it was copied from makes its files elsewhere; name a configuration "
            f"with `pathvars: {{results: {results}}}` by --configfile."
        )
    words = [program("snakemake", folder), "--cores 2"]
    words += [f"{shlex.quote(named)}/{target}" for target in targets]
    if any(folder / file != folder / "config.yaml" for file in configfiles):
        words += ["--configfile", shlex.join(configfiles), "--replace-workflow-config"]
    if start is not None and Path(start.snakefile) != folder / "Snakefile":
        words += ["--snakefile", shlex.quote(start.snakefile)]
    return before + " ".join(words)


def program(name: str, folder: Path) -> str:
    """How a program of this installation is called from a folder."""
    path = Path(sys.executable).parent / name
    return shlex.quote(str(path.relative_to(folder) if path.is_relative_to(folder) else path))
