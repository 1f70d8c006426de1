"""Papers whose text has not changed since an earlier run that embedded them by the same encoder.

Their vectors are copied, so that after an update of the corpus only new and changed papers are embedded. A table ends
with the same bytes as one that is embedded as a whole, because on a CPU the vector of a text depends on no other text
(`embed_alike`). Memory is needed for some tens of bytes per paper.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.core.atomic import read_json
from cocite.core.checkpoints import fingerprint_of
from cocite.core.progress import report
from cocite.core.searching import vector_blocks
from cocite.core.tables.files import VECTORS_AT_ONCE, read_table, vectors_of_papers
from cocite.core.written_ids import look_up
from cocite.encoder.model import CARD
from cocite.encoder.tokens import Text, Tokenizer, texts_of

CHECKED = 16
"""Papers that are embedded again, to see whether the earlier run's encoder computed as this one does."""
WHENCE = ("is_local", "local_files_only")
TABLE, VECTORS = "papers", "paper_embeddings"


@dataclass(frozen=True)
class Unchanged:
    """The papers of a table whose vectors an earlier table has."""

    earlier: Path
    papers: NDArray[np.int64]
    """All papers of the table."""
    is_same: NDArray[np.bool_]
    """Whether the earlier table has the vector of each."""

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The rows of these papers, and their vectors."""
        for rows, matrix in vector_blocks([self.earlier], self.papers, VECTORS_AT_ONCE):
            kept = self.is_same[rows]
            yield rows[kept], matrix[kept].astype(np.float32)


def find_unchanged(
    base: Path, model: Path, papers: Path, tokenizer: Tokenizer, embed: Callable[[Sequence[Text]], NDArray[np.float32]]
) -> Unchanged | None:
    """The papers of a bucket whose text an earlier run, in the results folder `base`, embedded by the same encoder.

    None if no encoder of that run has the same files, or its vectors of some papers are not those of `embed`: it may
    have computed in another precision, on a GPU, or with other versions of libraries.
    """
    earlier = _earlier_vectors(base, model, papers.name)
    if earlier is None:
        report(f"{base}: has no vectors of these papers by this encoder; all are embedded.")
        return None
    now, before = _digests(papers, tokenizer), _digests(base / "corpus/papers" / papers.name, tokenizer)
    at, is_same = look_up(before["paper"], now["paper"])
    is_same[is_same] = before["digest"][at[is_same]] == now["digest"][is_same]
    is_same &= look_up(read_table(earlier, VECTORS, ["corpusid"])["corpusid"].to_numpy(), now["paper"])[1]
    texts = list(islice(compress(texts_of([papers], tokenizer, TABLE, tells=False), is_same), CHECKED))
    vectors, _ = vectors_of_papers(earlier, VECTORS, now["paper"][is_same][:CHECKED])
    if texts and not np.array_equal(vectors, embed(texts)):
        report(f"{earlier}: has other vectors than this encoder computes now; all papers are embedded.")
        return None
    report(f"{np.count_nonzero(is_same):,} of {len(is_same):,} papers have the text that they had in {base}.")
    return Unchanged(earlier, now["paper"], is_same)


def _earlier_vectors(base: Path, model: Path, name: str) -> Path | None:
    """The vectors of a bucket by an encoder with the same files but its card, trained or not."""
    wanted = _contents(model)
    tables = sorted(base.glob(f"encoder/*/seed-*/papers/{name}"))
    return next((table for table in tables if _contents(table.parents[1] / "model") == wanted), None)


def _contents(model: Path) -> dict[str, object]:
    """What the vectors by an encoder follow from: its files. Two keys of the tokenizer only tell whence it was read."""
    files = {str(path.relative_to(model)): path for path in model.rglob("*") if path.is_file() and path.name != CARD}
    contents: dict[str, object] = {name: fingerprint_of([path]) for name, path in files.items()}
    if (settings := model / "tokenizer_config.json").is_file():
        kept = {key: value for key, value in read_json(settings).items() if key not in WHENCE}
        contents[settings.name] = kept
    return contents


def _digests(papers: Path, tokenizer: Tokenizer) -> NDArray[np.void]:
    """The papers of a table, and a hash of the text of each as the encoder reads it."""
    rows = ((each.id, _digest(each)) for each in texts_of([papers], tokenizer, TABLE, tells=False))
    return np.fromiter(rows, [("paper", np.int64), ("digest", np.uint64)])


def _digest(text: Text) -> int:
    return int.from_bytes(blake2b("\0".join((text.text, *text.sentences)).encode(), digest_size=8).digest(), "little")
