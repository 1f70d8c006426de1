"""What `cocite doctor` says of a cluster and of its profile."""

import math

import pytest
import yaml

from cocite.tools import cluster

PROFILE = cluster.RULES.parent / "profiles/slurm"
WITH_ACCOUNTS = "echo 'AccountingStorageType   = accounting_storage/slurmdbd'; echo 'MinJobAge = 300 sec'"


@pytest.fixture
def profile(tmp_path):
    """A folder with a profile for the partition `small`."""
    resources = {"slurm_partition": "small", "slurm_account": "ours"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"default-resources": resources}))
    return tmp_path


def programs(folder, monkeypatch, **scripts):
    """Make these scripts, and nothing else, what is on the PATH."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_delivered_profile_is_incomplete_until_the_site_is_set():
    findings = list(cluster.site(PROFILE, ["small"]))
    assert [finding.verdict for finding in findings] == ["failed", "failed"]
    assert all("is still your-" in finding.what for finding in findings)


@pytest.mark.parametrize(
    ("content", "verdicts"),
    [
        ("executor: slurm\n", ["warning"]),
        ("default-resources:\nset-resources:\n", ["warning"]),
        ("default-resources: [slurm_partition=small, slurm_account=ours]\n", ["ok", "ok"]),
        ("default-resources: slurm_partition=small\n", ["ok"]),
        ("default-resources: 5\n", ["failed"]),
        ("set-threads: 5\n", ["failed"]),
        (
            "default-resources: {slurm_partition: small}\nset-resources: {train: {slurm_partition: gone}}\n",
            ["failed", "ok"],
        ),
        ("default-resources: {\n", ["failed"]),
        ("- a list\n", ["failed"]),
    ],
)
def test_a_profile_in_any_form_is_read(tmp_path, content, verdicts):
    (tmp_path / "config.yaml").write_text(content)
    assert [finding.verdict for finding in cluster.site(tmp_path, ["small"])] == verdicts


@pytest.mark.parametrize(
    ("answer", "verdicts"),
    [
        (WITH_ACCOUNTS, ["ok"]),
        ("echo 'AccountingStorageType   = (null)'; echo 'MinJobAge = 300 sec'", ["warning"]),
        ("echo 'AccountingStorageType = accounting_storage/none'; echo 'MinJobAge = 5 sec'", ["warning", "failed"]),
        ("exit 1", ["warning"]),
    ],
)
def test_a_slurm_that_forgets_jobs_before_they_are_checked_is_reported(tmp_path, monkeypatch, answer, verdicts):
    programs(tmp_path, monkeypatch, scontrol=answer)
    assert [finding.verdict for finding in cluster.memory_of_jobs()] == verdicts


def test_a_partition_that_slurm_does_not_have_is_reported_with_those_that_it_has(profile, monkeypatch):
    programs(profile, monkeypatch, sinfo="echo huge; echo large", scontrol=WITH_ACCOUNTS)
    answers = list(cluster.examine_cluster(profile))
    assert [finding.verdict for finding in answers] == ["ok", "ok", "failed", "ok"]
    assert "use one of huge, large" in answers[2].to_do


def test_no_slurm_is_not_reported_as_a_slurm_that_does_not_answer(profile, monkeypatch):
    programs(profile, monkeypatch)
    assert "not on the PATH" in next(cluster.examine_cluster(profile)).what
    programs(profile, monkeypatch, sinfo="echo unable to contact the controller >&2; exit 1")
    assert "unable to contact the controller" in next(cluster.examine_cluster(profile)).what


@pytest.mark.parametrize(
    ("time", "minutes"),
    [
        *(("30:00", 30), ("4:00:00", 240), ("1-00:00:00", 1440), ("2-12", 3600), ("1-06:30", 1830), ("45", 0.75)),
        *(("infinite", math.inf), ("n/a", math.inf)),
    ],
)
def test_times_of_slurm_are_read_in_all_their_forms(time, minutes):
    assert cluster.in_minutes(time) == minutes


NODES = "small|4:00:00|4|8000\nsmall|4:00:00|8+|16000+\nlarge|infinite|64|512000\n"


def test_a_partition_grants_what_its_largest_node_has():
    assert cluster.read_limits(NODES) == {
        "small": {"minutes": 240, "memory_mb": 16000, "threads": 8},
        "large": {"minutes": math.inf, "memory_mb": 512000, "threads": 64},
    }


SMALL, LARGE = {"slurm_partition": "small"}, {"slurm_partition": "large"}
UP_TO_A_DAY = "warning: partition small grants 240 minutes, and jobs with a large input ask for up to a day"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            {"default-resources": SMALL, "set-threads": {"count_pairs": 16}},
            [
                "failed: partition small grants 240 minutes, and train_encoder asks for 1440",
                "failed: partition small grants 8 threads, and count_pairs asks for 16",
            ],
        ),
        (
            {"default-resources": "slurm_partition=large", "set-threads": ["count_pairs=65"]},
            ["failed: partition large grants 64 threads, and count_pairs asks for 65"],
        ),
        (
            {"default-resources": ["slurm_partition=small"], "set-resources": {"train_encoder": {"runtime": 200}}},
            [UP_TO_A_DAY],
        ),
        (
            {"default-resources": LARGE, "set-resources": {"ingest": {"mem_mb": 600000}}},
            ["failed: partition large grants 512000 MB of memory, and ingest asks for 600000"],
        ),
        (
            {"default-resources": SMALL, "set-resources": {"train_encoder": ["slurm_partition=large"]}},
            ["ok: partition large grants what its rules ask for at least", UP_TO_A_DAY],
        ),
        ({"default-resources": {"slurm_partition": "unknown"}}, []),
    ],
)
def test_partitions_are_compared_with_what_rules_ask_for_there(complete, written, expected):
    found = cluster.compare(cluster.read_limits(NODES), cluster.least_requests(complete), written)
    assert sorted(f"{finding.verdict}: {finding.what}" for finding in found) == expected


def test_limits_are_asked_of_slurm_for_the_profile(complete, profile, monkeypatch):
    answer = 'case "$*" in *--Node*) echo "small|1:00:00|2|4000";; *) echo small;; esac'
    programs(profile, monkeypatch, sinfo=answer, scontrol=WITH_ACCOUNTS)
    failed = [finding.what for finding in cluster.examine_cluster(profile, complete) if finding.verdict == "failed"]
    assert failed == [
        "partition small grants 60 minutes, and train_encoder asks for 1440",
        "partition small grants 4000 MB of memory, and train_encoder asks for 9000",
        "partition small grants 2 threads, and train_encoder asks for 6",
    ]
