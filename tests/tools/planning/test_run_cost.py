"""What a run costs before it starts: lines through what jobs took, and a schedule of the jobs."""

from random import Random

import pytest
import yaml
from tests.corpus.made_openalex import FOLDERS, work, write_copy
from tests.releases.server import serve_copy

from cocite.core.errors import InputError
from cocite.tools import run_cost
from cocite.tools.documentation import ROOT
from cocite.tools.planned_jobs import PlannedJob
from cocite.tools.run_cost import Line, Machine, cost_of, fitted, machine_of, schedule


def job(number: int, after: tuple[int, ...] = (), threads: int = 1, **files) -> PlannedJob:
    fields = {"reads": frozenset(), "makes": {}, "temporary": frozenset(), **files}
    fields |= {"rule": "count", "key": "count", "stage": "graph", "is_needed": True, "work": 1.0, "grows_with": ()}
    fields |= {"gpus": 0, "minutes": 1.0, "memory_mb": 1000.0, "log": None}
    return PlannedJob(number=number, after=frozenset(after), threads=threads, **fields)


def seconds(jobs: list[PlannedJob], took: dict[int, float], on: Machine) -> float:
    return schedule(jobs, took, {each.number: each.memory_mb for each in jobs}, on).seconds


def test_jobs_at_two_sizes_tell_what_grows_from_what_does_not():
    line = fitted([(10, 32.0), (100, 302.0), (10, 32.0)], 2.0)  # 2 s and 3 s for each unit
    assert line == pytest.approx(Line(2, 3), rel=0.1)
    assert line.at(1000) == pytest.approx(3002, rel=0.05)


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        ([(10, 7.0), (100, 7.0)], Line(7, 0)),  # it does not grow
        ([(10, 7.0), (100, 3.0), (1000, 2.0)], Line((7 * 3 * 2) ** (1 / 3), 0)),  # never negative
        ([(10, 5.0), (100, 50.0)], Line(0, 0.5)),
        ([(10, 12.0)], Line(2, 1)),  # of one size, what is more than a start may grow
        ([(0, 12.0)], Line(12, 0)),
    ],
)
def test_no_part_of_a_line_is_negative_and_one_size_is_taken_to_grow(pairs, line):
    assert fitted(pairs, 2.0) == pytest.approx(line, rel=0.01, abs=1e-4)


def test_a_line_is_as_far_above_what_jobs_took_as_below_by_ratio():
    line = fitted([(0, 1.0), (0, 4.0)], 10.0)
    assert line.at(0) == pytest.approx(2.5, rel=0.01)  # the median of one size
    assert fitted([(1, 2.0), (1, 8.0), (100, 200.0), (100, 800.0)], 0).at(50) == pytest.approx(200, rel=0.01)


def test_a_schedule_takes_as_long_as_its_chain_or_its_work_allows():
    jobs = [job(1), job(2), job(3, (1,)), job(4, (2, 3))]
    took = {1: 5.0, 2: 1.0, 3: 2.0, 4: 4.0}
    assert seconds(jobs, took, Machine()) == seconds(jobs, took, Machine(cores=2)) == 11  # 1, 3 and 4 wait
    assert seconds(jobs, took, Machine(cores=1)) == seconds(jobs, took, Machine(jobs=1)) == 12
    assert seconds(jobs, took, Machine(cores=2, memory_mb=1999)) == 12  # room for one of 1,000 MB
    assert seconds(jobs, took, Machine(cores=2, memory_mb=500)) == 12  # it gets what there is


@pytest.mark.parametrize("seed", range(30))
def test_a_job_that_takes_all_memory_starts_whatever_rounding_lost_of_it(seed):
    draw = Random(seed)
    memory = {number: draw.uniform(100, 1500) for number in range(1, 7)} | {7: 9000.0}
    jobs = [*map(job, range(1, 7)), job(7, tuple(range(1, 7)))]
    assert schedule(jobs, dict.fromkeys(memory, 1.0), memory, Machine(cores=4, memory_mb=4000)).seconds >= 3


def test_jobs_with_several_threads_share_cores():
    jobs = [job(1, threads=2), job(2, threads=2), job(3, threads=1)]
    took = {1: 4.0, 2: 4.0, 3: 4.0}
    assert seconds(jobs, took, Machine(cores=4)) == 8
    assert seconds(jobs, took, Machine(cores=5)) == 4
    assert seconds(jobs, took, Machine(cores=1)) == 12


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_a_profile_without_a_number_of_jobs_is_refused(tmp_path, jobs):
    (tmp_path / "config.yaml").write_text(f"jobs: {jobs}\n")
    with pytest.raises(InputError, match=r"config\.yaml names no number of jobs; give --profile a folder"):
        machine_of(tmp_path)


def test_the_disk_is_fullest_before_temporary_files_are_deleted():
    jobs = [
        job(1, makes={"raw": 100.0, "report": 1.0}, temporary=frozenset({"raw"})),
        job(2, (1,), makes={"table": 30.0}, reads=frozenset({"raw"})),
        job(3, (2,), makes={"model": 80.0}, reads=frozenset({"table"})),
    ]
    done = schedule(jobs, {1: 1.0, 2: 1.0, 3: 1.0}, {1: 1.0, 2: 1.0, 3: 1.0}, Machine(cores=2))
    assert (done.at_peak, done.at_end) == (131, 111)


def test_rates_are_read_as_they_were_written(tmp_path):
    rates = run_cost.read_calibration(run_cost.SHIPPED)
    run_cost.write_calibration(tmp_path / "rates.jsonl", rates)
    assert run_cost.read_calibration(tmp_path / "rates.jsonl") == rates
    assert len(rates) > 50


def test_each_job_of_the_demo_has_been_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cost = cost_of(ROOT / "config.yaml", Machine(cores=2))
    assert len(cost.jobs) > 80
    assert {each.key for each in cost.jobs} - cost.rates.keys() == set()


def test_the_plan_of_a_copy_of_openalex_has_its_download(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_copy(tmp_path / "bucket", "jsonl", [work(number, abstract="About it") for number in range(30)], per_file=10)
    size = sum(path.stat().st_size for path in (tmp_path / "bucket").glob("**/works/*/part*"))
    with serve_copy(tmp_path / "bucket") as origin:
        source = {"source": "openalex", "format": "jsonl", "url": f"{origin}/{FOLDERS['jsonl']}", "jobs": 2}
        (tmp_path / "my.yaml").write_text(yaml.safe_dump({"release": "2026-06-24", "corpus": source}))
        jobs = cost_of(tmp_path / "my.yaml", Machine(cores=2)).jobs
    downloads = [sum(each.makes.values()) for each in jobs if each.rule == "download_shards"]
    assert len(downloads) == 2
    assert sum(downloads) == pytest.approx(size / 1e6)
