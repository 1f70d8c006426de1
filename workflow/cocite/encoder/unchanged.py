"""Papers whose text has not changed since an earlier run that embedded them by the same encoder.

Their vectors are copied: on a CPU the vector of a text depends on no other text (`embed_alike`).
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
"""Papers that are embedded again, to compare the earlier encoder with this one."""
WHENCE = ("is_local", "local_files_only")
"""Settings of a tokenizer that only tell where it was read from."""
TABLE, VECTORS = "papers", "paper_embeddings"


@dataclass(frozen=True)
class Unchanged:
    """The papers of a table whose vectors an earlier table has."""

    earlier: Path
    papers: NDArray[np.int64]
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
    None if no encoder of that run has the same files, or `embed` gives some papers other vectors, as in another
    precision, on a GPU, or with other libraries."""
    wanted, tables = _contents(model), sorted(base.glob(f"encoder/*/seed-*/papers/{papers.name}"))
    earlier = next((table for table in tables if _contents(table.parents[1] / "model") == wanted), None)
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


def _contents(model: Path) -> dict[str, object]:
    """What the vectors by an encoder follow from, trained or not: its files, apart from its card."""
    files = [path for path in model.rglob("*") if path.is_file() and path.name != CARD]
    contents: dict[str, object] = {str(path.relative_to(model)): fingerprint_of([path]) for path in files}
    if (settings := model / "tokenizer_config.json").is_file():
        contents[settings.name] = {key: each for key, each in read_json(settings).items() if key not in WHENCE}
    return contents


def _digests(papers: Path, tokenizer: Tokenizer) -> NDArray[np.void]:
    """The papers of a table, and a hash of the text of each as the encoder reads it."""
    texts = texts_of([papers], tokenizer, TABLE, tells=False)
    read = ((each.id, "\0".join((each.text, *each.sentences)).encode()) for each in texts)
    rows = ((id, int.from_bytes(blake2b(text, digest_size=8).digest(), "little")) for id, text in read)
    return np.fromiter(rows, [("paper", np.int64), ("digest", np.uint64)])
