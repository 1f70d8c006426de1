"""Runs a command against a served release, or serves it until it is interrupted.

The command gets the API's base URL in place of the argument SERVER, and a key made for this run in S2_API_KEY. It is
a child process: when this one ends, however it ends, the server is gone and the child meets refused connections.
"""

import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cocite.demo.server import serve
from cocite.ground.errors import InputError

PLACEHOLDER = "SERVER"
_FORWARDED = (signal.SIGTERM, signal.SIGINT)


def run_served(folder: Path, command: Sequence[str]) -> int:
    """Run the command while the release in `folder` is served; return its exit code, 128 + n if signal n ended it.

    Raises `InputError` if the folder is no release or the command cannot be started.
    """
    key = secrets.token_hex(16)
    with serve(folder, key=key) as url:
        arguments = [url if argument == PLACEHOLDER else argument for argument in command]
        try:
            child = subprocess.Popen(arguments, env={**os.environ, "S2_API_KEY": key})
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be run ({error.strerror}).") from None
        with _forwarding_signals(child):
            code = child.wait()
    return 128 - code if code < 0 else code


def serve_until_interrupted(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the release in `folder`; yield the base URL and a key once, then wait for Ctrl-C."""
    key = secrets.token_hex(16)
    with serve(folder, key=key) as url:
        yield url, key
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


@contextmanager
def _forwarding_signals(child: subprocess.Popen[bytes]) -> Iterator[None]:
    before = {number: signal.signal(number, lambda number, _: child.send_signal(number)) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
