"""The method `tsne`."""

import math
from typing import TYPE_CHECKING, ClassVar, Literal

from cocite.config.entries import Positive
from cocite.config.map import MapSettings
from cocite.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np

USUAL_PERPLEXITY = 30.0
NEIGHBOURS = 3
"""Neighbours of each paper that the library looks at, for each unit of the perplexity."""
EARLY, EARLY_EXAGGERATION, LATE = 250, 12, 500
"""Iterations with attraction exaggerated, by how much, and iterations without, as is usual."""


class TSNE(MapSettings):
    """t-SNE (van der Maaten & Hinton, 2008): papers that lie together are near each other."""

    called: ClassVar[str] = "t-SNE"
    method: Literal["tsne"] = "tsne"
    perplexity: Positive | None = None
    """How many neighbours of a paper count, softly: no more than a third of the other papers. Left out, 30, or that
    third where it is less."""

    def neighbours_among(self, papers: int) -> int:
        """Three for each unit of the perplexity."""
        return min(papers - 1, int(NEIGHBOURS * self._perplexity_among(papers)))

    def _perplexity_among(self, papers: int) -> float:
        most = (papers - 1) / NEIGHBOURS
        if self.perplexity is not None and self.perplexity > most:
            least = math.ceil(NEIGHBOURS * self.perplexity) + 1
            raise InputError(
                f"perplexity is {self.perplexity:g}, which asks for at least {least} papers; the map has {papers}, so "
                f"it may be at most {most:.1f}."
            )
        return self.perplexity or min(USUAL_PERPLEXITY, most)

    def lay_out(
        self, vectors: "np.ndarray", neighbours: "np.ndarray", distances: "np.ndarray", *, seed: int
    ) -> "np.ndarray":
        """By openTSNE, from the first two principal components."""
        import numpy as np
        from openTSNE import TSNEEmbedding
        from openTSNE.affinity import PerplexityBasedNN
        from openTSNE.initialization import pca
        from openTSNE.nearest_neighbors import PrecomputedNeighbors

        affinities = PerplexityBasedNN(
            perplexity=self._perplexity_among(len(vectors)), knn_index=PrecomputedNeighbors(neighbours, distances)
        )
        layout = TSNEEmbedding(pca(vectors, random_state=seed), affinities, random_state=seed)
        layout.optimize(EARLY, exaggeration=EARLY_EXAGGERATION, momentum=0.5, inplace=True)
        layout.optimize(LATE, momentum=0.8, inplace=True)
        return np.asarray(layout, dtype=np.float64)
