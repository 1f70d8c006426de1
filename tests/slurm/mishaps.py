"""What befalls the jobs of a run on Slurm, and what Slurm knows of them."""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

from tests.slurm.cluster import URGENT, Cluster, wait_for


def jobs(cluster: Cluster) -> list[dict[str, str]]:
    """The jobs that Slurm has seen, in the order of their submission, each with the fields that `scontrol` shows."""
    lines = cluster.run("scontrol", "show", "job", "--oneliner").splitlines()
    found = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in lines if line.startswith("JobId=")]
    return sorted(found, key=lambda job: int(job["JobId"]))


def of_rule(rule: str, jobs: list[dict[str, str]]) -> list[dict[str, str]]:
    """The jobs of a rule."""
    return [job for job in jobs if re.match(rf"rule_{rule}(_wildcards|$)", job.get("Comment", ""))]


def running(cluster: Cluster, rule: str) -> list[str]:
    """The numbers of the jobs of a rule that are running."""
    return [job["JobId"] for job in of_rule(rule, jobs(cluster)) if job["JobState"] == "RUNNING"]


def wait_for_a_job(cluster: Cluster, rule: str) -> str:
    """Wait until a job of this rule runs; return its number."""
    wait_for(lambda: bool(running(cluster, rule)), f"a job of {rule}", 600)
    return running(cluster, rule)[0]


def cancel(cluster: Cluster, rule: str) -> None:
    """Cancel a job of this rule while it runs."""
    cluster.run("scancel", wait_for_a_job(cluster, rule))


def lose_the_node(cluster: Cluster, rule: str) -> None:
    """Kill the node during a job of this rule, until Slurm has taken the job for lost; start the node again."""
    wait_for_a_job(cluster, rule)
    cluster.kill_node()
    wait_for(lambda: not running(cluster, rule), "the node to be missed", 90)
    cluster.start_node()


def preempt(cluster: Cluster, rule: str) -> None:
    """Submit a job that is more urgent, and needs the whole node, during a job of this rule; return when it is done."""
    wait_for_a_job(cluster, rule)
    urgent = ["--partition", URGENT, "--exclusive", "--output", "/dev/null", "--wrap", "true"]
    cluster.run("sbatch", "--wait", *urgent)


def hold_up_training(cluster: Cluster, folder: Path, state: Path) -> dict[str, str]:
    """Stop the training after its first checkpoint, and give its job a minute from its start.

    When that is up, Slurm lets the training go on, to end it. Returns the environment that the training runs in.
    """
    wait_for((state / "checkpoint.safetensors").exists, "a checkpoint", 600)
    environment = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            arguments = (process / "cmdline").read_bytes().split(b"\0")
            if (process / "cwd").resolve() == folder and arguments[2:4] == [b"encoder", b"train"]:
                os.kill(int(process.name), signal.SIGSTOP)
                variables = (process / "environ").read_text().split("\0")
                environment = dict(variable.split("=", 1) for variable in variables if "=" in variable)
    for job in running(cluster, "train_encoder"):
        cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=1")
    return environment
