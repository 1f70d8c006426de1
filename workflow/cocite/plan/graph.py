"""What the edges of a graph are made of, which of them an embedding is trained on, and what that costs."""

from pathlib import Path
from typing import Any

from cocite.config.graphs import PAIRS
from cocite.plan.stage import Request, StagePlan, size_mb, whole, within_a_day

EDGES = "<results>/graph/{graph}/edges/{bucket}.parquet"
PADDED_MB = 158  # size to which PyTorch-BigGraph's importer pads each of its files, MB
PAPERS_A_MB = 2_800  # of imported edges, for plans: a hundredth of a release has 2.2 million and 781 MB


class GraphPlan(StagePlan):
    """Graphs and their embeddings."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        graphs = self.config.graphs.items()
        self.pairs = {name: PAIRS[entry.signal] for name, entry in graphs if entry.signal in PAIRS}
        """The table of pairs of each graph that is made of pairs."""
        self.chosen = [name for name, entry in graphs if getattr(entry, "citations", None) is not None]
        """The graphs that are built from some of the citations."""

    def tables_of_pairs(self) -> list[str]:
        """The pairs of all graphs that are made of them."""
        return [file for graph in self.pairs for file in self.pairs_or_edges(graph)]

    def edges(self, graph: Any) -> list[str]:
        """The edges of a graph or of several."""
        return self.buckets(EDGES, graph=graph)

    def pairs_or_edges(self, graph: str) -> list[str]:
        """What is sampled from a graph: its pairs if it is made of them, or its edges."""
        return self.buckets(f"<results>/graph/{graph}/{self.pairs.get(graph, 'edges')}/{{bucket}}.parquet")

    def citations_in_groups(self, wildcards: Any) -> list[str]:
        """All citations, sharded by the paper that cites a group of papers or that a group cites, or all sentences."""
        tables = {"cocitation": "citations", "sentence-cocitation": "contexts", "coupling": "citations_by_cited"}
        return self.buckets(self.source_of(wildcards.graph, tables[self.config.graphs[wildcards.graph].signal]))

    def source_of(self, graph: str, table: str) -> str:
        """The files of a table of citations that a graph is built from: those of the corpus, or those that it chose."""
        usual = "graph" if table == "citations_by_cited" else "corpus"
        return f"<results>/{f'graph/{graph}' if graph in self.chosen else usual}/{table}/{{bucket}}.parquet"

    def is_directed(self, graph: str) -> bool:
        """Whether the edges of a graph lead one way; those of others are trained on, and made, both ways."""
        return bool(getattr(self.config.graphs[graph], "directed", False))

    def by_import(self, published: Request, usual: Request) -> Request:
        """Memory of an import: by PyTorch-BigGraph's importer, which keeps all as Python objects, or by CoCite's."""

        def asked(wildcards: Any, input: Any, attempt: int) -> int:
            needed = published if self._is_published(wildcards.embedding) else usual
            return needed(wildcards, input, attempt)

        return asked

    def training_memory(self, wildcards: Any, input: Any, attempt: int) -> int:
        """Memory of a training, MB, as its engine estimates it from the papers and edges in memory at one time."""
        entry = self.config.embeddings[wildcards.embedding]
        counts = list(Path(input.imported, "entities").glob("entity_count_*"))
        edges_mb = self._imported_mb(wildcards, input)
        papers = sum(int(file.read_text()) for file in counts) if counts else PAPERS_A_MB * edges_mb
        share = min(1, 2 / getattr(entry, "partitions", 1))
        return whole(entry.training_memory(papers * share, edges_mb)) * attempt

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
