"""The Slurm of the tests leaves no process behind, also where the process that started it is killed."""

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests.slurm.cluster import DAEMONS, may_have_a_space, wait_for, why_not
from tests.slurm.conftest import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.long]

HELD = """
import sys, time
from pathlib import Path
from tests.slurm.cluster import Cluster

with Cluster(Path(sys.argv[1])) as cluster:
    cluster.run("sbatch", "--output", "/dev/null", "--wrap", "sleep 60")
    time.sleep(60)
"""


def processes_of(folder: str) -> set[str]:
    """The programs that run with the Slurm of this folder."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"SLURM_CONF={folder}/slurm.conf".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add((process / "comm").read_text().strip())
    return found


def test_the_kernel_ends_the_daemons_and_jobs_of_a_process_that_is_killed():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        with subprocess.Popen([sys.executable, "-c", HELD, folder], cwd=ROOT) as held:
            wait_for(lambda: {*DAEMONS, "sleep"} <= processes_of(folder), "a job", 60)
            held.kill()
        # A job is ended with its node, which has to be a space of processes for this.
        outliving = set() if may_have_a_space() else {"slurmstepd", "slurm_script", "sleep"}
        wait_for(lambda: processes_of(folder) <= outliving, "the end of all", 10)
