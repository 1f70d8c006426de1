"""A run waits for its jobs also where Slurm does not say for a while how they are."""

import subprocess
import sys

import pytest
from tests.slurm.cluster import PARTITION, wait_for
from tests.slurm.conftest import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.long]

WORKFLOW = """
rule wait:
    output: "waited"
    shell: "touch started; while [ -e unanswered ]; do sleep 1; done; touch {output}"
"""
# In the place of a Slurm with accounting, whose database can be away.
SACCT = """#!/bin/sh
test -e {folder}/unanswered && exit 1
exec squeue --states=all --noheader '--format=%i|%T'
"""


@pytest.fixture
def sacct(cluster, tmp_path):
    """A `sacct` that fails while there is a file `unanswered`."""
    program = cluster.folder / "bin/sacct"
    program.write_text(SACCT.format(folder=tmp_path))
    program.chmod(0o755)
    yield
    program.unlink()


@pytest.mark.usefixtures("sacct")
def test_jobs_are_not_forgotten_where_accounting_fails_for_a_while(cluster, tmp_path):
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    command = [sys.executable, "-m", "tests.slurm.impatient", "--profile", "slurm", "--directory", str(tmp_path)]
    command += ["--snakefile", str(tmp_path / "Snakefile"), "--slurm-status-command", "sacct"]
    command += ["--default-resources", f"slurm_partition={PARTITION}", "mem_mb=1000", "runtime=10"]
    (tmp_path / "unanswered").touch()
    with subprocess.Popen(command, cwd=ROOT, env=cluster.environment) as run:
        try:
            wait_for((tmp_path / "started").exists, "the job", 120)
            with pytest.raises(subprocess.TimeoutExpired):
                run.wait(15)
            (tmp_path / "unanswered").unlink()
            assert run.wait(60) == 0
        finally:
            run.kill()
    assert (tmp_path / "waited").exists()
