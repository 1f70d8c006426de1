"""fastText, SIF and SGC as one writes them with gensim, scikit-learn, SciPy and NumPy: all is in memory."""

import json
import sys
from pathlib import Path

import numpy as np


def main(step: str, folder: Path, settings: str) -> None:
    """Train with some settings, find the first principal component over fastText's vectors, or propagate."""
    if step == "sgc":
        _sgc(folder)
        return
    from sklearn.feature_extraction.text import TfidfVectorizer

    from cocite.core.tables.files import read_table

    table = read_table(folder / "papers", "papers", ["title", "abstract"]).slice(100)
    texts = [f"{title} {abstract}" for title, abstract in zip(*(c.to_pylist() for c in table.columns), strict=True)]
    analyse = TfidfVectorizer(strip_accents="unicode").build_analyzer()
    if step == "fasttext":
        _fasttext([analyse(text) for text in texts], texts, json.loads(settings), folder)
    else:
        _sif(texts, folder)


def _fasttext(words: list[list[str]], texts: list[str], given: dict, folder: Path) -> None:
    from gensim.models import FastText
    from sklearn.feature_extraction.text import TfidfVectorizer

    epochs = given["epochs"]
    model = FastText(
        vector_size=given["dimension"], sg=0, bucket=given["parts"], epochs=epochs, alpha=0.025, seed=1, workers=1
    )
    model.build_vocab(corpus_iterable=words)
    model.train(corpus_iterable=words, total_examples=len(words), epochs=epochs)
    TfidfVectorizer(strip_accents="unicode", stop_words="english", min_df=3, max_df=0.75).fit(texts)
    counts = np.array([model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key])
    np.savez(folder / "by-hand.npz", words=model.wv.index_to_key, vectors=model.wv.vectors, counts=counts)


def _sif(texts: list[str], folder: Path) -> None:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer

    with np.load(folder / "by-hand.npz") as known:
        words, vectors, counts = known["words"].tolist(), known["vectors"], known["counts"]
    weights = 1e-3 / (1e-3 + counts / counts.sum())
    of_texts = CountVectorizer(vocabulary=words, strip_accents="unicode").transform(texts)
    means = (of_texts @ (vectors * weights[:, None])) / np.maximum(of_texts.sum(axis=1), 1)
    TruncatedSVD(n_components=1, n_iter=7, random_state=0).fit(np.asarray(means))


def _sgc(folder: Path) -> None:
    from scipy.sparse import coo_array, diags_array, eye_array

    from cocite.core.tables.files import read_table, vectors_of

    features = vectors_of(read_table(folder / "vectors.parquet", "baseline_paper_embeddings"))
    edges = read_table(folder / "edges.parquet", "edges")
    source, target = (edges[name].to_numpy() - 1 for name in ("source", "target"))
    count = len(features)
    directed = coo_array((np.ones(len(source), dtype=np.float32), (source, target)), shape=(count, count)).tocsr()
    with_loops = directed + directed.T + eye_array(count, dtype=np.float32)
    scale = diags_array((with_loops.sum(axis=1) ** -0.5).astype(np.float32))
    smooth = scale @ with_loops @ scale
    np.save(folder / "by-hand.npy", smooth @ (smooth @ features))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
