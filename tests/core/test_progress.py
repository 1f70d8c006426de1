"""Items that are made ahead, and what a step took, as the operating system counts, with or without /proc."""

import errno
import os
import platform
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from tests.tools.builders import write_start

from cocite.config.started import _start_of, is_alive
from cocite.core import progress
from cocite.core.memory import total_memory
from cocite.core.progress import about, ahead, byte_size, clock_time, last_usage
from cocite.report.provenance import describe_machine


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_step_says_what_the_system_counted(tmp_path):
    step = f"demo release --release 2026-01-06 --papers 300 --topics 4 --shards 1 --seed 1 --output {tmp_path}/release"
    command = [sys.executable, "-c", "from cocite.cli import main; main()", *step.split()]
    before = children()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    counted = children() - before
    (tmp_path / "step.log").write_text(said)
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


def test_durations_and_sizes_have_the_unit_that_fits():
    assert [clock_time(seconds) for seconds in (0.4, 59.6, 90_061.0)] == ["0:00:00", "0:01:00", "25:01:01"]
    rough = [about(seconds) for seconds in (0.4, 119.4, 120, 7140, 7200)]
    assert rough == ["0 s", "119 s", "2 min", "119 min", "2.0 h"]
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


@pytest.fixture
def without_proc(monkeypatch):
    """Hide /proc and /sys from the package; psutil, which asks a Mac's kernel, does not read them through `Path`."""

    def hide(method):
        def hidden(path, *arguments, **options):
            if path.parts[1:2] in (("proc",), ("sys",)):
                raise FileNotFoundError(errno.ENOENT, "hidden", path)
            return method(path, *arguments, **options)

        return hidden

    for name in ("stat", "open"):
        monkeypatch.setattr(Path, name, hide(getattr(Path, name)))
    assert not Path("/proc/self/status").is_file()


@pytest.mark.usefixtures("without_proc")
def test_the_machine_is_described():
    machine = describe_machine()
    assert machine["processor"] == platform.machine()
    assert machine["memory_mb"] == round(psutil.virtual_memory().total / 1e6)
    assert total_memory() == psutil.virtual_memory().total // 10**6


@pytest.mark.usefixtures("without_proc")
def test_the_peak_memory_of_a_step_is_in_the_unit_that_the_system_counts_in(monkeypatch):
    in_kilobytes = progress.usage().peak_mb
    assert in_kilobytes >= 0.9 * psutil.Process().memory_info().rss / 1e6
    counted = resource.getrusage

    def in_bytes(whom):  # as on macOS
        used = counted(whom)
        return SimpleNamespace(ru_utime=used.ru_utime, ru_stime=used.ru_stime, ru_maxrss=used.ru_maxrss * 1024)

    monkeypatch.setattr(resource, "getrusage", in_bytes)
    monkeypatch.setattr(progress, "MAXRSS_UNIT", 1)
    assert progress.usage().peak_mb == pytest.approx(in_kilobytes, rel=0.05)


@pytest.mark.usefixtures("without_proc")
def test_a_run_is_at_work_until_its_process_ends(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = _start_of(process.pid)
    start = write_start(tmp_path, host=socket.gethostname(), process=process.pid, process_started=began)
    later = write_start(tmp_path, host=socket.gethostname(), process=os.getpid(), process_started=began - 7200)
    assert is_alive(start)
    assert not is_alive(later)  # another process that has its number
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(start)  # a zombie
    process.wait()
    assert not is_alive(start)
