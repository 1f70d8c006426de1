"""Where jobs have a limited time, a training that stops for it goes on by itself; elsewhere it does not stop."""

import os
import subprocess

import pytest
from tests.workflow.conftest import SMALL, Run

from cocite.core.atomic import read_json

pytestmark = pytest.mark.long

STEPS = 3
TRAINED = "encoder/cocite/seed-1"


@pytest.fixture(scope="module")
def prepared(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of the finished run, with a model whose training is yet to be done: it takes three steps."""
    run = finished.copy(tmp_path_factory.mktemp("stopped") / "run")
    trained = read_json(run.folder / "results" / TRAINED / "settings.json")["triplets"]["training"]
    models = {"cocite": {**SMALL["models"]["cocite"], "epochs": 1, "batch_size": -(-trained // STEPS)}}
    run.configure({**SMALL, "models": models}, "three-steps.yaml")
    return run


def train(run: Run, **environment: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Train the model in jobs of no time at all, in this environment; also return the log of the last one."""
    log = run.folder / "logs" / TRAINED / "train.log"
    log.unlink(missing_ok=True)
    command = run.command(
        *("--retries", "5", "--forcerun", "train_encoder", "--set-resources", "train_encoder:runtime=0"),
        *("--allowed-rules", "train_encoder", "--", f"results/{TRAINED}/model"),
        config=run.folder / "three-steps.yaml",
    )
    ended = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return ended, log.read_text()


def test_in_jobs_of_slurm_it_is_retried_until_it_is_done(prepared):
    ended, log = train(prepared, SLURM_JOB_ID="1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr.count("Trying to restart job") == STEPS - 1
    assert "Going on after step 2 of 3." in log


def test_without_a_cluster_it_runs_to_its_end(prepared):
    ended, log = train(prepared)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Trying to restart job" not in ended.stderr
    assert "Going on" not in log
