"""`cocite demo serve` runs a command beside the server and passes on what happens to it."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import requests

from cocite.demo.serving import run_served
from cocite.ground.errors import InputError

LIST = "import os, sys, requests; key = {'x-api-key': os.environ['S2_API_KEY']}; "


def _serve(release: Path, *command: str) -> list[str]:
    return [sys.executable, "-c", "from cocite.cli import main; main()", "demo", "serve", str(release), *command]


def _python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def test_the_command_can_list_and_fetch(release: Path, tmp_path: Path) -> None:
    code = (
        f"{LIST}files = requests.get(sys.argv[1] + '/release/latest/dataset/papers', headers=key).json()['files'];"
        "open(sys.argv[2], 'wb').write(requests.get(files[0]).content)"
    )
    assert run_served(release, _python(code, "SERVER", str(tmp_path / "shard"))) == 0
    assert (tmp_path / "shard").read_bytes() == next((release / "papers").glob("*_00000_papers.gz")).read_bytes()


def test_only_whole_arguments_are_replaced(release: Path, tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write(' '.join(sys.argv[2:]))"
    assert run_served(release, _python(code, str(tmp_path / "seen"), "SERVER", "SERVERS", "--at=SERVER")) == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/datasets/v1 SERVERS --at=SERVER", (tmp_path / "seen").read_text())


def test_each_run_has_a_key_of_its_own_and_this_process_has_none(release: Path, tmp_path: Path) -> None:
    code = "import os, sys; open(sys.argv[1], 'a').write(os.environ['S2_API_KEY'] + '\\n')"
    for _ in range(2):
        run_served(release, _python(code, str(tmp_path / "keys")))
    first, second = (tmp_path / "keys").read_text().split()
    assert first != second
    assert os.environ.get("S2_API_KEY") not in (first, second)


@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_exit_code_of_the_command_is_passed_on(release: Path, code: int) -> None:
    ended = subprocess.run(_serve(release, "--", *_python(f"raise SystemExit({code})")), check=False)
    assert ended.returncode == code


def test_a_command_that_a_signal_ends_gives_128_and_the_signal(release: Path) -> None:
    assert run_served(release, _python("import os; os.kill(os.getpid(), 9)")) == 137


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_forwarded_to_the_command(release: Path, tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(42))\n"
        "open(sys.argv[1], 'w').close()\n"
        "time.sleep(30)"
    )
    wrapper = subprocess.Popen(_serve(release, "--", *_python(code, str(tmp_path / "ready"))))
    _wait_for(tmp_path / "ready")
    wrapper.send_signal(number)
    assert wrapper.wait(timeout=10) == 42


def test_a_command_whose_server_is_killed_meets_refused_connections(release: Path, tmp_path: Path) -> None:
    code = (
        "import sys, time, requests\n"
        "requests.get(sys.argv[1] + '/release/').raise_for_status()\n"
        "open(sys.argv[2], 'w').close()\n"
        "try:\n"
        "    while True:\n"
        "        requests.get(sys.argv[1] + '/release/', timeout=5)\n"
        "        time.sleep(0.05)\n"
        "except requests.ConnectionError:\n"
        "    open(sys.argv[3], 'w').close()\n"
    )
    command = _python(code, "SERVER", str(tmp_path / "ready"), str(tmp_path / "refused"))
    wrapper = subprocess.Popen(_serve(release, "--", *command))
    _wait_for(tmp_path / "ready")
    wrapper.kill()
    wrapper.wait(timeout=10)
    _wait_for(tmp_path / "refused")


def test_a_command_that_does_not_exist_is_named(release: Path) -> None:
    with pytest.raises(InputError, match="no-such-command: cannot be run"):
        run_served(release, ["no-such-command"])


def test_without_a_command_it_serves_until_interrupted(release: Path) -> None:
    # Where the tests run in the background of a shell, interrupts are ignored, and children inherit that.
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    wrapper = subprocess.Popen(_serve(release), stdout=subprocess.PIPE, text=True, preexec_fn=heeding)
    url, key = wrapper.stdout.readline().strip(), wrapper.stdout.readline().strip().removeprefix("S2_API_KEY=")
    listed = requests.get(f"{url}/release/latest/dataset/papers", headers={"x-api-key": key}, timeout=5)
    wrapper.send_signal(signal.SIGINT)
    assert wrapper.wait(timeout=10) == 0
    wrapper.stdout.close()
    assert len(listed.json()["files"]) == 3


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not come"
        time.sleep(0.02)
