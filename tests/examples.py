"""Examples in the layout of a run, and what a training left, for tests and benchmarks of the encoder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from cocite.encoder.examples import ExampleFiles
from cocite.encoder.tokens import open_tokenizer, tokenise_table
from cocite.tables.files import read_table, write_table
from cocite.triplets.texts import write_examples

Texts = Mapping[int, tuple[str | None, str | None]]
"""Title and abstract by the paper's number."""


def files_in(folder: Path) -> ExampleFiles:
    """The examples that `written_examples` wrote into a folder."""
    return ExampleFiles(table=folder / "examples.parquet", tokens=folder / "tokens")


def written_examples(folder: Path, rows: Sequence[tuple[int, int, int]], texts: Texts, encoder: Path) -> ExampleFiles:
    """Write triplets, their documents in two buckets, and the tokens of these."""
    triplets = np.array(rows, dtype=np.int64).reshape(-1, 3)
    write_examples(folder / "examples.parquet", "training_examples", triplets)
    for bucket in (0, 1):
        papers = [paper for paper in np.unique(triplets).tolist() if paper % 2 == bucket]
        columns = {"corpusid": pa.array(papers, pa.int64())}
        for place, part in enumerate(("title", "abstract")):
            columns[part] = pa.array([texts[paper][place] for paper in papers], pa.string())
        write_table(folder / f"documents/{bucket}.parquet", "training_documents", pa.table(columns))
    tokenise_table(folder / "documents", open_tokenizer(encoder), folder / "tokens")
    return files_in(folder)


def texts_of_examples(files: ExampleFiles, separator: str) -> list[list[str]]:
    """The texts of the query, the positive and the negative of each triplet."""
    documents = read_table(files.table.parent / "documents", "training_documents").to_pylist()
    text = {row["corpusid"]: f"{row['title']}{separator}{row['abstract']}" for row in documents}
    return [
        [text[paper] for paper in (row["query"], *row["positives"], *row["negatives"])]
        for row in read_table(files.table, "training_examples").to_pylist()
    ]


def curve_in(folder: Path, metric: str) -> dict[int, float]:
    """A metric by step, as a training has written it."""
    rows = read_table(folder / "curves.parquet", "training_curves").to_pylist()
    return {row["step"]: row["value"] for row in rows if row["metric"] == metric}
