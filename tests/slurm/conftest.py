"""A run of the workflow on a Slurm of its own that goes as badly as a run can, beside one that goes well.

On Slurm a job is cancelled, the node is lost, an urgent job pushes another off the node, and the training takes too
much memory and then stands still until its time is up. It goes to its end all the same, through the profile that is
delivered.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from tests.slurm.cluster import ENDED_WITH_US, PARTITION, WITH_GPUS, Cluster, why_not
from tests.slurm.mishaps import cancel, hold_up_training, jobs, lose_the_node, of_rule, preempt
from tests.workflow.conftest import ROOT, SMALL

CONFIGURATION: dict[str, Any] = {
    **{key: SMALL[key] for key in ("run_seed", "release", "precision", "queries", "embeddings", "encoders")},
    "gpu": True,
    "corpus": {"source": "demo", "buckets": 1, "demo": {"papers": 700, "topics": 8, "shards": 1}},
    "graphs": {"cocitation": {"signal": "cocitation"}},
    "triplets": {"near": SMALL["triplets"]["cocite"]},
    # Too little for a training, which ends at once; twice as much, at the second attempt, is enough.
    "models": {
        "near": {
            "triplets": "near",
            "encoder": "small",
            "lr": 1.0e-3,
            "epochs": 32,
            "validations": 16,
            "memory_mb": 430,
        }
    },
    "benchmarks": {"holdout": {"kind": "holdout"}},
}
TRAINED = "encoder/near/seed-1"
# What a Slurm without accounting needs, and what makes a run quicker than is good for a real one.
ON_THIS_SLURM = [
    *("--slurm-status-command", "squeue", "--set-threads", "search_neighbours=2"),
    *("--slurm-init-seconds-before-status-checks", "1", "--max-status-checks-per-second", "10", "--jobs", "3"),
]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run that has ended."""

    folder: Path
    status: int
    log: str
    jobs: list[dict[str, str]] = field(default_factory=list)
    """What Slurm knows of its jobs, in the order of their submission."""
    within_training: dict[str, str] = field(default_factory=dict)
    """The environment of the training."""

    def attempts(self, rule: str) -> list[dict[str, str]]:
        return of_rule(rule, self.jobs)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Slurm of one node, as long as there are tests; skips where none can be started."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    # The path of a socket has an end after 107 characters, which the folders of pytest can come near.
    with (
        tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder,
        Cluster(Path(folder)) as up,
    ):
        yield up


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """The run on this machine, which has its turn while the other waits for Slurm."""
    folder = configured(tmp_path_factory.mktemp("calm"))
    run = start([*command(folder), "--cores", "2", "--retries", "1"], folder)
    yield folder, run
    run.terminate()
    run.wait()


@pytest.fixture(scope="session")
def rough(cluster: Cluster, beside: object, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The run through the profile on which everything befalls its jobs."""
    folder, profile = configured(tmp_path_factory.mktemp("rough")), filled_in(tmp_path_factory.mktemp("slurm"))
    through_slurm = [*command(folder, "tests.slurm.impatient"), "--profile", str(profile), *ON_THIS_SLURM]
    run = start(through_slurm, folder, cluster.environment)
    try:
        cancel(cluster, "count_pairs")
        lose_the_node(cluster, "train_graph_embedding")
        preempt(cluster, "search_neighbours")
        within_training = hold_up_training(cluster, folder, folder / "results/.state" / TRAINED)
        ended = ending(folder, run)
    finally:
        run.kill()
        run.wait()
    return replace(ended, jobs=jobs(cluster), within_training=within_training)


@pytest.fixture(scope="session")
def calm(beside: tuple[Path, subprocess.Popen[bytes]]) -> Ended:
    """The run on this machine, at its end."""
    ended = ending(*beside)
    assert ended.status == 0, ended.log[-5000:]
    return ended


def start(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a run; what it says goes into its folder."""
    with (folder / "snakemake.log").open("w") as log:
        return subprocess.Popen([*ENDED_WITH_US, *command], cwd=ROOT, env=environment, stdout=log, stderr=log)


def ending(folder: Path, run: subprocess.Popen[bytes]) -> Ended:
    """Wait for the end of a run."""
    status = run.wait(3600)
    return Ended(folder=folder, status=status, log=(folder / "snakemake.log").read_text(errors="replace"))


def tables(folder: Path) -> set[str]:
    """The tables that a run has made, but for what each rule's jobs took, which differs from run to run."""
    results = folder / "results"
    return {str(path.relative_to(results)) for path in results.rglob("*.parquet")} - {"report/costs.parquet"}


def differing(folder: Path, other: Path) -> list[str]:
    """The tables of a run that are not the same in another run, or only in one of them."""
    return [
        name
        for name in sorted(tables(folder) | tables(other))
        if name not in tables(folder) & tables(other)
        or not pq.read_table(folder / "results" / name).equals(pq.read_table(other / "results" / name))
    ]


def filled_in(folder: Path) -> Path:
    """The delivered profile with the names of this cluster, and the comment signs before its GPUs taken away.

    Embeddings ask for their GPUs as clusters want it that take `gres` only.
    """
    delivered = (ROOT / "profiles/slurm/config.yaml").read_text()
    profile = yaml.safe_load(re.sub(r"(?m)^# (set-resources:|  \w+: \{.*\})$", r"\1", delivered))
    assert list(profile["set-resources"]) == ["train_encoder", "embed_own_documents", "embed_documents", "embed_papers"]
    profile["default-resources"]["slurm_partition"] = PARTITION
    del profile["default-resources"]["slurm_account"]  # of which a Slurm without accounting knows nothing
    for resources in profile["set-resources"].values():
        resources["slurm_partition"] = WITH_GPUS
    profile["set-resources"]["embed_own_documents"] |= {"gpu": 0, "gres": "gpu:1"}
    (folder / "config.yaml").write_text(yaml.safe_dump(profile))
    return folder


def configured(folder: Path, configuration: dict[str, Any] = CONFIGURATION) -> Path:
    (folder / "config.yaml").write_text(yaml.safe_dump(configuration))
    return folder


def command(folder: Path, program: str = "snakemake") -> list[str]:
    """Snakemake from the project's root, as in the manual; what it makes goes into the folder."""
    command = [sys.executable, "-m", program, "all", "--directory", str(folder)]
    return [*command, "--configfile", str(folder / "config.yaml"), "--replace-workflow-config"]
