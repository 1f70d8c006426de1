"""The documents of a benchmark as papers of the corpus: whoever keeps them out or looks for them asks here."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.files import read_table

A_NUMBER = r"^[0-9]{1,18}$"
"""What a corpus id looks like as text; 18 digits always fit into 64 bits."""


def corpus_ids_of(documents: Path) -> tuple[NDArray[np.int64], int]:
    """Corpus ids in a table documents, and how many documents have none.

    A document's name is its id, behind a colon where tasks share the id.
    """
    names = read_table(documents, "documents", ["document"])["document"]
    last = pc.replace_substring_regex(names, r"^.*:", "")
    numbers = last.filter(pc.match_substring_regex(last, A_NUMBER))
    return numbers.cast(pa.int64()).to_numpy(), len(names) - len(numbers)
