"""The losses by which an encoder learns, a class each: its fields are its settings, and it is called with a batch.

Triplet, CoSENT and AnglE compare pairs; InfoNCE, SupCon and MNRL each positive with the other documents of its query or
of the batch; distillation and masked language modelling see documents. torch is imported within the functions, as the
configuration imports the losses.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from cocite.config.entries import NonNegative, Positive, Refers
from cocite.config.loss import Loss
from cocite.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from cocite.encoder.batch import PairIndices
else:
    Tensor = PairIndices = Any

COMPARISONS_AT_ONCE = 2**20
"""Similarities in memory together, 4 MB in each of several tensors."""


def cosines_of(vectors: Tensor, pairs: Tensor) -> Tensor:
    """The cosine of each pair of places, pairs × 2."""
    from torch.nn.functional import cosine_similarity

    first, second = vectors[pairs].unbind(dim=1)
    return cosine_similarity(first, second)


def ranking(positive: Tensor, negative: Tensor, *, scale: float) -> Tensor:
    """log(1 + Σ exp(scale (s⁻ − s⁺))) over all pairs of a negative and a positive similarity in the batch, in linear
    time: softplus(LSE(scale s⁻) + LSE(−scale s⁺))."""
    from torch import logsumexp
    from torch.nn.functional import softplus

    return softplus(logsumexp(scale * negative, 0) + logsumexp(-scale * positive, 0))


def mean_over(pairs: Tensor, candidates: int, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean of `loss` over some pairs, each compared with so many candidates. Many pairs are computed in blocks, and
    again for their gradients, to bound the memory of the similarities."""
    import torch
    from torch.utils.checkpoint import checkpoint as recomputed

    rows = max(1, COMPARISONS_AT_ONCE // max(1, candidates))
    if len(pairs) <= rows:
        return loss(pairs).mean()
    blocks = [recomputed(loss, some, use_reentrant=False, preserve_rng_state=False) for some in pairs.split(rows)]
    return torch.cat(blocks).mean()


class TripletMargin(Loss):
    """Triplet margin loss (Schroff et al., 2015), as SPECTER has it (Cohan et al., 2020)."""

    kind: Literal["triplet"]
    margin: NonNegative = 1.0
    """How much farther than the positive the negative is to be."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean of max(0, ‖q − p‖ − ‖q − n‖ + margin), over each positive with each negative of an example; 0 without
        negatives."""
        from torch.nn.functional import pairwise_distance, relu

        query, positive, negative = vectors[batch.triplets].unbind(dim=1)
        difference = pairwise_distance(query, positive) - pairwise_distance(query, negative)
        losses = relu(difference + self.margin)
        return losses.mean() if len(losses) else losses.sum()


class CoSent(Loss):
    """CoSENT (Su, 2022): every positive pair of a batch is to be nearer than every negative one, by cosine."""

    kind: Literal["cosent"]
    together: ClassVar[int] = 1
    scale: Positive = 20.0
    """Factor of the similarities."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """`ranking` of the cosines."""
        near, far = cosines_of(vectors, batch.positives), cosines_of(vectors, batch.negatives)
        return ranking(near, far, scale=self.scale)


class Angle(Loss):
    """AnglE (Li & Li, 2024): CoSENT over the angle of vectors that are taken for complex ones."""

    kind: Literal["angle"]
    together: ClassVar[int] = 1
    scale: Positive = 20.0
    """Factor of the similarities."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """`ranking` of |Σ(re, im)| of the complex quotient of each pair, whose halves are real and imaginary parts.
        With x = (a, b) and y = (c, d): re = (ac + bd) / (‖x‖‖y‖), im = (bc − ad) / (‖x‖‖y‖). Raises `InputError` if the
        dimension is odd."""
        import torch

        if vectors.shape[1] % 2:
            raise InputError(f"The loss angle needs an even number of dimensions, and there are {vectors.shape[1]}.")

        def similarities(pairs: Tensor) -> Tensor:
            x, y = vectors[pairs].unbind(dim=1)
            (a, b), (c, d) = x.chunk(2, dim=1), y.chunk(2, dim=1)
            norms = (x.norm(dim=1) * y.norm(dim=1)).clamp_min(torch.finfo(x.dtype).tiny)
            return ((a * c + b * d + b * c - a * d).sum(dim=1) / norms).abs()

        return ranking(similarities(batch.positives), similarities(batch.negatives), scale=self.scale)


class InfoNce(Loss):
    """InfoNCE (van den Oord et al., 2018): the own positive against the negatives of the same query."""

    together: ClassVar[int] = 4
    kind: Literal["infonce"]
    temperature: Positive = 0.1
    """τ, by which similarities are divided."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean cross entropy, over cosines / temperature, of the own positive against the negatives of its query."""
        import torch
        from torch.nn.functional import cross_entropy, normalize

        negative_of, negatives = batch.negatives.unbind(dim=1)
        directions = normalize(vectors, dim=1)
        of_negatives = directions[negatives]

        def of(pairs: Tensor) -> Tensor:
            query = pairs[:, 0]
            others = query[:, None] != negative_of
            against = (directions[query] @ of_negatives.T).masked_fill(others, -torch.inf)
            logits = torch.cat([cosines_of(vectors, pairs)[:, None], against], dim=1) / self.temperature
            return cross_entropy(logits, torch.zeros_like(query), reduction="none")

        return mean_over(batch.positives, len(negatives), of)


class SupCon(Loss):
    """SupCon (Khosla et al., 2020): each positive of a query against all positives and negatives of the query.

    The sum over the positives is outside of the logarithm, as in its equation 2.
    """

    kind: Literal["supcon"]
    temperature: Positive = 0.05
    """τ, by which similarities are divided."""

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean over the positives of −log(exp(s⁺/τ) / (Σ exp(s⁺/τ) + Σ exp(s⁻/τ))), s being cosines. The sums run over
        the positives and the negatives of the same query, those of all its examples in the batch."""
        import torch
        from torch.nn.functional import normalize

        compared_with, documents = torch.cat([batch.positives, batch.negatives]).unbind(dim=1)
        directions = normalize(vectors, dim=1)
        of_documents = directions[documents]

        def of(pairs: Tensor) -> Tensor:
            query = pairs[:, 0]
            similarities = (directions[query] @ of_documents.T) / self.temperature
            total = similarities.masked_fill(query[:, None] != compared_with, -torch.inf).logsumexp(dim=1)
            return total - cosines_of(vectors, pairs) / self.temperature

        return mean_over(batch.positives, len(documents), of)


class MultipleNegativesRanking(Loss):
    """Multiple negatives ranking (Henderson et al., 2017): the own positive against all documents of the batch."""

    kind: Literal["mnrl"]
    together: ClassVar[int] = 1
    needs_negatives: ClassVar[bool] = False
    scale: Positive = 20.0
    """Factor of the similarities."""
    sampled_negatives: bool = True
    """Whether the negatives of the triplets count, beside the positives of a batch's other queries."""
    log_q: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the logQ correction (Yi et al., 2019). A paper is a negative as often as it is a positive, so without it
    similarities do not reflect how well known a paper is; with 0.5 a search finds more papers."""

    @property
    def counted(self) -> tuple[str, ...]:
        """Those of its candidates, if it corrects for how often they are drawn."""
        return () if self.log_q is None else ("positives", "negatives")[: 1 + self.sampled_negatives]

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean cross entropy, over cosines × scale, of the own positive against the documents of the batch: the
        positives of other queries and, unless `sampled_negatives` is false, all negatives, each as often as it is
        drawn. The query and its other positives are left out, as papers: a document may be a span of one. With `log_q`,
        the logarithm of how often a document is a candidate, times `log_q`, is taken from what is compared."""
        import torch
        from torch.nn.functional import cross_entropy, normalize

        queries, positives = batch.positives.unbind(dim=1)
        papers = batch.papers if len(batch.papers) else torch.arange(len(vectors), device=vectors.device)
        candidates = torch.cat([positives, batch.negatives[:, 1]]) if self.sampled_negatives else positives
        directions = normalize(vectors, dim=1)
        of_candidates = directions[candidates]
        taken = 0.0 if self.log_q is None else self.log_q * batch.frequencies[candidates].to(vectors.dtype).log()

        def of(pairs: Tensor) -> Tensor:
            left_out = _related(papers[queries[pairs]], papers[batch.positives], len(vectors))[:, papers[candidates]]
            left_out[torch.arange(len(pairs), device=pairs.device), pairs] = False  # the own positive
            logits = self.scale * directions[queries[pairs]] @ of_candidates.T - taken
            return cross_entropy(logits.masked_fill(left_out, -torch.inf), pairs, reduction="none")

        return mean_over(torch.arange(len(positives), device=vectors.device), len(candidates), of)


def _related(queries: Tensor, positives: Tensor, documents: int) -> Tensor:
    """Whether a document is the query or one of its positives, queries × documents; a query may occur several times."""
    import torch

    row = torch.full((documents,), len(queries), device=queries.device)  # behind the last for all other documents
    row[queries] = torch.arange(len(queries), device=queries.device)
    related = torch.zeros(len(queries) + 1, documents, dtype=torch.bool, device=queries.device)
    related[row[positives[:, 0]], positives[:, 1]] = True
    related[row[queries], queries] = True
    return related[row[queries]]


class Distillation(Loss):
    """Student and teacher (Ostendorff et al., 2022): texts become as similar as their papers are in a graph
    embedding."""

    kind: Literal["distillation"]
    together: ClassVar[int] = 1
    needs_negatives: ClassVar[bool] = False
    input_kind = "teacher"
    embedding: Annotated[str, Refers("embeddings")]
    """Name of the graph embedding that teaches. Papers without a vector in it are left out of the pairs, and
    counted."""

    @property
    def teacher(self) -> str:
        """The graph embedding that it asks for vectors."""
        return self.embedding

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean of (cos(t_i, t_j) − cos(g_i, g_j))² over all pairs of different documents i and j of the batch; t are
        the vectors of the texts, and g those of the teacher."""
        import torch
        from torch.nn.functional import normalize

        seen = normalize(vectors[batch.places], dim=1)
        taught = normalize(batch.taught.to(seen.dtype), dim=1)
        numbers = torch.arange(len(seen), device=seen.device)

        def of(rows: Tensor) -> Tensor:
            differences = seen[rows] @ seen.T - taught[rows] @ taught.T
            of_others = differences.masked_fill(rows[:, None] == numbers, 0)
            return of_others.square().sum(dim=1) / (len(seen) - 1)

        return mean_over(numbers, len(seen), of)


class MaskedLanguageModelling(Loss):
    """Masked language modelling (Devlin et al., 2019): tokens of the documents that are hidden are predicted."""

    kind: Literal["mlm"]
    together: ClassVar[int] = 1
    needs_negatives: ClassVar[bool] = False
    input_kind = "masks"
    share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the tokens that are predicted. Of these, 80% are replaced by the mask, 10% by a random token, and 10%
    stay. They are drawn again for each epoch."""

    @property
    def masked_share(self) -> float:
        """The share of the tokens that it asks to be predicted."""
        return self.share

    def __call__(self, vectors: Tensor, batch: PairIndices) -> Tensor:
        """Mean cross entropy over the tokens that are predicted; 0 if there are none. `vectors` has for each document
        the sum of the cross entropies of its tokens, and their number."""
        losses, counts = vectors[batch.places].unbind(dim=1)
        return losses.sum() / counts.sum().clamp_min(1)
