"""`cocite serve` with a million papers: how long a query takes, how much memory it holds, and what it misses.

Ours is the whole command: a request over HTTP, with titles and years. The rival is FAISS by hand, without HTTP, with
all vectors in memory. Both answer the same queries, one after the other; recall is held against FAISS's IndexFlatL2.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
from tests.benchmarks.measuring import run, say

from cocite.core.randomness import generator
from cocite.tools.serving.vectors import NPROBE

PAPERS, DIMENSION, QUERIES, TRUE, K = 1_000_000, 384, 1000, 100, 10
WARMING = 100
"""Queries before those that are measured; other papers."""
COCITE = Path(sys.executable).with_name("cocite")


def main(folder: Path) -> None:
    """Print times, memory and recall of both."""
    folder = folder / "serve"
    shutil.rmtree(folder, ignore_errors=True)
    results, cache = folder / "results", folder / "cache"
    run([sys.executable, "-m", "tests.benchmarks.made_run", results, str(PAPERS), str(DIMENSION)])
    drawn = generator(1, "queries of a search").choice(PAPERS, WARMING + QUERIES, replace=False).tolist()
    start = time.perf_counter()
    with _served(results, cache) as (process, _):
        say(f"Indexes made in {time.perf_counter() - start:.0f} s, peak memory {_peak_mb(process):.0f} MB.")
    start = time.perf_counter()
    with _served(results, cache) as (process, port):
        say(f"Started with ready indexes in {time.perf_counter() - start:.1f} s.")
        ours = _measure(port, drawn)
        say(f"Ours: peak memory {_peak_mb(process):.0f} MB after {len(drawn):,} queries, mapped files included.")
    rival, peak_mb = _by_hand(results, "ivf", drawn)
    _say_times("FAISS by hand, IVF of whole vectors in memory", rival["seconds"])
    say(f"FAISS by hand: peak memory {peak_mb:.0f} MB.")
    truth, _ = _by_hand(results, "flat", drawn[: WARMING + TRUE])
    _say_times("FAISS's IndexFlatL2", truth["seconds"])
    for name, found in (("ours", ours), ("FAISS by hand", rival["found"])):
        pairs = zip(found[WARMING:], truth["found"][WARMING:], strict=False)
        hits = sum(len(set(mine) & set(right)) for mine, right in pairs)
        say(f"Recall at {K}, {NPROBE} lists of {round(PAPERS**0.5):,}: {name} {hits / (TRUE * K):.3f}.")
    shutil.rmtree(folder)


def _measure(port: int, queries: Sequence[int]) -> list[list[int]]:
    """Print the times of the requests; return the neighbours of each query."""
    connection = HTTPConnection("127.0.0.1", port)
    times: dict[str, list[float]] = {"neighbours": [], "relations": [], "titles": []}
    found, words = [], []
    for query in queries:
        seconds, hits = _asked(connection, f"/api/nearest?model=model/1&paper={query}&k={K}")
        times["neighbours"].append(seconds)
        found.append([int(hit["paper"]) for hit in hits])
        first, second = hits[0]["title"].split()[:2]
        words.append(f"{first}+{second[:4]}")
    for query, others, typed in zip(queries[: WARMING + TRUE], found, words, strict=False):
        path = f"/api/relations?paper={query}&others={','.join(map(str, others))}"
        times["relations"].append(_asked(connection, path)[0])
        times["titles"].append(_asked(connection, f"/api/papers?words={typed}")[0])
    for name, seconds in times.items():
        _say_times(f"Ours, {name} over HTTP", seconds)
    return found


def _asked(connection: HTTPConnection, path: str) -> tuple[float, Any]:
    start = time.perf_counter()
    connection.request("GET", path)
    response = connection.getresponse()
    content = response.read()
    seconds = time.perf_counter() - start
    if response.status != 200:
        sys.exit(f"{path}: {content.decode()}")
    return seconds, json.loads(content)


def _say_times(title: str, seconds: Sequence[float]) -> None:
    measured = np.array(seconds[WARMING:]) * 1000
    say(f"{title}: median {np.median(measured):.1f} ms, 99th percentile {np.percentile(measured, 99):.1f} ms.")


@contextmanager
def _served(results: Path, cache: Path) -> Iterator[tuple[int, int]]:
    """The process and the port of a server."""
    command = [COCITE, "serve", "--results", results, "--cache", cache, "--port", "0"]
    with subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True) as process:
        said = next(line for line in process.stderr or () if line.startswith("Serving"))
        try:
            yield process.pid, int(said.split()[-3].rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


def _peak_mb(process: int) -> float:
    """The largest resident memory of a process so far."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1000


def _by_hand(results: Path, kind: str, queries: Sequence[int]) -> tuple[dict[str, Any], float]:
    """What FAISS by hand finds, and its peak memory, MB."""
    command = [sys.executable, "-m", "tests.benchmarks.faiss_queries", results / "encoder/model/seed-1/papers", kind]
    more = [json.dumps(queries), str(K), str(NPROBE)]
    with subprocess.Popen([*map(str, command), *more], stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read() if process.stdout else ""
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return json.loads(printed), usage.ru_maxrss / 1000


if __name__ == "__main__":
    main(Path(sys.argv[1]))
