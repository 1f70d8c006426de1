"""Searches that serve: papers of a whole corpus, of an index, and of a run over HTTP, beside FAISS by hand.

FAISS has all vectors in memory, and answers the same queries.
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
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.benchmarks.made_graphs import weightless
from tests.benchmarks.measuring import answer, cocite, python, run, say
from tests.benchmarks.searching import clustered, vectors_in
from tests.papers import papers_table

from cocite.core.randomness import generator
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import count_rows, read_table, table_writer, vector_column, vectors_of, write_table

DIMENSION, HELD_OUT, RELEVANT = 256, 1500, 40
ROWS, DEPTH = 8192, 1000

WORDS, VOCABULARY, REFERENCES = 90, 100_000, 10
QUERIES, WARMING, K, AT_ONCE = 100, 10, 20, 50_000
IN_MEMORY = 2_000_000
"""Papers whose vectors fit in memory several times; with more, the recalls are left out."""
NAMES = ("cosine m", "words", "votes_10", "votes_30", "votes_100", "citations", "without links", "age")

SERVED, SERVED_DIMENSION, ASKED, TRUE, NEAREST = 1_000_000, 384, 1000, 100, 10
WARMED = 100
"""Queries before those that are measured; other papers."""
TITLE_VOCABULARY, TITLE = 50_000, 10
TEXTS = pa.list_(pa.string())
SYLLABLES = [f"{first}{second}" for first in "bdfghjklmnprstvwz" for second in "aeiou"]


def corpus_search(folder: Path, papers: int = 1_000_000) -> None:
    """Held-out papers search the whole corpus: time and memory, next to FAISS's flat search.

    Both read the same tables of vectors, a bucket for each million papers, and look for the first 1,000 papers of each
    query; ours also scores them. Each runs once.
    """
    _write_random(folder, papers)
    files = {name: folder / f"{name}.parquet" for name in ("scores", "outcomes", "failures", "by_citations")}
    of_run = {"model": "m", "training_seed": 1, "evaluation_seed": 1, "largest_missing": 0, "tasks": "cite_search"}
    ours = cocite("evaluation", "search", tables=folder / "tables", vectors=folder / "vectors", **of_run, **files)
    say(f"{HELD_OUT:,} queries in {papers:,} papers of {DIMENSION} dimensions, searched and scored: {run(ours)}.")
    say(f"Searched by IndexFlatL2, with its reading: {run(python(flat_search, folder))}.")


def _write_random(folder: Path, papers: int) -> None:
    """Random vectors, and as many relevant papers for each query."""
    draw = np.random.default_rng(1)
    for bucket, first in enumerate(range(0, papers, 1_000_000)):
        ids = np.arange(first, min(papers, first + 1_000_000))
        schema = pa.schema({"corpusid": pa.int64(), "vector": pa.list_(pa.float32(), DIMENSION)})
        with table_writer(folder / f"vectors/{bucket}.parquet", "paper_embeddings", schema) as write:
            for start in range(0, len(ids), ROWS):
                of_rows = ids[start : start + ROWS]
                vectors = draw.standard_normal((len(of_rows), DIMENSION), dtype=np.float32)
                write(pa.record_batch({"corpusid": of_rows, "vector": vector_column(vectors)}))
    citations = draw.geometric(0.2, papers) - 1
    queries = np.sort(draw.choice(papers, HELD_OUT, replace=False))
    relevant = np.concatenate([np.sort(draw.choice(papers, RELEVANT, replace=False)) for _ in queries])
    _write_searches(folder / "tables", citations, np.repeat(queries, RELEVANT), relevant)


def _write_searches(tables: Path, citations: np.ndarray, queries: np.ndarray, relevant: np.ndarray) -> None:
    """Write how often papers are cited, and pairs of a query and a relevant paper."""
    popularity = pa.table({"corpusid": np.arange(len(citations)), "citations": citations})
    write_table(tables / "popularity.parquet", "popularity", popularity)
    count, columns = len(queries), {"query": queries, "paper": relevant}
    columns |= {"relevance": np.ones(count, np.int32), "split": ["test"] * count}
    write_table(tables / "searches.parquet", "searches", pa.table({"task": ["cite_search"] * count, **columns}))


def flat_search(folder: Path) -> int:
    """The nearest papers of each query, by FAISS; how many were found."""
    import faiss

    asked = np.unique(read_table(folder / "tables/searches.parquet", "searches")["query"].to_numpy())
    files = sorted((folder / "vectors").glob("*.parquet"), key=lambda file: int(file.stem))
    index = _flat_index(faiss.IndexFlatL2(DIMENSION), files)
    faiss.omp_set_num_threads(1)
    _, found = index.search(index.reconstruct_batch(asked), DEPTH + 1)
    return int(found.size)


def _flat_index(index: Any, files: Sequence[Path]) -> Any:
    """A flat index of FAISS with all vectors, read into it in blocks, so that memory holds them once."""
    import faiss

    index.ntotal = count_rows(files)
    index.codes.resize(index.ntotal * index.code_size)
    held, first = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d).reshape(-1, index.d), 0
    for vectors in _matrices(files, ROWS):
        held[first : first + len(vectors)] = vectors
        first += len(vectors)
    return index


def _matrices(files: Sequence[Path], rows: int) -> Iterator[np.ndarray]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(rows):
            yield vectors_of(pa.table(batch))


def index(folder: Path, papers: int = 1_000_000) -> None:
    """An index that is searched: time and memory of laying it out, of an answer and of the candidates of 1,500
    held-out papers, and what its vectors miss.

    The rival is IndexFlatIP, which answers by vectors only. Vectors are in clusters; abstracts have 90 words, drawn by
    Zipf's law; each paper cites ten others, well-known ones more often. Recall at 20 is of the nearest papers by the
    exact cosine, of 100 queries.
    """
    write_table(folder / "vectors/0.parquet", "paper_embeddings", clustered(papers, DIMENSION, 1))
    write_table(folder / "papers/0.parquet", "papers", _texts(papers))
    write_table(folder / "citations/0.parquet", "citations", _citations(papers))
    options: dict[str, Any] = {"settings": {"words": True}, "models": "m", "memory_mb": 4000, "threads": 2}
    tables = {"papers": folder / "papers", "citations": folder / "citations", "links": folder / "citations"}
    cost = run(cocite("retrieval", "build", folder / "vectors", **tables, **options, output=folder / "index"))
    size = sum(file.stat().st_size for file in (folder / "index").rglob("*.npy")) / 1e9
    say(f"{papers:,} papers laid out: {cost}; {size:.2f} GB on disk.")
    rows = [{"name": name, "mean": 0, "deviation": 1, "weight": 1} for name in NAMES]
    weights = {"rank": "learned", "known": "more", "weights": rows, "offsets": []}
    (folder / "index/weights.json").write_text(json.dumps(weights))
    cost, ours = answer(answers, folder)
    say(f"An answer of ours: {_times(ours)}; the process: {cost}, mapped files included.")
    cost, flat = answer(flat_answers, folder)
    say(f"An answer of IndexFlatIP, by vectors only: {_times(flat)}; the process: {cost}.")
    # Who is relevant decides nothing about what is found.
    queries = np.sort(generator(1, "held out").choice(papers, HELD_OUT, replace=False))
    _write_searches(folder / "tables", np.zeros(papers, np.int64), queries, (queries + 1) % papers)
    nothing = empty_schema(TABLES["judgements"]).empty_table()
    write_table(folder / "tables/judgements.parquet", "judgements", nothing)
    edges = (weightless(batch["citing"], batch["cited"]) for batch in _citations(papers))
    write_table(folder / "edges.parquet", "edges", edges)
    links = {"settings": {}, "memory_mb": 4000, "output": folder / "links"}
    cost = run(cocite("neighbours", "adjacency", folder / "edges.parquet", **links))
    say(f"The links of {papers:,} papers: {cost}.")
    found = {"tables": folder / "tables", "links": folder / "links", "output": folder / "candidates.parquet"}
    asked = {"settings": {"words": True}, "tasks": "cite_search", "papers": folder / "papers", **found}
    say(f"The candidates of {HELD_OUT:,} papers: {run(cocite('retrieval', 'find', folder / 'vectors', **asked))}.")
    if papers <= IN_MEMORY:
        for name, share in answer(recalls, folder)[1].items():
            say(f"Recall at {K}: {name} {share:.3f}.")


def _texts(papers: int) -> Iterator[pa.RecordBatch]:
    vocabulary = pa.array([f"w{number}" for number in range(VOCABULARY)])
    for first in range(0, papers, AT_ONCE):
        ids = range(first, min(papers, first + AT_ONCE))
        drawn = np.minimum(generator(1, "words", first).zipf(1.2, (len(ids), WORDS)), VOCABULARY) - 1
        title, abstract = (_joined(vocabulary, some) for some in np.split(drawn, [9], axis=1))
        nameless = dict.fromkeys(ids, ("", ""))
        yield from papers_table(nameless, title=title, abstract=abstract).to_batches()


def _joined(vocabulary: pa.Array, words: np.ndarray) -> pa.Array:
    """The words of each row in one text."""
    rows, each = words.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * each
    return pc.binary_join(pa.ListArray.from_arrays(offsets, vocabulary.take(pa.array(words.ravel()))), " ")


def _citations(papers: int) -> Iterator[pa.RecordBatch]:
    draw = generator(1, "citations")
    for first in range(0, papers, AT_ONCE):
        citing = np.repeat(np.arange(first, min(papers, first + AT_ONCE)), REFERENCES)
        cited = (papers * draw.random(len(citing)) ** 3).astype(np.int64)
        citing, cited = np.unique(np.stack([citing, cited])[:, citing != cited], axis=1)
        yield pa.record_batch({"citing": citing, "cited": cited, **_traits(len(citing))})


def _traits(count: int) -> dict[str, pa.Array]:
    return {"influential": pa.array(np.zeros(count, bool)), "intents": pa.array([[]] * count, TEXTS)}


def _queries(index: Any) -> list[int]:
    drawn = generator(1, "queries").choice(len(index.papers), QUERIES + WARMING, replace=False)
    return [int(paper) for paper in index.papers[drawn]]


def answers(folder: Path) -> list[float]:
    """The seconds of each answer, after the first ones."""
    from cocite.core.words import texts_of_papers
    from cocite.retrieval.search import Index

    index, seconds = Index(folder / "index"), []
    asked = _queries(index)
    blocks = texts_of_papers(folder / "papers", np.sort(asked), AT_ONCE)
    texts = {paper: text for some, of in blocks for paper, text in zip(some.tolist(), of, strict=True)}
    for paper in asked:
        vectors = index.vectors_of(paper)
        start = time.perf_counter()
        index.search(texts[paper], vectors, k=K, without=paper)
        seconds.append(time.perf_counter() - start)
    return seconds[WARMING:]


def flat_answers(folder: Path) -> list[float]:
    """The seconds of each answer of FAISS's flat index."""
    import faiss

    from cocite.retrieval.search import Index

    index, seconds = Index(folder / "index"), []
    flat = _flat_index(faiss.IndexFlatIP(DIMENSION), [folder / "vectors/0.parquet"])
    for paper in _queries(index):
        start = time.perf_counter()
        flat.search(index.vectors_of(paper)["m"][None], K)
        seconds.append(time.perf_counter() - start)
    return seconds[WARMING:]


def recalls(folder: Path) -> dict[str, float]:
    """Recall by each way to keep and search vectors."""
    from cocite.retrieval import search
    from cocite.retrieval.building import in_8_bits
    from cocite.retrieval.search import Index

    index = Index(folder / "index")
    asked = np.array(_queries(index)[WARMING:])
    matrix = np.concatenate([*_matrices([folder / "vectors/0.parquet"], AT_ONCE)])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    exact = matrix[asked] @ matrix.T
    truth = _first(exact, K)
    whole, factors = in_8_bits(matrix)
    bits = np.where(matrix > 0, 1, -1).astype(np.float32)
    ways = {
        "8 bits, all compared": (matrix[asked] @ whole.astype(np.float32).T) * factors,
        "the first 64 numbers": matrix[asked, :64] @ matrix[:, :64].T,
        "1 bit": matrix[asked] @ bits.T,
    }
    found = {name: _first(scores, K) for name, scores in ways.items()}
    for name in ("the first 64 numbers", "1 bit"):
        kept = _first(ways[name], 10 * K)
        best = _first(np.take_along_axis(exact, kept, axis=1), K)
        found[f"{name}, {10 * K} compared again"] = np.take_along_axis(kept, best, axis=1)
    for probes in (8, search.NPROBE, 128):
        search.NPROBE = probes
        lists = [index.models["m"].nearest(matrix[paper], K) for paper in asked]
        found[f"8 bits, {probes} of {len(index.models['m'].centroids)} lists"] = np.array(lists)
    pairs = {name: zip(truth, mine, strict=True) for name, mine in found.items()}
    return {name: float(np.mean([len({*a} & {*b}) / K for a, b in of])) for name, of in pairs.items()}


def _first(scores: np.ndarray, count: int) -> np.ndarray:
    return np.argpartition(-scores, count, axis=1)[:, :count]


def _times(seconds: list[float]) -> str:
    return f"median {1000 * np.median(seconds):.0f} ms, 95% within {1000 * np.quantile(seconds, 0.95):.0f} ms"


def serve(folder: Path) -> None:
    """`cocite serve` with a million papers: how long a query takes, how much memory it holds, and what it misses.

    Ours is the whole command: a request over HTTP, with titles and years. The rival is FAISS by hand, without HTTP;
    recall is held against FAISS's IndexFlatL2.

    Vectors lie in clusters. Titles have ten words, drawn by Zipf's law; a paper cites ten random ones with larger ids
    and is co-cited with the same. A file of each table holds some consecutive ids.
    """
    from cocite.tools.search_indexes import NPROBE

    results, cache = folder / "results", folder / "cache"
    run(python(write_run, results, SERVED, SERVED_DIMENSION))
    drawn = generator(1, "queries of a search").choice(SERVED, WARMED + ASKED, replace=False).tolist()
    start = time.perf_counter()
    with _served(results, cache) as (process, _):
        say(f"Indexes made in {time.perf_counter() - start:.0f} s, peak memory {_peak_mb(process):.0f} MB.")
    start = time.perf_counter()
    with _served(results, cache) as (process, port):
        say(f"Started with ready indexes in {time.perf_counter() - start:.1f} s.")
        ours = _measure(port, drawn)
        say(f"Ours: peak memory {_peak_mb(process):.0f} MB after {len(drawn):,} queries, mapped files included.")
    vectors = results / "encoder/model/seed-1/papers"
    cost, rival = answer(search_by_hand, vectors, "ivf", json.dumps(drawn), NEAREST, NPROBE)
    _say_times("FAISS by hand, IVF of whole vectors in memory", rival["seconds"])
    say(f"FAISS by hand: peak memory {cost.peak_mb:.0f} MB.")
    _, truth = answer(search_by_hand, vectors, "flat", json.dumps(drawn[: WARMED + TRUE]), NEAREST, NPROBE)
    _say_times("FAISS's IndexFlatL2", truth["seconds"])
    for name, found in (("ours", ours), ("FAISS by hand", rival["found"])):
        pairs = zip(found[WARMED:], truth["found"][WARMED:], strict=False)
        hits = sum(len(set(mine) & set(right)) for mine, right in pairs)
        say(f"Recall at {NEAREST}, {NPROBE} lists of {round(SERVED**0.5):,}: {name} {hits / (TRUE * NEAREST):.3f}.")


def _measure(port: int, queries: Sequence[int]) -> list[list[int]]:
    """Print the times of the requests; return the neighbours of each query."""
    connection = HTTPConnection("127.0.0.1", port)
    times: dict[str, list[float]] = {"neighbours": [], "filtered": [], "relations": [], "links": [], "titles": []}
    found, words = [], []
    for query in queries:
        seconds, hits = _asked(connection, f"/api/nearest?model=model/1&paper={query}&k={NEAREST}")
        times["neighbours"].append(seconds)
        found.append([int(hit["paper"]) for hit in hits])
        first, second = hits[0]["title"].split()[:2]
        words.append(f"{first}+{second[:4]}")
    for query, others, typed in zip(queries[: WARMED + TRUE], found, words, strict=False):
        listed = ",".join(map(str, others))
        path = f"/api/nearest?model=model/1&paper={query}&k={NEAREST}&years=2000-2010"
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
    measured = np.array(seconds[WARMED:]) * 1000
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

    ids, vectors = vectors_in(sorted(folder.glob("*.parquet")))
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
    for number, batch in enumerate(clustered(papers, dimension, gap=1)):
        ids = batch["corpusid"].to_numpy()
        drawn = generator(1, "papers of a run", number)
        write_table(results / f"encoder/model/seed-1/papers/{number}.parquet", "paper_embeddings", [batch])
        write_table(results / f"corpus/papers/{number}.parquet", "papers", _papers(ids, drawn))
        others = ids[:, None] + np.cumsum(drawn.integers(1, papers // REFERENCES, (len(ids), REFERENCES)), axis=1)
        citing, cited = np.repeat(ids, REFERENCES), others.ravel()
        citations = pa.table({"citing": citing, "cited": cited, **_traits(len(cited))})
        write_table(results / f"corpus/citations/{number}.parquet", "citations", citations)
        count = drawn.integers(1, 20, len(cited), dtype=np.int32)
        pairs = pa.table({"paper": citing, "other": cited, "count": count})
        write_table(results / f"graph/cocitation/cocitations/{number}.parquet", "cocitations", pairs)


def _papers(ids: np.ndarray, drawn: np.random.Generator) -> pa.Table:
    words = np.minimum(drawn.zipf(1.3, (len(ids), TITLE)), TITLE_VOCABULARY)
    titles = (" ".join(map(_word, row)) for row in words.tolist())
    counts = drawn.integers(0, 1000, len(ids))
    numbers = {"year": drawn.integers(1950, 2025, len(ids)), "citation_count": counts, "reference_count": counts}
    return papers_table({paper: (title, None) for paper, title in zip(ids.tolist(), titles, strict=True)}, **numbers)


def _word(number: int) -> str:
    return "".join(SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(3))
