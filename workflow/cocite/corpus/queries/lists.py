"""Lists of papers that a user brings: text files with a corpus id a line, and the documents of benchmarks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.corpus.ingest.malformed import quoted
from cocite.ground.errors import InputError
from cocite.ground.written_ids import LARGEST_ID, is_id
from cocite.tables.documents import corpus_ids_of

Ids = NDArray[np.int64]


def read_ids(path: Path) -> Ids:
    """The distinct ids of a text file, rising. Raises `InputError` for a line that is no id."""
    ids = set()
    # Editors that save "UTF-8 with BOM" put a mark before the first id; other bytes than digits are no id anyway.
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            if text and not is_id(text):
                raise InputError(
                    f"{path}, line {number}: {quoted(text)} is not a corpus id; a line has one whole number from 0 to "
                    f"{LARGEST_ID:,}."
                )
            if text:
                ids.add(int(text))
    return np.array(sorted(ids), dtype=np.int64)


def read_excluded(files: Sequence[Path]) -> tuple[Ids, int]:
    """The distinct ids of all files, rising, and how many documents of benchmarks have no corpus id.

    A file `.parquet` is the table documents of a benchmark, any other a text file.
    """
    read = [corpus_ids_of(path) if path.suffix == ".parquet" else (read_ids(path), 0) for path in files]
    ids = np.concatenate([np.empty(0, dtype=np.int64), *(found for found, _ in read)])
    return np.unique(ids), sum(others for _, others in read)
