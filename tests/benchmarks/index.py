"""An index that is searched: time and memory of laying it out, of an answer and of the candidates of 1,500 held-out
papers, and what its vectors miss.

The rival is FAISS's IndexFlatIP with all vectors in memory, which answers by vectors only. Vectors are in clusters as
`clustered_vectors` has them; abstracts have 90 words, drawn by Zipf's law; each paper cites ten others, well-known ones
more often. Recall at 20 is of the nearest papers by the exact cosine, of 100 queries.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.benchmarks.clustered_vectors import batches
from tests.benchmarks.corpus_search import flat_index
from tests.benchmarks.measuring import answer, cocite, run, say
from tests.papers import papers_table

from cocite.core.randomness import generator
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import vectors_of, write_table
from cocite.core.words import texts_of_papers

DIMENSION, WORDS, VOCABULARY, REFERENCES = 256, 90, 100_000, 10
QUERIES, WARMING, K, ROWS, HELD_OUT = 100, 10, 20, 50_000, 1500
IN_MEMORY = 2_000_000
"""Papers whose vectors fit in memory several times; with more, the recalls are left out."""
NAMES = ("cosine m", "words", "votes_10", "votes_30", "votes_100", "citations", "without links", "age")


def main(folder: Path, papers: int = 1_000_000) -> None:
    write_table(folder / "vectors/0.parquet", "paper_embeddings", batches(papers, DIMENSION, 1))
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
    _write_hold_out(folder / "tables", papers)
    write_table(folder / "edges.parquet", "edges", map(_edges, _citations(papers)))
    links = {"settings": {}, "memory_mb": 4000, "output": folder / "links"}
    cost = run(cocite("neighbours", "adjacency", folder / "edges.parquet", **links))
    say(f"The links of {papers:,} papers: {cost}.")
    found = {"tables": folder / "tables", "links": folder / "links", "output": folder / "candidates.parquet"}
    asked = {"settings": {"words": True}, "tasks": "cite_search", "papers": folder / "papers", **found}
    say(f"The candidates of {HELD_OUT:,} papers: {run(cocite('retrieval', 'find', folder / 'vectors', **asked))}.")
    if papers > IN_MEMORY:
        return
    _, shares = answer(recalls, folder)
    for name, share in shares.items():
        say(f"Recall at {K}: {name} {share:.3f}.")


def _texts(papers: int) -> Iterator[pa.RecordBatch]:
    vocabulary = pa.array([f"w{number}" for number in range(VOCABULARY)])
    for first in range(0, papers, ROWS):
        ids = range(first, min(papers, first + ROWS))
        drawn = np.minimum(generator(1, "words", first).zipf(1.2, (len(ids), WORDS)), VOCABULARY) - 1
        title, abstract = (_joined(vocabulary, some) for some in np.split(drawn, [9], axis=1))
        nameless = dict.fromkeys(ids, ("", ""))
        yield from papers_table(nameless, title=title, abstract=abstract).to_batches()


def _joined(vocabulary: pa.Array, words: np.ndarray) -> pa.Array:
    """The words of each row in one text."""
    rows, each = words.shape
    lists = pa.ListArray.from_arrays(
        np.arange(rows + 1, dtype=np.int32) * each, vocabulary.take(pa.array(words.ravel()))
    )
    return pc.binary_join(lists, " ")


def _citations(papers: int) -> Iterator[pa.RecordBatch]:
    draw = generator(1, "citations")
    for first in range(0, papers, ROWS):
        citing = np.repeat(np.arange(first, min(papers, first + ROWS)), REFERENCES)
        cited = (papers * draw.random(len(citing)) ** 3).astype(np.int64)
        citing, cited = np.unique(np.stack([citing, cited])[:, citing != cited], axis=1)
        intents = pa.array([[]] * len(citing), pa.list_(pa.string()))
        marks = {"influential": pa.array(np.zeros(len(citing), bool)), "intents": intents}
        yield pa.record_batch({"citing": citing, "cited": cited, **marks})


def _edges(citations: pa.RecordBatch) -> pa.RecordBatch:
    pairs = {"source": citations["citing"], "target": citations["cited"]}
    return pa.record_batch({**pairs, "weight": np.ones(len(citations), np.float32)})


def _write_hold_out(tables: Path, papers: int) -> None:
    """Papers that search the corpus; who is relevant decides nothing about what is found."""
    write_table(
        tables / "popularity.parquet",
        "popularity",
        pa.table({"corpusid": np.arange(papers), "citations": np.zeros(papers, np.int64)}),
    )
    queries = np.sort(generator(1, "held out").choice(papers, HELD_OUT, replace=False))
    of_task = {"task": ["cite_search"] * HELD_OUT, "query": queries, "paper": (queries + 1) % papers}
    marks = {"relevance": np.ones(HELD_OUT, np.int32), "split": ["test"] * HELD_OUT}
    write_table(tables / "searches.parquet", "searches", pa.table({**of_task, **marks}))
    write_table(tables / "judgements.parquet", "judgements", empty_schema(TABLES["judgements"]).empty_table())


def _queries(index: Any) -> list[int]:
    drawn = generator(1, "queries").choice(len(index.papers), QUERIES + WARMING, replace=False)
    return [int(paper) for paper in index.papers[drawn]]


def answers(folder: Path) -> list[float]:
    """The seconds of each answer, after the first ones."""
    from cocite.retrieval.search import Index

    index, seconds = Index(folder / "index"), []
    asked = _queries(index)
    for paper, text in zip(asked, _texts_of(folder / "papers", asked), strict=True):
        vectors = index.vectors_of(paper)
        start = time.perf_counter()
        index.search(text, vectors, k=K, without=paper)
        seconds.append(time.perf_counter() - start)
    return seconds[WARMING:]


def _texts_of(papers: Path, asked: list[int]) -> list[str]:
    """The texts of some papers, read in blocks."""
    blocks = texts_of_papers(papers, np.sort(asked), ROWS)
    texts = {paper: text for some, of in blocks for paper, text in zip(some.tolist(), of, strict=True)}
    return [texts[paper] for paper in asked]


def flat_answers(folder: Path) -> list[float]:
    """The seconds of each answer of FAISS's flat index."""
    import faiss

    from cocite.retrieval.search import Index

    index, seconds = Index(folder / "index"), []
    flat = flat_index(faiss.IndexFlatIP(DIMENSION), [folder / "vectors/0.parquet"])
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
    matrix = np.concatenate([*_matrices(folder)])
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


def _matrices(folder: Path) -> Iterator[np.ndarray]:
    for batch in pq.ParquetFile(folder / "vectors/0.parquet").iter_batches(ROWS):
        yield vectors_of(pa.table(batch))


def _times(seconds: list[float]) -> str:
    return f"median {1000 * np.median(seconds):.0f} ms, 95% within {1000 * np.quantile(seconds, 0.95):.0f} ms"
