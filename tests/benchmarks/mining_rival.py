"""The rival of mining: sentence-transformers' `mine_hard_negatives` with vectors that are ready.

It is imported by no benchmark, which would hold its libraries.
"""

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import torch
from datasets import Dataset
from sentence_transformers import util
from tests.benchmarks.searching import vectors_in


class Ready:
    """Stands for a SentenceTransformer: texts are the places of vectors, which are ready and of length 1."""

    device = torch.device("cpu")
    model_card_data = SimpleNamespace(base_model="")
    similarity = staticmethod(util.dot_score)
    similarity_pairwise = staticmethod(util.pairwise_dot_score)

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors

    def get_embedding_dimension(self) -> int:
        return self.vectors.shape[1]

    def encode_query(self, texts: list[str], **options: object) -> np.ndarray:
        return self.vectors[list(map(int, texts))]

    def encode_document(self, texts: list[str], **options: object) -> np.ndarray:
        """The vectors of all documents, whose texts come in the order of their places."""
        assert len(texts) == len(self.vectors)
        return self.vectors


def mine(folder: Path, by: str, threads: int, negatives: int, last_rank: int, relative_margin: float) -> float:
    """Read the tables, mine, and write the negatives that are found; return the seconds of the function alone."""
    torch.set_num_threads(threads)
    if by == "faiss":
        import faiss

        faiss.omp_set_num_threads(threads)
    ids, vectors = vectors_in([folder / "paper_embeddings.parquet"])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = pq.read_table(folder / "triplets.parquet", columns=["query", "positive"])
    places = {name: np.searchsorted(ids, pairs[name].to_numpy()) for name in pairs.column_names}
    given = Dataset.from_dict({name: list(map(str, of_role)) for name, of_role in places.items()})
    corpus = list(map(str, range(len(ids))))
    start = time.perf_counter()
    options = {"range_max": last_rank, "relative_margin": relative_margin, "num_negatives": negatives}
    options |= {"corpus": corpus, "use_faiss": by == "faiss", "verbose": False}
    mined = util.mine_hard_negatives(given, Ready(vectors), **options)
    seconds = time.perf_counter() - start
    found = np.array([mined["query"], mined["negative"]]).astype(int).T
    np.save(folder / f"{by}.npy", ids[found])
    return seconds
