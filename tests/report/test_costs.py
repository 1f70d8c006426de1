"""The report says what each rule took."""

import os

import polars as pl
import pytest

from cocite.core.tables.files import read_table
from cocite.core.usage import Usage
from cocite.report.costs import costs_of_rules, read_jobs, time_at_work, write_costs


def note(path, *took):
    """The log of a job that was run once for each (seconds, seconds of the processors, MB)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (Usage(seconds=seconds, cpu_seconds=cpu, peak_mb=peak) for seconds, cpu, peak in took)
    path.write_text("".join(f"at work\n{line}\n" for line in lines))


def costs(logs, tmp_path):
    write_costs(read_jobs(logs, None), tmp_path / "costs.parquet")
    return {row["rule"]: row for row in read_table(tmp_path / "costs.parquet", "costs").to_pylist()}


def test_jobs_of_a_rule_are_summed_and_the_largest_is_stated(tmp_path):
    note(tmp_path / "l/graph/g/count-0.log", (2.0, 1.5, 100))
    note(tmp_path / "l/graph/h/count-1.log", (3.0, 2.5, 50))
    note(tmp_path / "l/graph/g/edges-0.log", (9.0, 1.0, 1))
    found = costs({"count_pairs": f"{tmp_path}/l/graph/{{graph}}/count-{{bucket}}.log"}, tmp_path)
    assert found == {
        "count_pairs": {
            "rule": "count_pairs",
            "jobs": 2,
            "seconds": 5.0,
            "longest_seconds": 3.0,
            "cpu_seconds": 4.0,
            "peak_mb": 100.0,
        }
    }


def test_of_a_repeated_job_the_last_run_counts(tmp_path):
    note(tmp_path / "l/list.log", (2.0, 1.0, 1), (5.0, 1.0, 1))
    assert costs({"list": f"{tmp_path}/l/list.log"}, tmp_path)["list"]["seconds"] == 5.0


def test_a_job_that_has_not_finished_is_not_counted(tmp_path):
    note(tmp_path / "l/list-0.log", (2.0, 1.0, 1))
    (tmp_path / "l/list-1.log").write_text("at work\n")
    assert costs({"list": f"{tmp_path}/l/list-{{n}}.log"}, tmp_path)["list"]["jobs"] == 1


def test_rules_that_share_their_logs_are_named_together_and_counted_once(tmp_path):
    note(tmp_path / "l/edges-0.log", (1.0, 1.0, 1))
    paths = {"weigh": f"{tmp_path}/l/edges-{{bucket}}.log", "combine": f"{tmp_path}/l/edges-{{bucket}}.log"}
    assert {name: row["jobs"] for name, row in costs(paths, tmp_path).items()} == {"combine or weigh": 1}


def test_a_log_is_of_the_rule_that_says_most_of_it(tmp_path):
    note(tmp_path / "l/score-fos-random-0.log", (1.0, 1.0, 1))
    note(tmp_path / "l/score-fos-cocite-1.log", (1.0, 1.0, 1))
    paths = {"model": f"{tmp_path}/l/score-{{task}}-{{model}}-{{seed}}.log"}
    paths["random"] = f"{tmp_path}/l/score-{{task}}-random-0.log"
    assert {name: row["jobs"] for name, row in costs(paths, tmp_path).items()} == {"model": 1, "random": 1}


def test_rules_without_a_finished_job_cost_nothing(tmp_path):
    assert costs({"train": f"{tmp_path}/l/train.log"}, tmp_path) == {}


def test_the_longest_rule_comes_first_and_all_together_last():
    row = {"jobs": 1, "cpu_seconds": 30.0, "peak_mb": 1200.0}
    rules = [
        {"rule": "short", "seconds": 5.0, "longest_seconds": 5.0, **row},
        {"rule": "long", "seconds": 3700.0, "longest_seconds": 3600.0, **row},
    ]
    shown = costs_of_rules(pl.DataFrame(rules), 3702.0).to_dicts()
    assert [(cost["rule"], cost["time"], cost["longest job"]) for cost in shown] == [
        ("long", "1:01:40", "1:00:00"),
        ("short", "0:00:05", "0:00:05"),
        ("all together", "1:01:42", "1:00:00"),
    ]
    assert (shown[-1]["jobs"], shown[-1]["processor time"], shown[-1]["largest memory, MB"]) == (
        "2",
        "0:01:00",
        "1,200",
    )


def test_snakemake_adds_its_processor_time_and_is_no_job():
    rows = [("count", 3, 9.0, 4.0, 8.0, 100.0), ("snakemake", 1, 12.0, 12.0, 2.0, 90.0)]
    names = ["rule", "jobs", "seconds", "longest_seconds", "cpu_seconds", "peak_mb"]
    of_all = costs_of_rules(pl.DataFrame(rows, schema=names, orient="row"), 12.0).to_dicts()[-1]
    assert (of_all["jobs"], of_all["time"], of_all["longest job"], of_all["processor time"]) == (
        "3",
        "0:00:12",
        "0:00:04",
        "0:00:10",
    )


def ended(path, at, seconds):
    """A job that ended at some time and took so long."""
    note(path, (seconds, 1.0, 1))
    os.utime(path, (at, at))


def test_the_time_at_work_counts_jobs_side_by_side_once_and_pauses_not_at_all(tmp_path):
    ended(tmp_path / "l/1.log", at=1_000_110.0, seconds=10.0)  # from 100 to 110
    ended(tmp_path / "l/2.log", at=1_000_115.0, seconds=10.0)  # from 105 to 115, beside it
    ended(tmp_path / "l/3.log", at=1_000_112.0, seconds=1.0)  # within the second
    ended(tmp_path / "l/4.log", at=1_009_000.0, seconds=20.0)  # after a pause
    assert time_at_work(read_jobs({"r": f"{tmp_path}/l/{{n}}.log"}, None)) == pytest.approx(15.0 + 20.0)


def test_before_the_first_job_no_time_has_passed(tmp_path):
    assert time_at_work(read_jobs({"r": f"{tmp_path}/l/{{n}}.log"}, None)) == 0.0
