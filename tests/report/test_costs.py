"""The report states what each rule took."""

import os

import polars as pl
import pytest

from cocite.core.progress import Usage
from cocite.core.tables.files import read_table
from cocite.report.summary import costs_of_rules, read_jobs, time_at_work, write_costs

COLUMNS = ["rule", "jobs", "seconds", "longest_seconds", "cpu_seconds", "peak_mb"]


def note(path, *took):
    """The log of a job that was run once for each (seconds, seconds of the processors, MB)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (Usage(seconds=seconds, cpu_seconds=cpu, peak_mb=peak) for seconds, cpu, peak in took)
    path.write_text("".join(f"at work\n{line}\n" for line in lines))


def costs(folder, **logs):
    """The rows of the table of rules with these logs, by the rule."""
    write_costs(read_jobs({rule: f"{folder}/l/{log}" for rule, log in logs.items()}, None), folder / "costs.parquet")
    return {row["rule"]: row for row in read_table(folder / "costs.parquet", "costs").to_pylist()}


def test_jobs_of_a_rule_are_summed_and_the_largest_is_stated(tmp_path):
    note(tmp_path / "l/graph/g/count-0.log", (2.0, 1.5, 100))
    note(tmp_path / "l/graph/h/count-1.log", (3.0, 2.5, 50))
    note(tmp_path / "l/graph/g/edges-0.log", (9.0, 1.0, 1))
    found = costs(tmp_path, count_pairs="graph/{graph}/count-{bucket}.log", train="train.log")
    assert {rule: tuple(row[name] for name in COLUMNS[1:]) for rule, row in found.items()} == {
        "count_pairs": (2, 5.0, 3.0, 4.0, 100.0)
    }


def test_of_a_repeated_job_the_last_run_counts_and_of_one_that_has_not_finished_none(tmp_path):
    note(tmp_path / "l/list-0.log", (2.0, 1.0, 1), (5.0, 1.0, 1))
    (tmp_path / "l/list-1.log").write_text("at work\n")
    row = costs(tmp_path, list="list-{n}.log")["list"]
    assert (row["jobs"], row["seconds"]) == (1, 5.0)


def test_rules_that_share_their_logs_are_named_together_and_a_log_is_of_the_rule_that_says_most_of_it(tmp_path):
    for name in ("edges-0", "score-fos-random-0", "score-fos-cocite-1"):
        note(tmp_path / f"l/{name}.log", (1.0, 1.0, 1))
    logs = {"weigh": "edges-{bucket}.log", "combine": "edges-{bucket}.log"}
    logs |= {"model": "score-{task}-{model}-{seed}.log", "random": "score-{task}-random-0.log"}
    found = {rule: row["jobs"] for rule, row in costs(tmp_path, **logs).items()}
    assert found == {"combine or weigh": 1, "model": 1, "random": 1}


def shown(*rows, at_work):
    return costs_of_rules(pl.DataFrame(rows, schema=COLUMNS, orient="row"), at_work).rows()


def test_the_longest_rule_comes_first_and_all_together_last_in_which_snakemake_is_no_job():
    rows = [("short", 1, 5.0, 5.0, 30.0, 1200.0), ("long", 1, 3700.0, 3600.0, 30.0, 1200.0)]
    assert shown(*rows, ("snakemake", 1, 3702.0, 3702.0, 2.0, 90.0), at_work=3702.0) == [
        ("snakemake", "1", "1:01:42", "1:01:42", "0:00:02", "90"),
        ("long", "1", "1:01:40", "1:00:00", "0:00:30", "1,200"),
        ("short", "1", "0:00:05", "0:00:05", "0:00:30", "1,200"),
        ("all together", "2", "1:01:42", "1:00:00", "0:01:02", "1,200"),
    ]


def test_the_time_at_work_counts_jobs_side_by_side_once_and_pauses_not_at_all(tmp_path):
    logs = {"r": f"{tmp_path}/l/{{n}}.log"}
    assert time_at_work(read_jobs(logs, None)) == 0.0
    # From 100 to 110; from 105 to 115, beside it; within the second; and after a pause.
    jobs = [(1_000_110.0, 10.0), (1_000_115.0, 10.0), (1_000_112.0, 1.0), (1_009_000.0, 20.0)]
    for number, (end, seconds) in enumerate(jobs):
        note(tmp_path / f"l/{number}.log", (seconds, 1.0, 1))
        os.utime(tmp_path / f"l/{number}.log", (end, end))
    assert time_at_work(read_jobs(logs, None)) == pytest.approx(15.0 + 20.0)
