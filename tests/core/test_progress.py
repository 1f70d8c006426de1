"""Items that are made ahead; and every step says at the end of its log what it took, as the operating system counts."""

import re
import resource
import subprocess
import sys
import threading

import pytest

from cocite.core.progress import about, ahead, byte_size, clock_time, last_usage

STEP = "from cocite.cli import main; main()"


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def generated_release(folder, *, papers):
    step = ["demo", "release", "--release", "2026-01-06", "--papers", str(papers), "--topics", "4", "--shards", "1"]
    command = [sys.executable, "-c", STEP, *step, "--seed", "1", "--output", str(folder / "release")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_a_step_says_what_the_system_counted(tmp_path):
    before = children()
    (tmp_path / "step.log").write_text(generated_release(tmp_path, papers=300))
    counted = children() - before
    took = last_usage(tmp_path / "step.log")
    assert took.cpu_seconds == pytest.approx(counted, rel=0.1, abs=0.1)
    assert took.seconds > 0
    assert 20 < took.peak_mb < 1000


def test_what_a_step_starts_and_waits_for_counts():
    busy = "sum(number * number for number in range(3_000_000))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}], check=True)\n"
    code += "from cocite.core.progress import usage; print(usage().cpu_seconds, usage().seconds)"
    cpu, seconds = map(float, subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert cpu > 0.1
    assert seconds < cpu  # the package was imported after it


def test_of_a_log_with_several_runs_the_last_counts(tmp_path):
    log = tmp_path / "step.log"
    log.write_text("Embedding: 3/9, Took 7 s\n")
    assert last_usage(log) is None
    log.write_text(
        "Took 5.00 s, 4.00 s of processor time, 100 MB at most.\nError: no.\n"
        "Embedding: 3/9\nTook 7.25 s, 6.50 s of processor time, 90 MB at most.\n"
    )
    took = last_usage(log)
    assert (took.seconds, took.cpu_seconds, took.peak_mb) == (7.25, 6.5, 90)


def test_commands_for_people_keep_quiet_about_it():
    answer = subprocess.run([sys.executable, "-c", STEP, "--help"], capture_output=True, text=True, check=True)
    assert not re.search("processor time", answer.stderr + answer.stdout)


def test_durations_and_sizes_have_the_unit_that_fits():
    assert [clock_time(seconds) for seconds in (0.4, 59.6, 90_061.0)] == ["0:00:00", "0:01:00", "25:01:01"]
    assert [about(seconds) for seconds in (0.4, 119.4, 120, 7140, 7200)] == [
        "0 s",
        "119 s",
        "2 min",
        "119 min",
        "2.0 h",
    ]
    sizes = (0, 999, 1000, 44_100_000_000, 1_234_500_000_000_000)
    assert [byte_size(size) for size in sizes] == ["0 B", "999 B", "1.0 kB", "44.1 GB", "1,234.5 TB"]
    assert [byte_size(size, ".3g") for size in (999, 1_500, 2_345_678, 3e9)] == ["999 B", "1.5 kB", "2.35 MB", "3 GB"]


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_items_as_asked_for_are_made_in_a_thread_before_each_is_taken(count):
    made = [threading.Event() for _ in range(6)]

    def items():
        for number, event in enumerate(made):
            event.set()
            yield number

    upcoming = ahead(items(), count)
    assert made[count - 1].wait(10)
    assert not made[count].is_set()
    for number, item in enumerate(upcoming):
        assert item == number
        assert number + count >= len(made) or made[number + count].wait(10)


def test_an_error_in_the_thread_reaches_who_waits_for_the_item():
    def items():
        yield 0
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(ahead(items()))
