"""What is searched for neighbours, in which index or along which links, and what that costs."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from snakemake.io import expand

from cocite.config.embeddings import Hnsw, Ivf, Neighbours, Walks
from cocite.config.mining import ByEncoder, ByModel, ByWords
from cocite.config.settings import settings_of
from cocite.plan.stage import PAPER_MB, PRODUCTS, StagePlan, as_text, megabytes, size_mb, whole, within_a_day

NEIGHBOURS = "<results>/neighbours/{embedding}/neighbours/{bucket}.parquet"
QUERY_MB = 2e-6
"""The least that a query takes in its table, MB."""
LINKS = 1e7
"""Links that a walk looks at in a second."""


class NeighbourPlan(StagePlan):
    """Searches in graph embeddings, walks on graphs, and the search for mined negatives."""

    @cached_property
    def rankings(self) -> dict[str, Neighbours | Walks]:
        """What ranks neighbours, by name: the searches in embeddings, then walks."""
        searches = {name: entry.neighbours for name, entry in self.config.embeddings.items()}
        return {**searches, **self.config.walks}

    @cached_property
    def approximate(self) -> list[str]:
        """The embeddings that are searched by an approximate index."""
        return [name for name, entry in self.config.embeddings.items() if entry.neighbours.index.kind != "flat"]

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
        """Memory of a search, MB: more of it compares more queries at a time; each thread has three copies of a block
        of 4,096 vectors. HNSW also keeps its index in memory."""
        entry = self.config.embeddings[wildcards.embedding]
        blocks = threads * 3 * 4096 * (entry.dimension * 4 / 1e6)
        held = size_mb(input.index) if isinstance(entry.neighbours.index, Hnsw) else 0
        return whole(1000 + blocks + held) * attempt

    def search_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of a search: that of comparing each query of the shard with each vector, an upper bound for an index."""
        queries = size_mb(input.queries) / QUERY_MB / self.rankings[wildcards.embedding].query_jobs
        return within_a_day(20 + _minutes_to_compare(queries, input.vectors, threads), attempt)

    def adjacency_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to lay links out, MB: of edges of 4 bytes on the disk, more than all links at once; more memory goes
        through the edges less often."""
        return min(16_000, whole(800 + 4 * size_mb(input.edges))) * attempt

    def walk_memory(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Memory of walks, MB: the links, which are on the disk, and 36 bytes per thread and paper; its id takes 8."""
        links = size_mb(input.adjacency)  # Before a file in it: Snakemake waits for an input that is missing.
        papers = size_mb(f"{input.adjacency}/ids.npy") / 8
        return whole(700 + links + threads * 36 * papers) * attempt

    def walk_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of walks: as if each query of the shard looked at as many links as its tolerance allows, or at all links
        a hundred times."""
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
        """Memory of mining, MB: vectors of up to 2 GB are held in half of it; more of them are read again and again. Of
        words the distinct ones are held, 150 bytes each, and a paper may bring a new one."""
        words = 0 if input.vectors else 1.5e-4 * size_mb([*input.papers, *input.texts]) / PAPER_MB
        return whole(2000 + words + min(4000, 2.5 * size_mb(input.vectors))) * attempt

    def mining_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of mining: that of comparing every query, some 20 bytes of its set, with every vector. Words of 1 MB of
        texts take 2 s, and a query and a text with words of it 8 ns."""
        queries = size_mb(input.examples) / 2e-5
        texts = 0 if input.vectors else size_mb([*input.papers, *input.texts])
        words = 2 * texts / 60 + 8e-9 * queries * texts / PAPER_MB / 60 / threads
        return within_a_day(20 + words + _minutes_to_compare(queries, input.vectors, threads), attempt)


def _minutes_to_compare(queries: float, vectors: Any, threads: int) -> float:
    products = queries * size_mb(vectors) * 1e6 / 4
    return 4 * products / PRODUCTS / 60 / threads
