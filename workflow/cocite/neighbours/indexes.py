"""The ways to search: exact, or in an approximate index that was built before."""

from pathlib import Path

from cocite.config.embeddings import HnswWalk, IndexSettings, IvfProbing, SearchSettings
from cocite.config.settings import GivenAsJson
from cocite.core.errors import InputError
from cocite.core.options import OnlyPapers, Output, Seed, Threads, Vectors
from cocite.neighbours.distances import Metric
from cocite.neighbours.exact import ExactSearch, Search
from cocite.neighbours.vectors import VectorTable, open_vectors


def build_index(
    vectors: Vectors,
    settings: GivenAsJson[IndexSettings],
    *,
    papers: OnlyPapers = (),
    seed: Seed,
    threads: Threads,
    output: Output,
) -> None:
    """Write the folder of the index that the settings ask for.

    It holds the papers of the table `graph_embeddings` or, with the buckets of the table papers, those with a text.
    """
    table, metric = open_vectors(vectors, papers), Metric[settings.metric.upper()]
    if settings.index.kind == "ivf":
        from cocite.neighbours.ivf import build_ivf

        build_ivf(table, metric, settings.index.nlist, seed=seed, threads=threads, output=output)
    else:
        from cocite.neighbours.hnsw import build_hnsw

        build_hnsw(table, metric, settings.index, output=output)


def choose_search(settings: SearchSettings, table: VectorTable, index: Path | None) -> Search:
    """The search that the settings ask for. Raises `InputError` where it needs an index, or has one and needs none."""
    metric = Metric[settings.metric.upper()]
    if (index is None) != (settings.index.kind == "flat"):
        raise InputError(f"index is {settings.index.kind}: --index must {'be empty' if index else 'name its folder'}.")
    if index is None:
        return ExactSearch(table, metric)
    if not index.is_dir():
        raise InputError(f"{index}: does not exist; `cocite neighbours index` builds it.")
    # FAISS takes longer to import than a small exact search takes.
    match settings.index:
        case IvfProbing(nprobe=nprobe):
            from cocite.neighbours.ivf import IVFSearch

            return IVFSearch(table, metric, index, nprobe)
        case HnswWalk(ef_search=ef_search):
            from cocite.neighbours.hnsw import HNSWSearch

            return HNSWSearch(table, metric, index, ef_search)
        case _:
            raise AssertionError(settings.index)
