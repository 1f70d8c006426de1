"""The vectors of texts in memory: of papers, for Python, and of documents whose sentences are embedded by themselves.

The vector of such a document is the sum of those of its sentences, normalised: a baseline of SPECTER's appendix (Cohan
et al., 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.core.errors import InputError
from cocite.encoder.data import Documents, Numbers, count_within
from cocite.encoder.model import Encoder, embed, open_encoder
from cocite.encoder.spaces import read_map
from cocite.encoder.tokens import Text, Tokenizer, tokenise


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """The sentences of some documents, each of which has at least one."""

    tokens: Documents
    """The sentences, one document's after the other's."""
    starts: Numbers
    """The first sentence of each document, and the number of all sentences at the end."""

    @property
    def lengths(self) -> Numbers:
        """Tokens of all sentences of each document."""
        return np.diff(np.append(0, np.cumsum(self.tokens.lengths))[self.starts])


def tokenise_sentences(texts: Sequence[Text], tokenizer: Tokenizer) -> Sentences:
    """Tokenise the sentences of some texts; an empty text is an empty sentence."""
    split = [text.sentences or ("",) for text in texts]
    are_queries = [text.is_query for text, sentences in zip(texts, split, strict=True) for _ in sentences]
    tokens = tokenise([sentence for sentences in split for sentence in sentences], tokenizer, are_queries)
    return Sentences(tokens=tokens, starts=np.append(0, np.cumsum([len(each) for each in split], dtype=np.int64)))


def embed_sums(encoder: Encoder, sentences: Sentences, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The vectors of some documents, rows × dimension: sums over their sentences, of length 1."""
    counts = np.diff(sentences.starts)[rows]
    chosen = sentences.tokens.chosen(np.repeat(sentences.starts[rows], counts) + count_within(counts))
    sums = np.add.reduceat(embed(encoder, chosen), np.cumsum(counts) - counts)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)


def embed_texts(encoder: Encoder, texts: Sequence[Text]) -> NDArray[np.float32]:
    """The vectors of some texts in memory, as whole texts or by their sentences."""
    tokenizer = encoder.tokenizer
    if tokenizer.reading.sentence_wise:
        return embed_sums(encoder, tokenise_sentences(texts, tokenizer), np.arange(len(texts)))
    return embed(encoder, tokenise([each.text for each in texts], tokenizer, [each.is_query for each in texts]))


def embed_papers(
    folder: Path, papers: Sequence[tuple[str | None, ...]], space: str | None = None
) -> NDArray[np.float32]:
    """The vectors of papers, by the encoder in a folder, papers × dimension.

    Each paper is a title and an abstract or, for an encoder that reads other fields, the texts of these in their order.
    `space` is the space of an aspect, or `concatenated`. Raises `InputError` if the folder is not that of an encoder or
    has no such space, and if a paper has another number of fields.
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
