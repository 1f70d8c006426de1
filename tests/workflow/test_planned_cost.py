"""`cocite plan` compared with dry runs of Snakemake, and with what a finished run took."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.workflow.conftest import SMALL, Run, planned
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.progress import last_usage
from cocite.tools.run_cost import measured_jobs

TOGETHER = "together"


def cost(*arguments: str) -> dict[str, dict]:
    """The rows that the command prints, by stage."""
    answer = CliRunner().invoke(app, ["plan", "--format", "json", *arguments], catch_exceptions=False)
    return {row["stage"]: row for row in json.loads(answer.stdout)}


def took(run: Run) -> dict[str, float]:
    """Hours of processors of each stage, by the logs of a run."""
    hours = Counter[str]()
    for log in (run.folder / "logs").rglob("*.log"):
        if usage := last_usage(log):
            hours[log.relative_to(run.folder / "logs").parts[0]] += usage.cpu_seconds / 3600
    return hours


@pytest.mark.long
@pytest.mark.end_to_end
def test_a_run_like_a_finished_one_costs_what_that_took(finished, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = str(Run(folder=tmp_path).configure(SMALL))
    like = ["--configfile", config, "--like", str(finished.folder / "results")]
    rows, one, many = (cost(*like, "--cores", cores) for cores in ("2", "1", "64"))
    assert rows[TOGETHER]["jobs"] == len(plan.jobs)
    for stage, hours in took(finished).items():
        assert rows[stage]["processor_hours"] == pytest.approx(hours, rel=0.3, abs=0.002)
    assert one[TOGETHER]["wall_hours"] >= rows[TOGETHER]["processor_hours"]
    assert one[TOGETHER]["wall_hours"] > rows[TOGETHER]["wall_hours"] >= many[TOGETHER]["wall_hours"] > 0
    made = sum(file.stat().st_size for file in (finished.folder / "results").rglob("*") if file.is_file())
    assert rows[TOGETHER]["disk_gb"] == pytest.approx(made / 1e9, rel=0.3)
    assert rows[TOGETHER]["disk_at_peak_gb"] >= rows[TOGETHER]["disk_gb"]
    assert not list((tmp_path / "results").glob("*"))  # it writes nothing


@pytest.mark.end_to_end
def test_jobs_request_the_memory_and_time_that_a_plan_says(finished, monkeypatch):
    monkeypatch.chdir(finished.folder)
    asked = {each.outputs[0]: each.resources for each in planned(finished, options=["--forceall"]).jobs}
    jobs = list(measured_jobs(Path("config.yaml").absolute(), finished.folder))
    compared = 0
    for job in jobs:
        resources = asked[next(iter(job.makes))]
        if job.rule.startswith("score_") or job.memory_mb is None:
            continue  # a plan does not read what a dry run finds in a file
        if resources["mem_mb"].isdigit() and resources["runtime"].isdigit():  # what it reads was not deleted
            compared += 1
            assert math.ceil(job.memory_mb) == pytest.approx(int(resources["mem_mb"]), abs=1), job.key
            assert math.ceil(job.minutes) == pytest.approx(int(resources["runtime"]), abs=1), job.key
    assert compared > 0.5 * len(jobs)


@pytest.mark.end_to_end
def test_only_what_is_left_of_a_run_is_counted(finished, tmp_path, monkeypatch):
    run = finished.copy(tmp_path / "copy")
    monkeypatch.chdir(run.folder)
    answer = CliRunner().invoke(app, ["plan"], catch_exceptions=False)
    assert "nothing to do" in answer.stdout
    shutil.rmtree(run.folder / "results/report")
    left = planned(run)
    assert cost()[TOGETHER]["jobs"] == len(left.jobs)


def test_what_is_wrong_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = str(Run(folder=tmp_path).configure(SMALL))
    for arguments in (["--profile", "none"], ["--like", "none"], ["--configfile", "none.yaml"]):
        answer = CliRunner().invoke(app, ["plan", "--configfile", config, *arguments])
        assert type(answer.exception).__name__ == "InputError"
        assert "none" in str(answer.exception)
