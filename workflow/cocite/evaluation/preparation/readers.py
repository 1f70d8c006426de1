"""The readers of external benchmarks, by layout of their files.

Encoders may read venue, authors and year of documents; if the files of a benchmark lack them, as those of SciDocs do,
they are taken from the papers of this run's corpus that match its documents.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from cocite.config.benchmarks import BENCHMARKS, KINDS, LAYOUTS, names
from cocite.config.entries import check_choice
from cocite.config.tasks import Task
from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.hub import fetch_files
from cocite.core.options import Omissions, Output, State
from cocite.core.tables.files import read_table, scan_table
from cocite.core.tables.papers import NO_PAPER, names_of_papers, papers_of_documents
from cocite.core.written_ids import distinct
from cocite.evaluation.benchmark import KindName, Metrics, Tables, TaskNames, with_metrics, write_rows
from cocite.evaluation.preparation.builder import PATTERNS, Builder, Fields, Texts, files_of_split
from cocite.evaluation.preparation.pools import read_csfcube, read_doris_mae, read_mdcr
from cocite.evaluation.preparation.scidocs import read_scidocs
from cocite.evaluation.preparation.scirepeval import read_s2and, read_scirepeval
from cocite.evaluation.preparation.searches import read_beir, read_litsearch

READERS: Mapping[str, Callable[[Path, Sequence[Task], Sequence[str], Builder], None]] = {
    "scirepeval": read_scirepeval,
    "scidocs": read_scidocs,
    "mdcr": read_mdcr,
    "beir": read_beir,
    "s2and": read_s2and,
    "csfcube": read_csfcube,
    "litsearch": read_litsearch,
    "doris_mae": read_doris_mae,
}
"""Each fills a builder with the tasks of some names, or all of them if none are named. It raises `InputError` if a
named task is not in the folder, a file is missing, or a row has an error."""


def prepare_folder(
    folder: Annotated[Path, typer.Argument(help="Folder of the benchmark, in the layout of its kind.")],
    *,
    kind: KindName,
    tasks: TaskNames = "",
    metrics: Metrics = "",
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Read an external benchmark: the tasks of these names, or all in the folder if none are named.

    Data for some metrics only, such as test folds, are read if these metrics replace the declared ones.

    Raises `InputError` if a named task is not in the folder, there is none, a file is missing or has an error, or no
    document of a task has a text.
    """
    check_choice(kind, [known for known, layout in LAYOUTS.items() if layout in READERS and known != "beir"], "--kind")
    builder = Builder(Texts())
    READERS[LAYOUTS[kind]](folder, with_metrics(BENCHMARKS[kind], metrics), names(tasks), builder)
    builder.write(dict.fromkeys(builder.benchmark.tasks, folder), tables=tables, omissions=omissions)


def fetch_config(
    config: Annotated[str, typer.Argument(help="Name of the config: a folder of the dataset.")],
    *,
    dataset: Annotated[str, typer.Option(help="Dataset on the Hugging Face hub.")],
    revision: Annotated[str, typer.Option(help="Commit of the dataset.")],
    splits: Annotated[str, typer.Option(help="Comma-separated names of its splits.")],
    state: State,
    output: Output,
) -> None:
    """Fetch a config of a benchmark from the hub; a killed fetch resumes from the files in `state`.

    Raises `InputError` if the hub cannot be reached, or has no files of a split at the revision.
    """
    fetched = state / revision
    patterns = [f"{config}/{pattern.format(split)}" for split in names(splits) for pattern in PATTERNS]
    try:
        fetch_files(dataset, revision, patterns, fetched, kind="dataset")
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}. A benchmark is fetched once: run that step where there is a network, such as a "
            "login node for example (snakemake --until fetch_benchmark), or name a local folder in place of hub."
        ) from error
    for split in names(splits):
        if not files_of_split(fetched / config, split):
            lacks = f"{dataset} at {revision} has no Parquet or JSON Lines files of {config}, split {split}"
            remedy = "pin a commit that has them, such as the last one of its branch refs/convert/parquet"
            raise InputError(f"{lacks}; {remedy}.")
    with atomic_path(output) as folder:
        shutil.move(fetched / config, folder)
    shutil.rmtree(state)


def describe_documents(
    documents: Annotated[Path, typer.Argument(help="Table documents of the benchmark.")],
    *,
    kind: KindName,
    tasks: TaskNames = "",
    folder: Annotated[
        Path | None, typer.Option(help="Folder of the benchmark; none if its files lack the fields.")
    ] = None,
    output: Output,
    papers: Annotated[
        Path | None, typer.Option(help="Folder of the table papers; none if no document matches one.")
    ] = None,
    document_papers: Annotated[
        Path | None, typer.Option(help="Table document_papers; none if the documents have corpus ids.")
    ] = None,
) -> None:
    """Look up venue, authors and year of the documents of a benchmark, for encoders that read them."""
    check_choice(kind, KINDS, "--kind")
    fields: dict[str, Fields] = {}
    if KINDS[kind].made_by is not None and papers is not None:
        held_out = read_table(documents, "documents", ["document"])["document"].to_pylist()
        ids = np.array([int(name) for name in held_out if name.isdecimal()], dtype=np.int64)
        fields = {str(paper): found for paper, found in _fields_of_papers(papers, ids)}
    else:
        if folder is not None:
            builder = Builder(Texts(keeps_fields=True))
            READERS[LAYOUTS[kind]](folder, BENCHMARKS[kind], names(tasks), builder)
            fields = builder.fields()
        if papers is not None:
            known_as = names_of_papers(documents)
            ids = papers_of_documents(document_papers)(known_as)
            known = dict(_fields_of_papers(papers, distinct(ids[ids != NO_PAPER])))
            for name, paper in zip(known_as.to_pylist(), ids.tolist(), strict=True):
                if paper in known:
                    (venue, authors, year), of_paper = fields.get(name, (None, None, None)), known[paper]
                    fields[name] = venue or of_paper[0], authors or of_paper[1], year or of_paper[2]
            fields = {name: each for name, each in fields.items() if any(each)}
    write_rows(output, "document_fields", ((name, *values) for name, values in fields.items()))


def _fields_of_papers(papers: Path, ids: NDArray[np.int64]) -> Iterator[tuple[int, Fields]]:
    table, chosen = scan_table(papers, "papers"), pc.field("corpusid").isin(pa.array(ids))
    columns = [name for name in ("corpusid", "venue", "authors", "year") if name in table.schema.names]
    for batch in table.to_batches(columns=columns, filter=chosen, batch_readahead=1, fragment_readahead=1):
        for row in batch.to_pylist():
            yield row["corpusid"], (row["venue"], row.get("authors"), row["year"])
