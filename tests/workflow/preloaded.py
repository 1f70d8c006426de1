"""Snakemake for many starts: one process imports it, and forks for each start; `python -m tests.workflow.preloaded`.

Importing takes two thirds of the time of a dry run. A start is a process all the same, with arguments, a working folder
and an environment of its own. Requests are lines of JSON on standard input; the answer to each is its exit status.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

USED = (
    *("snakemake.cli", "snakemake.report.html_reporter", "jinja2", "requests"),
    *("cocite.plan.plan", "cocite.tools.run_progress"),
)
"""What Snakemake and the Snakefile import when they run."""


def snakemake(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run Snakemake with these arguments, in the folder and the environment that this process has now."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/stdout", f"{folder}/stderr"]
        request = {"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ), "files": files}
        process = _process()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            status = int(process.stdout.readline())
        except BaseException:  # a test whose time is up ends the start that it waits for
            os.killpg(process.pid, signal.SIGKILL)
            _process.cache_clear()
            raise
        stdout, stderr = (Path(file).read_text(encoding="utf-8") for file in files)
    return subprocess.CompletedProcess(arguments, status, stdout, stderr)


@cache
def _process() -> "subprocess.Popen[str]":
    """The process that imports Snakemake; it ends with this one, which closes its input."""
    command = [sys.executable, "-m", __name__]
    root, pipe = Path(__file__).parents[2], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(root / "workflow")}  # in place of what a test may set
    return subprocess.Popen(
        command, cwd=root, env=environment, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    )


def _serve() -> None:
    for name in USED:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become_snakemake(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


def _become_snakemake(arguments: list[str], folder: str, environment: dict[str, str], files: list[str]) -> Any:
    for descriptor, file in enumerate((os.devnull, *files)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["snakemake", *arguments]
    import_module("snakemake.cli").main(arguments)  # exits


if __name__ == "__main__":
    _serve()
