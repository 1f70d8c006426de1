"""Graphs, their embeddings and neighbours: what they are made of or searched in, and what that costs."""

from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

from cocite.config.embeddings import Hnsw, Ivf, Neighbours, Walks
from cocite.config.graphs import PAIRS
from cocite.config.mining import ByEncoder, ByModel, ByWords
from cocite.config.settings import settings_of
from cocite.plan.stage import PRODUCTS, Request, StagePlan, as_text, expand, megabytes, size_mb, within_a_day

EDGES = "<results>/graph/{graph}/edges/{bucket}.parquet"
PADDED_MB = 158
"""Size to which PyTorch-BigGraph's importer pads each of its files, MB."""
NEIGHBOURS = "<results>/neighbours/{embedding}/neighbours/{bucket}.parquet"
QUERY_MB = 2e-6
"""The least that a query takes in its table, MB."""
LINKS = 1e7
"""Links that a walk looks at in a second."""


class GraphPlan(StagePlan):
    """Graphs and their embeddings."""

    @cached_property
    def pairs(self) -> dict[str, str]:
        """The table of pairs of each graph that is made of pairs."""
        return {name: PAIRS[entry.signal] for name, entry in self.config.graphs.items() if entry.signal in PAIRS}

    def tables_of_pairs(self) -> list[str]:
        """The pairs of all graphs that are made of them."""
        return [file for graph in self.pairs for file in self.pairs_or_edges(graph)]

    def edges(self, graph: Any) -> list[str]:
        """The edges of a graph or of several."""
        return self.buckets(EDGES, graph=graph)

    def pairs_or_edges(self, graph: str) -> list[str]:
        """What is sampled from a graph: its pairs if it is made of them, or its edges."""
        table = self.pairs.get(graph, "edges")
        return self.buckets("<results>/graph/{graph}/{table}/{bucket}.parquet", graph=graph, table=table)

    @cached_property
    def chosen(self) -> list[str]:
        """The graphs that are built from some of the citations."""
        return [name for name, entry in self.config.graphs.items() if getattr(entry, "citations", None) is not None]

    def papers_with_authors(self) -> list[str]:
        """The papers if they have the names of their authors; else nothing."""
        return self.plan.corpus.papers() if self.config.corpus.authors else []

    def citations_in_groups(self, wildcards: Any) -> list[str]:
        """All citations, sharded by the paper that cites a group of papers or that a group cites, or all sentences."""
        table = {
            "cocitation": "citations",
            "sentence-cocitation": "contexts",
            "coupling": "citations_by_cited",
        }[self.config.graphs[wildcards.graph].signal]
        return self.buckets(self._source_of(wildcards.graph, table))

    def citations_of_bucket(self, wildcards: Any) -> str:
        """A bucket of the citations that become edges."""
        return self._source_of(wildcards.graph, "citations")

    def _source_of(self, graph: str, table: str) -> str:
        """The files of a table of citations that a graph is built from: those of the corpus, or those that it chose."""
        usual = "graph" if table == "citations_by_cited" else "corpus"
        return f"<results>/{f'graph/{graph}' if graph in self.chosen else usual}/{table}/{{bucket}}.parquet"

    def pairs_of_bucket(self, wildcards: Any) -> str:
        """A bucket of the pairs that become edges."""
        return f"<results>/graph/{wildcards.graph}/{self.pairs[wildcards.graph]}/{wildcards.bucket}.parquet"

    def citations_the_other_way(self, wildcards: Any) -> str | list[str]:
        """The citations of the papers of a bucket by others, which undirected edges need as well; else nothing."""
        return [] if self._is_directed(wildcards.graph) else self._source_of(wildcards.graph, "citations_by_cited")

    def direction_of_edges(self, wildcards: Any) -> str:
        """Whether the graph of an embedding is directed; the edges of an undirected graph are trained on both ways."""
        return "directed" if self._is_directed(self.config.embeddings[wildcards.embedding].graph) else "undirected"

    def _is_directed(self, graph: str) -> bool:
        return bool(getattr(self.config.graphs[graph], "directed", False))

    def by_import(self, published: Request, usual: Request) -> Request:
        """What an import asks for: by PyTorch-BigGraph's importer, which holds all as Python objects, or by ours."""

        def asked(wildcards: Any, input: Any, attempt: int) -> int:
            needed = published if self._is_published(wildcards.embedding) else usual
            return needed(wildcards, input, attempt)

        return asked

    def devices(self, wildcards: Any) -> int:
        """The GPUs that a training uses."""
        return self.config.embeddings[wildcards.embedding].devices if self.plan.with_gpu else 0

    def training_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of a training, MB, as its engine says by the papers and edges that it holds at one time."""
        entry = self.config.embeddings[wildcards.embedding]
        papers = sum(int(file.read_text()) for file in Path(input.imported, "entities").glob("entity_count_*"))
        share = min(1, 2 / getattr(entry, "partitions", 1))
        return ceil(entry.training_memory(papers * share, self._imported_mb(wildcards, input))) * attempt

    def training_minutes(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Time of a training, as its engine says."""
        entry = self.config.embeddings[wildcards.embedding]
        return within_a_day(entry.training_minutes(self._imported_mb(wildcards, input)), attempt)

    def _imported_mb(self, wildcards: Any, input: Any) -> float:
        """Size of the edges that a training reads, MB."""
        files = len(list(Path(input.imported).rglob("*.h5"))) if self._is_published(wildcards.embedding) else 0
        return max(0, size_mb(input.imported) - PADDED_MB * files)

    def _is_published(self, embedding: str) -> bool:
        """Whether PyTorch-BigGraph's own importer makes the edges of an embedding."""
        return getattr(self.config.embeddings[embedding], "import_", None) == "tsv"


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
        return range(self.rankings[embedding].shards)

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

    def search_settings(self, kind: Any) -> Any:
        """What the search in an embedding holds of the settings of a step, as JSON."""

        return lambda wildcards: as_text(settings_of(self._search(wildcards), kind))

    def index(self, wildcards: Any) -> str | list[str]:
        """The approximate index that is searched; nothing if the search is exact."""
        return "<results>/neighbours/{embedding}/index" if wildcards.embedding in self.approximate else []

    def index_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to build an index, MB: the sample of an IVF index in two copies; all vectors and links of HNSW."""
        index = self._search(wildcards).index
        if not isinstance(index, Ivf):
            return megabytes(700, vectors=3)(wildcards, input, attempt)
        sample = index.nlist * 64 * self._vector_mb(wildcards)
        return ceil(700 + 3 * sample) * attempt

    def search_memory(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Memory of a search, MB: more of it compares more queries at a time; each thread holds blocks of 4,096 vectors
        in three copies. HNSW also holds its index."""
        blocks = threads * 3 * 4096 * self._vector_mb(wildcards)
        held = size_mb(input.index) if isinstance(self._search(wildcards).index, Hnsw) else 0
        return ceil(1000 + blocks + held) * attempt

    def search_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of a search: that of comparing each query of the shard with each vector, an upper bound for an index."""
        queries = size_mb(input.queries) / QUERY_MB / self.rankings[wildcards.embedding].shards
        products = queries * size_mb(input.vectors) * 1e6 / 4
        return within_a_day(20 + 4 * products / PRODUCTS / 60 / threads, attempt)

    def _search(self, wildcards: Any) -> Neighbours:
        return self.config.embeddings[wildcards.embedding].neighbours

    def _vector_mb(self, wildcards: Any) -> float:
        return self.config.embeddings[wildcards.embedding].dimension * 4 / 1e6

    def adjacency_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory to lay links out, MB: of edges of 4 bytes on the disk, more than all links at once; more memory goes
        through the edges less often."""
        return min(16_000, ceil(800 + 4 * size_mb(input.edges))) * attempt

    def walk_memory(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Memory of walks, MB: the links, which are on the disk, and 36 bytes per thread and paper; its id takes 8."""
        links = size_mb(input.adjacency)  # Before a file in it: Snakemake waits for an input that is missing.
        papers = size_mb(f"{input.adjacency}/ids.npy") / 8
        return ceil(700 + links + threads * 36 * papers) * attempt

    def walk_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of walks: as if each query of the shard looked at as many links as its tolerance allows, or at all links
        a hundred times."""
        entry = self.config.walks[wildcards.embedding]
        links = min(1 / (entry.restart * entry.tolerance), 100 * size_mb(input.adjacency) * 1e6 / 4)
        queries = size_mb(input.queries) / QUERY_MB / entry.shards
        return within_a_day(20 + queries * links / LINKS / 60 / threads, attempt)

    def mined_vectors(self, wildcards: Any) -> list[str]:
        """The vectors that negatives are mined by: those of the papers and of the set's own texts; none for BM25."""
        entry = self.plan.triplets.mining(wildcards)
        match entry.by:
            case ByWords():
                return []
            case ByEncoder(name=name):
                run = {"model": f"untrained_{name}", "seed": 0}
            case ByModel(name=name, seed=seed):
                run = {"model": name, "seed": seed or self.config.models[name].seeds[0]}
        brought = self.plan.triplets.sets_with_texts(entry.of)
        texts = expand("<results>/encoder/{model}/seed-{seed}/texts/{triplets}/texts.parquet", triplets=brought, **run)
        if entry.collection == "texts":
            return texts
        return self.buckets("<results>/encoder/{model}/seed-{seed}/papers/{bucket}.parquet", **run) + texts

    def mining_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of mining, MB: vectors of up to 2 GB are held in half of it; more of them are read again and again."""
        return ceil(2000 + min(4000, 2.5 * size_mb(input.vectors))) * attempt

    def mining_minutes(self, wildcards: Any, input: Any, threads: int, attempt: int) -> int:
        """Time of mining: that of comparing every query, some 20 bytes of its set, with every vector. Words of 1 MB of
        texts take 2 s."""
        products = size_mb(input.examples) / 2e-5 * size_mb(input.vectors) * 1e6 / 4
        words = 0 if input.vectors else 2 * size_mb([*input.papers, *input.texts]) / 60
        return within_a_day(20 + words + 4 * products / PRODUCTS / 60 / threads, attempt)
