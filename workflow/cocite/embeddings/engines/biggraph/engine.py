"""PyTorch-BigGraph as an engine. Each step imports what it needs: laying out edges can do without PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cocite.embeddings.engines import Trained

if TYPE_CHECKING:
    from cocite.config.embeddings import EdgeSettings, GraphEmbeddingSettings
    from cocite.embeddings.engines.biggraph.imported import ImportedFolder


class BigGraph:
    """See `engines.Engine`."""

    def import_edges(
        self, edges: Sequence[Path], settings: "EdgeSettings", *, directed: bool, seed: int, output: Path
    ) -> None:
        """Make the folder that PyTorch-BigGraph trains from."""
        from cocite.embeddings.engines.biggraph.importing import import_edges

        import_edges(edges, settings, directed=directed, seed=seed, output=output)

    def open_graph(self, imported: Path) -> "ImportedFolder":
        """The papers and edges of such a folder."""
        from cocite.embeddings.engines.biggraph.imported import ImportedFolder

        return ImportedFolder(imported)

    def train(self, imported: Path, settings: "GraphEmbeddingSettings", *, seed: int, state: Path) -> Trained:
        """Train from such a folder."""
        from cocite.embeddings.engines.biggraph.training import train_graph_embedding

        return train_graph_embedding(imported, settings, seed=seed, state=state)
