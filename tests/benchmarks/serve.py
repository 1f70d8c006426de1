"""`cocite serve` with a million papers: how long a query takes, how much memory it holds, and what it misses.

Ours is the whole command: a request over HTTP, with titles and years. The rival is FAISS by hand, without HTTP, with
all vectors in memory. Both answer the same queries, one after the other; recall is held against FAISS's IndexFlatL2.

Vectors lie in clusters as `clustered_vectors` has them. Titles have ten words, drawn by Zipf's law; a paper cites
`REFERENCES` random ones with larger ids and is co-cited with the same. A file of each table holds some consecutive ids.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.clustered_vectors import batches
from tests.benchmarks.measuring import answer, cocite, python, run, say
from tests.papers import papers_table

from cocite.core.randomness import generator
from cocite.core.tables.files import write_table
from cocite.tools.search_indexes import NPROBE

PAPERS, DIMENSION, QUERIES, TRUE, K = 1_000_000, 384, 1000, 100, 10
WARMING = 100
"""Queries before those that are measured; other papers."""
REFERENCES, VOCABULARY, WORDS = 10, 50_000, 10
TEXTS = pa.list_(pa.string())
SYLLABLES = [f"{first}{second}" for first in "bdfghjklmnprstvwz" for second in "aeiou"]


def main(folder: Path) -> None:
    results, cache = folder / "results", folder / "cache"
    run(python(write_run, results, PAPERS, DIMENSION))
    drawn = generator(1, "queries of a search").choice(PAPERS, WARMING + QUERIES, replace=False).tolist()
    start = time.perf_counter()
    with _served(results, cache) as (process, _):
        say(f"Indexes made in {time.perf_counter() - start:.0f} s, peak memory {_peak_mb(process):.0f} MB.")
    start = time.perf_counter()
    with _served(results, cache) as (process, port):
        say(f"Started with ready indexes in {time.perf_counter() - start:.1f} s.")
        ours = _measure(port, drawn)
        say(f"Ours: peak memory {_peak_mb(process):.0f} MB after {len(drawn):,} queries, mapped files included.")
    vectors = results / "encoder/model/seed-1/papers"
    cost, rival = answer(search_by_hand, vectors, "ivf", json.dumps(drawn), K, NPROBE)
    _say_times("FAISS by hand, IVF of whole vectors in memory", rival["seconds"])
    say(f"FAISS by hand: peak memory {cost.peak_mb:.0f} MB.")
    _, truth = answer(search_by_hand, vectors, "flat", json.dumps(drawn[: WARMING + TRUE]), K, NPROBE)
    _say_times("FAISS's IndexFlatL2", truth["seconds"])
    for name, found in (("ours", ours), ("FAISS by hand", rival["found"])):
        pairs = zip(found[WARMING:], truth["found"][WARMING:], strict=False)
        hits = sum(len(set(mine) & set(right)) for mine, right in pairs)
        say(f"Recall at {K}, {NPROBE} lists of {round(PAPERS**0.5):,}: {name} {hits / (TRUE * K):.3f}.")


def _measure(port: int, queries: Sequence[int]) -> list[list[int]]:
    """Print the times of the requests; return the neighbours of each query."""
    connection = HTTPConnection("127.0.0.1", port)
    times: dict[str, list[float]] = {"neighbours": [], "filtered": [], "relations": [], "links": [], "titles": []}
    found, words = [], []
    for query in queries:
        seconds, hits = _asked(connection, f"/api/nearest?model=model/1&paper={query}&k={K}")
        times["neighbours"].append(seconds)
        found.append([int(hit["paper"]) for hit in hits])
        first, second = hits[0]["title"].split()[:2]
        words.append(f"{first}+{second[:4]}")
    for query, others, typed in zip(queries[: WARMING + TRUE], found, words, strict=False):
        listed = ",".join(map(str, others))
        path = f"/api/nearest?model=model/1&paper={query}&k={K}&years=2000-2010"
        times["filtered"].append(_asked(connection, path)[0])
        times["relations"].append(_asked(connection, f"/api/relations?paper={query}&others={listed}")[0])
        times["links"].append(_asked(connection, f"/api/links?papers={listed}")[0])
        times["titles"].append(_asked(connection, f"/api/papers?words={typed}")[0])
    say(f"Ours, the first answer over HTTP: {times['neighbours'][0] * 1000:.1f} ms.")
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
    command = cocite("serve", results=results, cache=cache, port=0)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = next(line for line in process.stderr or () if line.startswith("Serving"))
        try:
            yield process.pid, int(said.split()[-3].rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


def _peak_mb(process: int) -> float:
    """The largest resident memory of a process so far."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) / 1000


def search_by_hand(folder: Path, kind: str, queries: str, k: int, nprobe: int) -> dict[str, list[Any]]:
    """The seconds and the neighbours of each query, with all vectors in memory, one after the other in this process.

    The index is IVF of whole vectors with FAISS's own settings; with `flat`, all vectors are compared, which is the
    truth that recall is held against.
    """
    import faiss

    files = sorted(folder.glob("*.parquet"))
    ids = np.concatenate([pq.read_table(file, columns=["corpusid"])["corpusid"].to_numpy() for file in files])
    columns = [pq.read_table(file, columns=["vector"])["vector"].combine_chunks() for file in files]
    vectors = np.concatenate([column.flatten().to_numpy() for column in columns]).reshape(len(ids), -1)
    del columns
    if kind == "flat":
        index = faiss.IndexFlatL2(vectors.shape[1])
    else:
        index = faiss.index_factory(vectors.shape[1], f"IVF{round(len(ids) ** 0.5)},Flat")
        index.train(vectors)
        index.nprobe = nprobe
    index.add(vectors)
    seconds, found = [], []
    for query in json.loads(queries):
        vector = vectors[ids == query]
        start = time.perf_counter()
        _, (rows,) = index.search(vector, k + 1)
        seconds.append(time.perf_counter() - start)
        found.append([paper for paper in ids[rows].tolist() if paper != query][:k])
    return {"seconds": seconds, "found": found}


def write_run(results: Path, papers: int, dimension: int) -> None:
    """Write the tables, and a folder that stands for the encoder."""
    model = results / "encoder/model/seed-1/model"
    model.mkdir(parents=True)
    (model / "modules.json").write_text("[]")
    for number, batch in enumerate(batches(papers, dimension, gap=1)):
        ids = batch["corpusid"].to_numpy()
        drawn = generator(1, "papers of a run", number)
        write_table(results / f"encoder/model/seed-1/papers/{number}.parquet", "paper_embeddings", [batch])
        write_table(results / f"corpus/papers/{number}.parquet", "papers", _papers(ids, drawn))
        others = ids[:, None] + np.cumsum(drawn.integers(1, papers // REFERENCES, (len(ids), REFERENCES)), axis=1)
        citing, cited = np.repeat(ids, REFERENCES), others.ravel()
        traits = {"influential": np.zeros(len(cited), bool), "intents": pa.array([[]] * len(cited), TEXTS)}
        citations = pa.table({"citing": citing, "cited": cited, **traits})
        write_table(results / f"corpus/citations/{number}.parquet", "citations", citations)
        count = drawn.integers(1, 20, len(cited), dtype=np.int32)
        pairs = pa.table({"paper": citing, "other": cited, "count": count})
        write_table(results / f"graph/cocitation/cocitations/{number}.parquet", "cocitations", pairs)


def _papers(ids: np.ndarray, drawn: np.random.Generator) -> pa.Table:
    words = np.minimum(drawn.zipf(1.3, (len(ids), WORDS)), VOCABULARY)
    titles = (" ".join(map(_word, row)) for row in words.tolist())
    counts = drawn.integers(0, 1000, len(ids))
    numbers = {"year": drawn.integers(1950, 2025, len(ids)), "citation_count": counts, "reference_count": counts}
    return papers_table({paper: (title, None) for paper, title in zip(ids.tolist(), titles, strict=True)}, **numbers)


def _word(number: int) -> str:
    return "".join(SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(3))
