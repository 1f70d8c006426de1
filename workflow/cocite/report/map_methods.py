"""Methods that lay papers out in two dimensions; every job imports them, so they import their libraries when used."""

import math
import warnings
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import Positive
from cocite.config.map import MapSettings
from cocite.core.errors import InputError

if TYPE_CHECKING:
    from numpy import ndarray

NEIGHBOURS = 3
"""Neighbours of each paper that openTSNE looks at, for each unit of the perplexity."""


class TSNE(MapSettings):
    """t-SNE (van der Maaten & Hinton, 2008): preserves which papers are near each other."""

    called: ClassVar[str] = "t-SNE"
    method: Literal["tsne"] = "tsne"
    perplexity: Positive | None = None
    """Effective number of neighbours of a paper, at most a third of the other papers. Default: 30, or that third if it
    is less."""

    def neighbours_among(self, papers: int) -> int:
        """Three for each unit of the perplexity."""
        return min(papers - 1, int(NEIGHBOURS * self._perplexity_among(papers)))

    def _perplexity_among(self, papers: int) -> float:
        most = (papers - 1) / NEIGHBOURS
        if self.perplexity is not None and self.perplexity > most:
            least = math.ceil(NEIGHBOURS * self.perplexity) + 1
            needs = f"perplexity is {self.perplexity:g}, which needs at least {least} papers"
            raise InputError(f"{needs}; the map has {papers}, so its limit is {most:.1f}.")
        return self.perplexity or min(30.0, most)

    def lay_out(self, vectors: "ndarray", neighbours: "ndarray", distances: "ndarray", *, seed: int) -> "ndarray":
        """By openTSNE, from the first two principal components."""
        import numpy as np
        from openTSNE import TSNEEmbedding
        from openTSNE.affinity import PerplexityBasedNN
        from openTSNE.initialization import pca
        from openTSNE.nearest_neighbors import PrecomputedNeighbors

        known = PrecomputedNeighbors(neighbours, distances)
        affinities = PerplexityBasedNN(perplexity=self._perplexity_among(len(vectors)), knn_index=known)
        layout = TSNEEmbedding(pca(vectors, random_state=seed), affinities, random_state=seed)
        layout.optimize(250, exaggeration=12, momentum=0.5, inplace=True)
        layout.optimize(500, momentum=0.8, inplace=True)
        return np.asarray(layout, dtype=np.float64)


class UMAP(MapSettings):
    """UMAP (McInnes et al., 2018): preserves the arrangement of groups better than t-SNE."""

    called: ClassVar[str] = "UMAP"
    method: Literal["umap"]
    neighbours: Annotated[int, Field(ge=2)] | None = None
    """Nearest papers used to place a paper, itself included. Default: 15, or all but one if there are fewer."""
    min_dist: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Least distance of points: 0 packs them into dense groups."""

    def neighbours_among(self, papers: int) -> int:
        """As many as the settings say, but for the paper itself."""
        if self.neighbours is not None and self.neighbours >= papers:
            needs = f"neighbours is {self.neighbours}, which needs at least {self.neighbours + 1} papers"
            raise InputError(f"{needs}; the map has {papers}, so its limit is {papers - 1}.")
        return (self.neighbours or min(15, papers - 1)) - 1

    def lay_out(self, vectors: "ndarray", neighbours: "ndarray", distances: "ndarray", *, seed: int) -> "ndarray":
        """By umap-learn, in one thread: only so is the result the same each time."""
        import numpy as np
        from umap import UMAP as Layout  # noqa: N811

        own = np.arange(len(vectors))[:, None]  # the library counts a paper as its own first neighbour
        known = (np.hstack([own, neighbours]), np.hstack([np.zeros_like(distances[:, :1]), distances]), None)
        settings = {"metric": self.metric, "min_dist": self.min_dist, "init": "pca", "random_state": seed, "n_jobs": 1}
        layout = Layout(n_neighbors=known[0].shape[1], precomputed_knn=known, **settings)
        with warnings.catch_warnings():
            # It warns that further papers cannot be added to the map, which is not needed.
            warnings.filterwarnings("ignore", message=".*NNDescent")
            points: np.ndarray = layout.fit_transform(vectors)
        return points
