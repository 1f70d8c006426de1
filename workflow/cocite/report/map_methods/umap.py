"""The method `umap`."""

import warnings
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from cocite.config.map import MapSettings
from cocite.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np

USUAL_NEIGHBOURS = 15


class UMAP(MapSettings):
    """UMAP (McInnes et al., 2018): keeps more of how groups lie to each other than t-SNE does."""

    called: ClassVar[str] = "UMAP"
    method: Literal["umap"]
    neighbours: Annotated[int, Field(ge=2)] | None = None
    """Papers that a paper is laid out by, itself among them. Left out, 15, or all but one where there are fewer."""
    min_dist: Annotated[float, Field(ge=0, le=1)] = 0.1
    """How near to each other points may lie: 0 packs them into dense groups."""

    def neighbours_among(self, papers: int) -> int:
        """As many as the settings say, but for the paper itself."""
        if self.neighbours is not None and self.neighbours >= papers:
            raise InputError(
                f"neighbours is {self.neighbours}, which asks for at least {self.neighbours + 1} papers; the map has "
                f"{papers}, so it may be at most {papers - 1}."
            )
        return (self.neighbours or min(USUAL_NEIGHBOURS, papers - 1)) - 1

    def lay_out(
        self, vectors: "np.ndarray", neighbours: "np.ndarray", distances: "np.ndarray", *, seed: int
    ) -> "np.ndarray":
        """By umap-learn, in one thread: only so is the result the same each time."""
        import numpy as np
        from umap import UMAP as Layout  # noqa: N811

        own = np.arange(len(vectors))[:, None]  # the library counts a paper as its own first neighbour
        known = (np.hstack([own, neighbours]), np.hstack([np.zeros_like(distances[:, :1]), distances]), None)
        layout = Layout(
            n_neighbors=known[0].shape[1],
            precomputed_knn=known,
            metric=self.metric,
            min_dist=self.min_dist,
            init="pca",
            random_state=seed,
            n_jobs=1,
        )
        with warnings.catch_warnings():
            # It warns that further papers cannot be placed on the same map, which nobody asks for.
            warnings.filterwarnings("ignore", message=".*NNDescent")
            points: np.ndarray = layout.fit_transform(vectors)
        return points
