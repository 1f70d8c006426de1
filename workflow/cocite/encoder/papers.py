"""Embed papers in Python: what the card of an encoder names where sentence-transformers cannot open its folder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.encoder.model import open_encoder
from cocite.encoder.sentence_wise import embed_texts
from cocite.encoder.spaces import read_map


def embed_papers(
    folder: Path, papers: Sequence[tuple[str | None, ...]], space: str | None = None
) -> NDArray[np.float32]:
    """The vectors of papers, by the encoder in a folder, papers × dimension.

    Each paper is a title and an abstract or, for an encoder that reads other fields, these as texts in their order.
    With a `space`, they are those in the space of an aspect, or in all of them (`concatenated`).
    Raises `InputError` where the folder is not that of an encoder or has no such space, and where a paper has
    another number of fields.
    """
    encoder = open_encoder(Path(folder))
    fields = encoder.tokenizer.reading.fields
    texts = []
    for number, paper in enumerate(papers, 1):
        if len(paper) != len(fields):
            raise InputError(f"Paper {number} has {len(paper)} fields; the encoder reads {', '.join(fields)}.")
        texts.append(encoder.tokenizer.document(number, dict(zip(fields, paper, strict=True))))
    vectors = embed_texts(encoder, texts)
    return vectors if space is None else read_map(Path(folder), space, encoder.dimension).of(vectors)
