"""Baselines beside the libraries called by hand in the same run. Both sides are whole processes with the same files."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.benchmarks.made_graphs import weightless
from tests.benchmarks.made_triplets import AT_ONCE, documents_table, write_papers
from tests.benchmarks.measuring import Cost, cocite, python, run, say

from cocite.core.tables.files import read_table, vector_column, vectors_of, write_table

MEMORY_MB = 4000
SETTINGS = {"dimension": 100, "architecture": "cbow", "epochs": 1, "bucket": 100_000}
FASTTEXT = {"kind": "fasttext", **SETTINGS}
SGC = {"kind": "sgc", "of": "sif", "graph": "citation", "hops": 2}
SIF = {"kind": "sif", "of": "fasttext"}
DIMENSION, CITED, BROUGHT_DIMENSION = 100, 10, 768


def baselines(folder: Path, papers: int = 500_000) -> None:
    """Baselines trained on generated abstracts, which ours reads as streams.

    By hand, all texts are in memory, as well as the means that SIF takes the component of and the vectors of SGC.
    gensim trains with one thread on either side.
    """
    run(python(write_papers, folder, papers))
    run(python(write_features, folder, papers))
    texts = {"papers": [str(folder / "papers" / "0.parquet")]}
    vectors = {"paper_vectors": [str(folder / "vectors.parquet")], "edges": [str(folder / "edges.parquet")]}
    for name, settings, sources, by_hand in (
        ("fastText", FASTTEXT, texts, fasttext),
        ("SIF", SIF, texts | {"baseline": str(folder / "fasttext")}, sif),
        ("SGC", SGC, vectors, sgc),
    ):
        ours = _ours(folder, settings, sources)
        say(f"{name} of {papers:,} papers: {ours}, by hand {run(python(by_hand, folder))}.")


def _ours(folder: Path, settings: dict[str, object], sources: dict[str, object]) -> Cost:
    kind = settings["kind"]
    options = {"settings": settings, "sources": sources, "queries": folder / "queries.parquet", "seed": 1}
    options |= {"training_seed": 1, "threads": 2, "memory_mb": MEMORY_MB, "state": folder / "state" / kind}
    return run(cocite("baselines", "train", **options, output=folder / kind))


def _texts(folder: Path) -> list[str]:
    table = read_table(folder / "papers", "papers", ["title", "abstract"]).slice(100)
    return [f"{title} {abstract}" for title, abstract in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def fasttext(folder: Path) -> None:
    """Train on the texts as gensim does, and count their words with scikit-learn."""
    from gensim.models import FastText
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, epochs = _texts(folder), SETTINGS["epochs"]
    words = list(map(TfidfVectorizer(strip_accents="unicode").build_analyzer(), texts))
    sizes = {"vector_size": SETTINGS["dimension"], "bucket": SETTINGS["bucket"]}
    model = FastText(**sizes, sg=0, epochs=epochs, alpha=0.025, seed=1, workers=1)
    model.build_vocab(corpus_iterable=words)
    model.train(corpus_iterable=words, total_examples=len(words), epochs=epochs)
    TfidfVectorizer(strip_accents="unicode", stop_words="english", min_df=3, max_df=0.75).fit(texts)
    counts = np.array([model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key])
    np.savez(folder / "by-hand.npz", words=model.wv.index_to_key, vectors=model.wv.vectors, counts=counts)


def sif(folder: Path) -> None:
    """Find the first principal component over the means of fastText vectors, which are in memory."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer

    with np.load(folder / "by-hand.npz") as known:
        words, vectors, counts = known["words"].tolist(), known["vectors"], known["counts"]
    weights = 1e-3 / (1e-3 + counts / counts.sum())
    of_texts = CountVectorizer(vocabulary=words, strip_accents="unicode").transform(_texts(folder))
    means = (of_texts @ (vectors * weights[:, None])) / np.maximum(of_texts.sum(axis=1), 1)
    TruncatedSVD(n_components=1, n_iter=7, random_state=0).fit(np.asarray(means))


def sgc(folder: Path) -> None:
    """Propagate the vectors, which are in memory, over the graph."""
    from scipy.sparse import coo_array, diags_array, eye_array

    features = vectors_of(read_table(folder / "vectors.parquet", "baseline_paper_embeddings"))
    edges = read_table(folder / "edges.parquet", "edges")
    source, target = (edges[name].to_numpy() - 1 for name in ("source", "target"))
    count = len(features)
    directed = coo_array((np.ones(len(source), dtype=np.float32), (source, target)), shape=(count, count)).tocsr()
    with_loops = directed + directed.T + eye_array(count, dtype=np.float32)
    scale = diags_array((with_loops.sum(axis=1) ** -0.5).astype(np.float32))
    smooth = scale @ with_loops @ scale
    np.save(folder / "by-hand.npy", smooth @ (smooth @ features))


def write_features(folder: Path, papers: int) -> None:
    """Write a bucket of vectors and one of edges; citations grow with their square, so that early papers have most."""
    write_table(folder / "vectors.parquet", "baseline_paper_embeddings", _vectors(papers))
    write_table(folder / "edges.parquet", "edges", _edges(papers))


def _vectors(papers: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(1)
    for start in range(0, papers, AT_ONCE):
        ids = np.arange(start + 1, min(start + AT_ONCE, papers) + 1)
        vectors = draw.standard_normal((len(ids), DIMENSION)).astype(np.float32)
        yield pa.record_batch({"corpusid": ids, "vector": vector_column(vectors)})


def _edges(papers: int) -> Iterator[pa.RecordBatch]:
    draw = np.random.default_rng(2)
    for start in range(1, papers, AT_ONCE):
        citing = np.repeat(np.arange(start + 1, min(start + AT_ONCE, papers) + 1), CITED)
        cited = 1 + ((citing - 1) * draw.random(len(citing)) ** 2).astype(np.int64)
        yield weightless(*np.unique(np.stack([citing, cited], axis=1), axis=0).T)


def brought(folder: Path, documents: int = 100_000) -> None:
    """Brought vectors in the layout of SPECTER's files, beside `json` line by line.

    Ours reads the documents, reads and checks the vectors, and writes the table of them. By hand, the vectors are read
    and stacked, and neither checked nor written.
    """
    run(python(write_brought, folder, documents))
    path = folder / "vectors.jsonl"
    settings = {"kind": "brought", "path": str(path)}
    options = {"sources": {}, "seed": 1, "threads": 2, "output": folder / "embeddings.parquet"}
    ours = cocite("baselines", "embed", folder / "documents.parquet", settings=settings, **options)
    for name, command in (("The command", ours), ("By hand", python(read_by_hand, path))):
        size = path.stat().st_size / 1e9
        say(f"{name}, {documents:,} documents, {size:.1f} GB of JSON: {run(command)}.")


def read_by_hand(path: Path) -> None:
    with path.open(encoding="utf-8") as lines:
        np.stack([np.array(json.loads(line)["embedding"], np.float32) for line in lines])


def write_brought(folder: Path, documents: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw, names = np.random.default_rng(1), [f"{number:040x}" for number in range(documents)]
    with (folder / "vectors.jsonl").open("w", encoding="utf-8") as file:
        for name in names:
            vector = draw.standard_normal(BROUGHT_DIMENSION).tolist()
            file.write(json.dumps({"paper_id": name, "title": f"On the paper {name}", "embedding": vector}) + "\n")
    table = documents_table(names, pa.array(names), pa.nulls(documents, pa.string()))
    write_table(folder / "documents.parquet", "documents", table)
