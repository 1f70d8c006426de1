"""The documents of a benchmark as papers of the corpus, for steps that keep them out or look for them."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.ground.written_ids import ids_in
from cocite.tables.files import read_table


def corpus_ids_of(documents: Path) -> tuple[NDArray[np.int64], int]:
    """Corpus ids in a table documents, and how many documents have none.

    A document's name is its id, behind a colon where tasks share the id.
    """
    names = read_table(documents, "documents", ["document"])["document"]
    numbers = ids_in(pc.replace_substring_regex(names, r"^.*:", "")).drop_null()
    return numbers.to_numpy(), len(names) - len(numbers)
