"""The vectors of its sentences, weighted by their attention to the names of the aspects."""

from cocite.encoder.poolings import Tensor

BY_SENTENCE = True


def pool(hidden: Tensor, mask: Tensor, names: Tensor) -> Tensor:
    """The mean over the aspects of Σ softmax(q · s / √d) s over the sentences s of a document, q the aspect's name.

    Scaled as attention is (Vaswani et al., 2017). A document without a sentence has no vector: NaN.
    """
    scores = names @ hidden.transpose(1, 2) / hidden.shape[-1] ** 0.5
    weights = scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf")).softmax(dim=-1)
    return (weights @ hidden).mean(dim=1)
