"""What befalls the jobs of a run on Slurm, and what Slurm knows of them."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def megabytes(job: dict[str, str]) -> int:
    """The memory that a job was given."""
    number, unit = job["MinMemoryNode"][:-1], job["MinMemoryNode"][-1]
    return int(float(number) * {"M": 1, "G": 1024}[unit])


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
    """Stop the training of an encoder after its first checkpoint until its time is up; return its environment."""
    wait_for((state / "checkpoint.safetensors").exists, "a checkpoint", 600)
    return hold_up(cluster, folder, "train_encoder", "encoder", "train")


def hold_up(cluster: Cluster, folder: Path, rule: str, *command: str) -> dict[str, str]:
    """Stop the process of a rule's job that runs a command of ours, and give the job a minute from its start.

    When that is up, Slurm lets the process go on, to end it. Returns the environment that it runs in.
    """
    (number,), environment = running(cluster, rule), {}
    wait_for(lambda: bool(of_command(folder, *command)), f"the process of {rule}", 60)
    for process in of_command(folder, *command):
        os.kill(int(process.name), signal.SIGSTOP)
        variables = (process / "environ").read_text().split("\0")
        environment = dict(variable.split("=", 1) for variable in variables if "=" in variable)
    cluster.run("scontrol", "update", f"JobId={number}", "TimeLimit=1")
    return environment


def of_command(folder: Path, *command: str) -> list[Path]:
    """The processes, by their folders below /proc, that run a command of ours in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode().split("\0")[2:]
            if (process / "cwd").resolve() == folder and words[: len(command)] == list(command):
                found.append(process)
    return found


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system in memory for a folder, which `fill` fills."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path, run: subprocess.Popen[bytes]) -> None:
    """Leave no room in the file system of a folder until the run has ended; then give it back what there was."""
    size = os.statvfs(folder)
    while run.poll() is None:
        now = os.statvfs(folder)
        resize(folder, (now.f_blocks - now.f_bfree) * now.f_frsize)
        time.sleep(0.5)
    assert resize(folder, size.f_blocks * size.f_frsize)


def resize(folder: Path, size: int) -> bool:
    """Give a file system in memory so many bytes; whether it did not have more in it."""
    command = ["mount", "--options", f"remount,size={size}", folder]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
