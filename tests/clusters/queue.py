"""A batch system on this machine, which answers as LSF, Grid Engine or PBS do: it is called by the names of theirs.

A job runs at once, in its own session. Its folder has the words with which it was submitted, its process, and, when
it has ended, its status. The first job of the rule in QUEUE_KILLS is killed, as one that takes too much memory is.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

RUN = 'bash "$0"; echo $? > "$1.part"; mv "$1.part" "$1"'
KILLED = str(128 + signal.SIGKILL)


def submit(queue: Path, words: list[str]) -> int:
    number = len(list(queue.iterdir())) + 1
    (folder := queue / str(number)).mkdir()
    (folder / "words.json").write_text(json.dumps(words))
    is_victim = f'"rule": "{os.environ.get("QUEUE_KILLS")}"' in Path(words[-1]).read_text()
    if is_victim and not list(queue.glob("*/killed")):
        (folder / "killed").touch()
        (folder / "status").write_text(KILLED)
        return number
    command = ["bash", "-c", RUN, words[-1], str(folder / "status")]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    (folder / "process").write_text(str(job.pid))
    return number


def cancel(folder: Path) -> None:
    with suppress(ProcessLookupError, FileNotFoundError):
        os.killpg(int((folder / "process").read_text()), signal.SIGKILL)
    (folder / "status").write_text(KILLED)


def answer(name: str, words: list[str], queue: Path) -> str | int:
    if name in ("bsub", "qsub"):
        number = submit(queue, words)
        return f"Job <{number}> is submitted to queue <night1>." if name == "bsub" else number
    status = queue / words[-1] / "status"
    ended = status.read_text().strip() if status.exists() else ""
    if name == "bjobs":
        return {"": "RUN", "0": "DONE"}.get(ended, "EXIT")
    if name == "qstat" and "-x" in words:  # PBS
        return f"job_state = F\nExit_status = {ended}" if ended else "job_state = R"
    if (name == "qstat") is bool(ended):  # Grid Engine: one program knows running jobs, another those that have ended
        sys.exit(1)
    return f"failed       0\nexit_status  {ended}" if ended else f"job_number: {words[-1]}"


if __name__ == "__main__":
    name, words, queue = Path(sys.argv[0]).name, sys.argv[1:], Path(os.environ["QUEUE"])
    if name in ("bkill", "qdel"):
        for number in words:
            cancel(queue / number)
    else:
        sys.stdout.write(f"{answer(name, words, queue)}\n")
