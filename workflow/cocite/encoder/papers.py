"""Embed papers in Python: what the card of an encoder names where sentence-transformers cannot open its folder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.encoder.model import embed, open_encoder
from cocite.encoder.spaces import read_map
from cocite.encoder.tokens import tokenise


def embed_papers(
    folder: Path, papers: Sequence[tuple[str | None, str | None]], space: str | None = None
) -> NDArray[np.float32]:
    """The vectors of papers, each a title and an abstract, by the encoder in a folder, papers × dimension.

    With a `space`, they are those in the space of an aspect, or in all of them (`concatenated`).
    Raises `InputError` where the folder is not that of an encoder, or has no such space.
    """
    encoder = open_encoder(Path(folder))
    texts = [encoder.tokenizer.text_of(title, abstract) for title, abstract in papers]
    vectors = embed(encoder, tokenise(texts, encoder.tokenizer))
    return vectors if space is None else read_map(Path(folder), space, encoder.dimension).of(vectors)
