"""What is searched for neighbours, in which index or along which links, and what that costs."""

from collections.abc import Callable
from typing import Any

from snakemake.io import expand

from cocite.config.embeddings import Hnsw, Ivf, Neighbours, Walks
from cocite.config.mining import ByEncoder, ByModel, ByWords
from cocite.config.settings import settings_of
from cocite.plan.stage import PAPER_MB, PRODUCTS, StagePlan, as_text, megabytes, size_mb, whole, within_a_day

NEIGHBOURS = "<results>/neighbours/{embedding}/neighbours/{bucket}.parquet"
QUERY_MB = 2e-6  # the least that a query takes in its table, MB
LINKS = 1e7  # links that a walk looks at in a second


class NeighbourPlan(StagePlan):
    """Searches in graph embeddings, walks on graphs, and the search for mined negatives."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        searches = {name: entry.neighbours for name, entry in self.config.embeddings.items()}
        self.rankings: dict[str, Neighbours | Walks] = {**searches, **self.config.walks}
        """What ranks neighbours, by name: the searches in embeddings, then walks."""
        self.approximate = [name for name, search in searches.items() if search.index.kind != "flat"]
        """The embeddings that are searched by an approximate index."""

    def shards(self, embedding: str) -> range:
        """The jobs that share the queries of a search or of walks."""
        return range(self.rankings[embedding].query_jobs)

    def of(self, embedding: str) -> list[str]:
        """The neighbours of an embedding, or of walks: a file for each shard of the queries."""
        return expand(NEIGHBOURS, embedding=embedding, bucket=self.shards(embedding))

    def all_neighbours(self) -> list[str]:
        """The neighbours of all embeddings and walks."""
        return [file for name in self.rankings for file in self.of(name)]

    def searched_papers(self, wildcards: Any) -> list[str]:
        """The papers with a text, or a set of triplets, if the search is limited to these."""
        ranking = self.rankings[wildcards.embedding]
        if isinstance(ranking, Neighbours) and ranking.papers_of is not None:
            return [self.plan.triplets.sampled(ranking.papers_of)]
        return self.plan.corpus.papers() if ranking.among == "texts" else []

    def search_settings(self, kind: Any) -> Callable[[Any], str]:
        """The settings of an embedding's search that a step uses, as JSON."""
        return lambda wildcards: as_text(settings_of(self.rankings[wildcards.embedding], kind))

    def index_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to build an index, MB: the sample of an IVF index in two copies; all vectors and links of HNSW."""
        entry = self.config.embeddings[wildcards.embedding]
        if not isinstance(entry.neighbours.index, Ivf):
            return megabytes(700, vectors=3)(wildcards, input, attempt)
        sample = entry.neighbours.index.nlist * 64 * (entry.dimension * 4 / 1e6)
        return whole(700 + 3 * sample) * attempt

    def search_memory(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Memory of a search, MB: three copies of a block of 4,096 vectors per thread, and the index of HNSW."""
        entry = self.config.embeddings[wildcards.embedding]
        blocks = threads * 3 * 4096 * (entry.dimension * 4 / 1e6)
        held = size_mb(input.index) if isinstance(entry.neighbours.index, Hnsw) else 0
        return whole(1000 + blocks + held) * attempt

    def search_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of a search: that of comparing each query of the shard with each vector, an upper bound for an index."""
        queries = size_mb(input.queries) / QUERY_MB / self.rankings[wildcards.embedding].query_jobs
        return within_a_day(20 + _minutes_to_compare(queries, input.vectors, threads), attempt)

    def adjacency_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to lay links out, MB, more than all at once; with more, edges are gone through less often."""
        return min(16_000, whole(800 + 4 * size_mb(input.edges))) * attempt

    def walk_memory(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Memory of walks, MB: the links, which are on the disk, and 36 bytes per thread and paper; its id takes 8."""
        links = size_mb(input.adjacency)  # Before a file in it: Snakemake waits for an input that is missing.
        papers = size_mb(f"{input.adjacency}/ids.npy") / 8
        return whole(700 + links + threads * 36 * papers) * attempt

    def walk_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of walks: each query looks at as many links as its tolerance allows, or at all a hundred times."""
        entry = self.config.walks[wildcards.embedding]
        links = min(1 / (entry.restart * entry.tolerance), 100 * size_mb(input.adjacency) * 1e6 / 4)
        queries = size_mb(input.queries) / QUERY_MB / entry.query_jobs
        return within_a_day(20 + queries * links / LINKS / 60 / threads, attempt)

    def mined_vectors(self, wildcards: Any) -> list[str]:
        """The vectors that negatives are mined by: those of the papers and of the set's own texts; none for BM25."""
        entry: Any = self.config.triplets[wildcards.triplets]
        match entry.by:
            case ByWords():
                return []
            case ByEncoder(name=name):
                folder = f"<results>/encoder/untrained_{name}/seed-0"
            case ByModel(name=name, training_seed=seed):
                folder = f"<results>/encoder/{name}/seed-{seed or self.config.models[name].seeds[0]}"
        with_texts = self.plan.triplets.sets_with_texts(entry.of)
        texts = [f"{folder}/texts/{name}/texts.parquet" for name in with_texts]
        return texts if entry.collection == "texts" else self.buckets(f"{folder}/papers/{{bucket}}.parquet") + texts

    def mining_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of mining, MB: up to 2 GB of vectors in half of it, or distinct words, 150 bytes each."""
        words = 0 if input.vectors else 1.5e-4 * size_mb([*input.papers, *input.texts]) / PAPER_MB
        return whole(2000 + words + min(4000, 2.5 * size_mb(input.vectors))) * attempt

    def mining_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of mining: each query (20 bytes) with each vector; 1 MB of texts takes 2 s, a pair with words 8 ns."""
        queries = size_mb(input.examples) / 2e-5
        texts = 0 if input.vectors else size_mb([*input.papers, *input.texts])
        words = 2 * texts / 60 + 8e-9 * queries * texts / PAPER_MB / 60 / threads
        return within_a_day(20 + words + _minutes_to_compare(queries, input.vectors, threads), attempt)


def _minutes_to_compare(queries: float, vectors: Any, threads: int) -> float:
    products = queries * size_mb(vectors) * 1e6 / 4
    return 4 * products / PRODUCTS / 60 / threads
