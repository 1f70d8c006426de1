"""The queries of SPECTER2's published training triplets (Singh et al., 2023), from the Hugging Face hub or a folder.

In `cite_prediction_new` of the dataset, each row has query, pos and neg, each with an id, a title and an abstract; only
the ids of the queries are read. A query of the training triplets that is one of the validation triplets is left out.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from cocite.config.queries import TRIPLETS
from cocite.core.errors import InputError, explain_unreadable
from cocite.core.id_sets import NO_IDS
from cocite.core.options import Omissions, Output
from cocite.core.progress import progress
from cocite.core.rows import PARQUET
from cocite.core.tables.files import open_table, write_omissions, write_table
from cocite.core.written_ids import Ids, corpus_ids, distinct, look_up

ID_NAMES = ("corpus_id", "doc_id")
ROWS_IN_MEMORY = 100_000
NOT_MATCHED = "published queries that no paper of the corpus is matched with"


def read_triplets(
    folder: Annotated[Path, typer.Argument(help="Folder of the triplets: the fetched one, or a copy.")],
    *,
    output: Output,
    omissions: Omissions,
    matches: Annotated[
        Path | None, typer.Option(help="Table matches, if the corpus has other ids than the triplets.")
    ] = None,
) -> None:
    """Read the queries of published triplets.

    Raises `InputError` if the folder has no training or no validation triplets, or a file has no ids of queries.
    """
    training, without_id = _distinct_queries(_files(folder, "train"), "Training triplets")
    if not len(training):
        raise InputError(f"{folder}: contains no training triplets ({TRIPLETS}/train-*.parquet) with ids of queries.")
    files = _files(folder, "validation", "evaluation")
    if not files:
        raise InputError(f"{folder}: contains no validation triplets (validation-*.parquet or evaluation-*.parquet).")
    validation, _ = _distinct_queries(files, "Validation triplets")
    queries = np.setdiff1d(training, validation, assume_unique=True)
    counts = {
        "published triplets whose query's id is no number": without_id,
        "published training queries that are validation queries as well": len(training) - len(queries),
    }
    if matches is not None:
        found = [NO_IDS]
        for batch in open_table(matches, "matches").iter_batches(ROWS_IN_MEMORY, columns=["corpusid", "s2_corpusid"]):
            found.append(batch["corpusid"].to_numpy()[look_up(queries, batch["s2_corpusid"].to_numpy())[1]])
        matched = np.sort(np.concatenate(found))
        counts = {NOT_MATCHED: len(queries) - len(matched), **counts}
        queries = matched
    write_table(output, "published_queries", pa.table({"corpusid": queries}))
    write_omissions(omissions, counts)


def _files(folder: Path, *splits: str) -> list[Path]:
    """The files of a split, in the two layouts of the hub: `train-00000-of-00048.parquet` and `train/0000.parquet`."""
    inside = folder / TRIPLETS if (folder / TRIPLETS).is_dir() else folder
    patterns = [pattern for split in splits for pattern in (f"{split}*.parquet", f"{split}/*.parquet")]
    return sorted(path for pattern in patterns for path in inside.glob(pattern))


def _distinct_queries(files: list[Path], of: str) -> tuple[Ids, int]:
    """The distinct corpus ids of the queries, plain or as digits, rising; and how many rows have none."""
    queries, without = NO_IDS, 0
    for path in progress(files, of=of, unit="file"):
        with explain_unreadable(path, PARQUET), pq.ParquetFile(path, page_checksum_verification=True) as file:
            columns = {file.schema.column(place).path for place in range(len(file.schema))}
            name = next((name for name in ID_NAMES if f"query.{name}" in columns), None)
            if name is None:
                known = " or ".join(ID_NAMES)
                raise InputError(f"{path}: has no column query with a {known}, as published triplets have.")
            for batch in file.iter_batches(ROWS_IN_MEMORY, columns=[f"query.{name}"]):
                numbers = corpus_ids(pc.struct_field(batch["query"], name)).drop_null().to_numpy()
                without += len(batch) - len(numbers)
                queries = distinct(queries, numbers)
    return queries, without
