"""The baseline `sgc`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from cocite.config.baseline import Trained
from cocite.config.entries import Name, Refers, inconsistent

if TYPE_CHECKING:
    from cocite.baselines.steps import Embedding, Training


class PropagatedFeatures(Trained):
    """Features passed along the edges of a graph (Wu et al., 2019, "Simplifying graph convolutional networks").

    The features are the vectors of another baseline or of an encoder before fine-tuning. The graph is taken as
    undirected. Papers that are kept out have no edges in it, and those of validation queries are left out too: hops can
    be chosen on them, and held-out papers are embedded as they are, by their own features. So is a document that is no
    paper of the corpus. All vectors are of length 1.
    """

    kind: Literal["sgc"]
    of: Annotated[Name, Refers("baselines")] | None = None
    """Name of the baseline whose vectors are the features."""
    encoder: Annotated[Name, Refers("encoders")] | None = None
    """Name of the encoder whose vectors are the features, as it is before fine-tuning; in place of `of`."""
    graph: Annotated[Name, Refers("graphs")]
    """Name of the graph."""
    hops: Annotated[int, Field(ge=1, le=64)] = 2
    """How many times features are passed on; 1 to 8 were tried as a baseline of SPECTER."""
    trained_on = ("paper_vectors", "edges")
    embeds_with = ("document_vectors", "document_papers")

    @model_validator(mode="after")
    def _stands_on_one(self) -> "PropagatedFeatures":
        if (self.of is None) == (self.encoder is None):
            raise inconsistent(" must have either of (a baseline) or encoder, from which its features come.")
        if self.grid is not None and self.of is None:
            raise inconsistent(
                ".grid needs of, a baseline: the vectors of validation papers by an encoder are not made."
            )
        return self

    def training_memory(self, sources_mb: float) -> float:
        """Memory that a training takes, MB: the graph twice while it is read, and a few columns of the features."""
        return 1000 + 2 * sources_mb

    def train(self, training: "Training") -> None:
        """Propagate the features of all papers."""
        from cocite.baselines.propagation import propagate_papers

        propagate_papers(training, self.hops)

    def embed(self, embedding: "Embedding") -> Iterator[tuple[list[Any], Any]]:
        """The propagated features of papers, and the features of what is none."""
        from cocite.baselines.propagation import propagated_documents

        return propagated_documents(embedding)
