"""On a machine without /proc, such as a Mac, what a step took, the machine and a run at work are known all the same."""

import errno
import os
import platform
import resource
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from tests.tools.builders import write_start

from cocite.config.started import _start_of, is_alive
from cocite.core import progress
from cocite.core.memory import total_memory
from cocite.report.provenance import describe_machine


@pytest.fixture(autouse=True)
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


def test_the_machine_is_described():
    machine = describe_machine()
    assert machine["processor"] == platform.machine()
    assert machine["memory_mb"] == round(psutil.virtual_memory().total / 1e6)
    assert total_memory() == psutil.virtual_memory().total // 10**6


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
