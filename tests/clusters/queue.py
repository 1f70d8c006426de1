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
    text = Path(words[-1]).read_text()
    earlier = list(queue.glob("*/killed"))
    if f'"rule": "{os.environ.get("QUEUE_KILLS")}"' in text and not earlier:
        (folder / "killed").touch()
        (folder / "status").write_text(KILLED)
        return number
    with (folder / "log").open("w") as log:
        command = ["bash", "-c", RUN, words[-1], str(folder / "status")]
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    (folder / "process").write_text(str(job.pid))
    return number


def cancel(folder: Path) -> None:
    with suppress(ProcessLookupError, FileNotFoundError):
        os.killpg(int((folder / "process").read_text()), signal.SIGKILL)
    (folder / "status").write_text(KILLED)


def main() -> None:
    name, words, queue = Path(sys.argv[0]).name, sys.argv[1:], Path(os.environ["QUEUE"])
    if name in ("bsub", "qsub"):
        number = submit(queue, words)
        answer = f"Job <{number}> is submitted to queue <night1>." if name == "bsub" else str(number)
        print(answer if "-terse" in words or name == "bsub" else f"{number}.server")  # noqa: T201
        return
    folder = queue / words[-1].removesuffix(".server")
    if name in ("bkill", "qdel"):
        for number in words:
            cancel(queue / number.removesuffix(".server"))
        return
    ended = (folder / "status").read_text().strip() if (folder / "status").exists() else None
    of_pbs = f"Job Id: {words[-1]}\n    job_state = {'F' if ended else 'R'}\n"
    answers = {
        "bjobs": "RUN" if ended is None else "DONE" if ended == "0" else "EXIT",
        "qstat": of_pbs + (f"    Exit_status = {ended}\n" if ended else ""),
        "qacct": f"failed       0    \nexit_status  {ended}",
    }
    if name == "qacct" or "-j" in words:  # Grid Engine: an ended job is known to the one, a running one to the other
        if (name == "qacct") is (ended is None):
            sys.exit(1)
        answers["qstat"] = f"job_number: {words[-1]}"
    print(answers[name])  # noqa: T201


if __name__ == "__main__":
    main()
