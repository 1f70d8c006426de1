"""Examples in the layout of a run, and what a training left, for tests and benchmarks of the encoder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from tests.rows import table_of, write_rows

from cocite.config.encoders import LOSSES
from cocite.config.entries import plugins
from cocite.core.tables.files import read_table, write_table
from cocite.encoder.examples import ExampleFiles
from cocite.encoder.tokens import tokenise_table

Texts = Mapping[int, tuple[str | None, str | None]]
"""Title and abstract by the paper's number."""
Row = tuple[int, list[int], list[int], str | None, list[str]]
"""An example: query, positives, negatives, aspect, and the kinds of the negatives."""
TRIPLETS = "query positives negatives"
OVER_EXAMPLES = {name: kind for name, kind in plugins(LOSSES, "kind").items() if kind.input_kind == "examples"}
"""The losses that compare examples, by their names."""
HYBRID = [
    {"loss": "supcon", "space": "aspects", "negatives": ["linked"], "weight": 0.3},
    {"loss": {"kind": "infonce", "temperature": 0.5}, "negatives": ["two-away", "easy"], "weight": 0.7},
]
"""A hybrid of two losses: one in the spaces of aspects, and one in that of the encoder."""


def files_in(folder: Path) -> ExampleFiles:
    """The examples that `written_examples` wrote into a folder."""
    return ExampleFiles(table=folder / "examples.parquet", tokens=folder / "tokens")


def written_examples(folder: Path, rows: Sequence[tuple[int, int, int]], texts: Texts, encoder: Path) -> ExampleFiles:
    """Write triplets, their documents in two buckets, and the tokens of these."""
    triplets = [(query, [positive], [negative]) for query, positive, negative in rows]
    return _written(folder, table_of("training_examples", TRIPLETS, triplets), texts, encoder)


def written_aspects(folder: Path, rows: Sequence[Row], texts: Texts, encoder: Path) -> ExampleFiles:
    """Write examples with aspects, their documents and the tokens of these, likewise."""
    return _written(folder, table_of("training_examples", f"{TRIPLETS} aspect negative_kinds", rows), texts, encoder)


def written_pairs(folder: Path, files: ExampleFiles, encoder: Path) -> ExampleFiles:
    """Write some examples again without their negatives, likewise."""
    examples = read_table(files.table, "training_examples").combine_chunks()
    none = pa.array([[]] * len(examples), pa.list_(pa.int64()))
    documents = read_table(files.table.parent / "documents", "training_documents").to_pylist()
    texts = {row["corpusid"]: (row["title"], row["abstract"]) for row in documents}
    place = examples.column_names.index("negatives")
    return _written(folder, examples.set_column(place, "negatives", none), texts, encoder)


def written_crops(folder: Path, papers: Sequence[int], texts: Texts, encoder: Path) -> ExampleFiles:
    """Write examples of spans of some papers, each with the next one's as its negatives, likewise."""
    spans = [(paper, [paper], [other], 2, None) for paper, other in zip(papers, [*papers[1:], papers[0]], strict=True)]
    columns = f"{TRIPLETS} shortest_span longest_span"
    return _written(folder, table_of("training_examples", columns, spans), texts, encoder)


def _written(folder: Path, examples: pa.Table, texts: Texts, encoder: Path) -> ExampleFiles:
    write_table(folder / "examples.parquet", "training_examples", examples)
    lists = [examples[name].combine_chunks().flatten().to_pylist() for name in ("positives", "negatives")]
    named = {*examples["query"].to_pylist(), *(paper for papers in lists for paper in papers)}
    for bucket in (0, 1):
        documents = [(paper, *texts[paper]) for paper in sorted(named) if paper % 2 == bucket]
        write_rows(folder / f"documents/{bucket}.parquet", "training_documents", "corpusid title abstract", documents)
    tokenise_table(folder / "documents", encoder=encoder, threads=1, output=folder / "tokens")
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
