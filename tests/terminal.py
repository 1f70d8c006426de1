"""Commands that ask, driven in a terminal as a person does."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence


def answer(command: str, questions: Sequence[tuple[str, str]]) -> str:
    """Run a command of `cocite` in a terminal and answer its questions, of which parts are given; what it says."""
    ours, terminal = pty.openpty()
    program = [sys.executable, "-c", "from cocite.cli import main; main()", command]
    with subprocess.Popen(program, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        said = ""
        try:
            for question, reply in questions:
                while not re.search(re.escape(question) + r"[^\n]*: $", said):
                    said += os.read(ours, 4096).decode(errors="replace")
                os.write(ours, f"{reply}\n".encode())
                said += "\n"
            while part := os.read(ours, 4096):
                said += part.decode(errors="replace")
        except OSError:  # the terminal is closed when the command ends
            pass
    assert process.returncode == 0, said
    return said
