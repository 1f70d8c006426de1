"""What is looked at before the first job of a run: temporary files of a killed run, and files from the future."""

import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from cocite.core.errors import InputError
from cocite.core.progress import report

LONGEST_WAIT = 60.0
"""Seconds that a run waits for the time of its newest file to come: clocks of network disks differ by seconds."""
MARK = ".snakemake_timestamp"
"""The file in a folder that a rule made, whose time Snakemake takes for that of the folder."""


def remove_unneeded(workflow: Any) -> None:
    """Remove the temporary files and folders whose last reader is done.

    Snakemake removes them when that job has ended. A run that is killed in between leaves them, and the next one does
    not look for them.
    """
    if workflow.storage_settings.notemp:
        return
    for path in list(_unneeded(workflow.dag)):
        report(f"Removing {path}, which a killed run left.")
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _unneeded(dag: Any) -> Iterator[Path]:
    for job in dag.jobs:
        for file in job.temp_output:
            # A target other than `all` may lack jobs that read a file: without any reader, it stays.
            readers = [reader for reader, files in dag.depending[job].items() if file in files]
            is_read = bool(readers) and not any(map(dag.needrun, [job, *readers]))
            if is_read and Path(file).exists() and not dag.is_needed_tempfile(job, file):
                yield Path(file)


def check_times(workflow: Any) -> None:
    """Wait until no input of a job is from the future; raise `InputError` where that would take long.

    Snakemake fails a job whose output is older than an input, and removes that output, though it is whole.
    """
    dag = workflow.dag
    inputs = {Path(file) for job in dag.jobs if dag.needrun(job) for file in job.input}
    times = {path: _time_of(path) for path in inputs if path.exists()}
    newest = max(times, key=lambda path: times[path], default=None)
    if newest is None or times[newest] <= time.time():
        return
    ahead = times[newest] - time.time()
    if ahead > LONGEST_WAIT:
        raise InputError(
            f"{newest} is of {_said(times[newest])}, and the clock of this machine says {_said(time.time())}: a step "
            "that reads it would end with an error and lose what it made. Set the clock, or give the files that are "
            f"from the future the present time: find {newest.parent} -newermt now -exec touch {{}} +"
        )
    time.sleep(max(0.0, ahead))


def _time_of(path: Path) -> float:
    mark = path / MARK
    return (mark if mark.exists() else path).stat().st_mtime


def _said(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
