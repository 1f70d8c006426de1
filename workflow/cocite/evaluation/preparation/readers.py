"""The benchmarks that others made: which reader takes the files of which layout."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.benchmarks import BENCHMARKS, KINDS, LAYOUTS, names
from cocite.config.plugins import check_choice
from cocite.core.options import Omissions, Output
from cocite.evaluation.asked import KindName, Metrics, Tables, TaskNames
from cocite.evaluation.preparation.beir import read_beir
from cocite.evaluation.preparation.builder import Builder
from cocite.evaluation.preparation.csfcube import read_csfcube
from cocite.evaluation.preparation.doris_mae import read_doris_mae
from cocite.evaluation.preparation.fields import Fields, add_fields_of_papers, fields_of_papers, write_fields
from cocite.evaluation.preparation.litsearch import read_litsearch
from cocite.evaluation.preparation.mdcr import read_mdcr
from cocite.evaluation.preparation.s2and import read_s2and
from cocite.evaluation.preparation.scidocs import read_scidocs
from cocite.evaluation.preparation.scirepeval import read_scirepeval

READERS: Mapping[str, Callable[..., Builder]] = {
    "scirepeval": read_scirepeval,
    "scidocs": read_scidocs,
    "mdcr": read_mdcr,
    "beir": read_beir,
    "s2and": read_s2and,
    "csfcube": read_csfcube,
    "litsearch": read_litsearch,
    "doris_mae": read_doris_mae,
}


def prepare_folder(
    folder: Annotated[Path, typer.Argument(help="Folder of the benchmark, in the layout of its kind.")],
    *,
    kind: KindName,
    tasks: TaskNames = "",
    metrics: Metrics = "",
    tables: Tables,
    omissions: Omissions,
) -> None:
    """Read a benchmark that others made: the tasks of these names, or all in the folder where none are named.

    What only some metrics need, such as test folds, is read where these metrics are given instead of the declared ones.

    Raises `InputError` where a named task is not in the folder, where none is, where a file is missing or wrong, and
    where no document of a task has a text.
    """
    check_choice(kind, [known for known, layout in LAYOUTS.items() if layout in READERS and known != "beir"], "--kind")
    declared = [replace(task, metrics=tuple(names(metrics)) or task.metrics) for task in BENCHMARKS[kind]]
    builder = READERS[LAYOUTS[kind]](folder, declared, names(tasks))
    builder.check_texts(dict.fromkeys(builder.benchmark.tasks, folder))
    builder.write(tables=tables, omissions=omissions)


def describe_documents(
    documents: Annotated[Path, typer.Argument(help="Table documents of the benchmark.")],
    *,
    kind: KindName,
    tasks: TaskNames = "",
    folder: Annotated[
        Path | None, typer.Option(help="Folder of the benchmark; none if its files say nothing of the fields.")
    ] = None,
    output: Output,
    papers: Annotated[
        Path | None, typer.Option(help="Folder of the table papers; none if no document is known to be one of them.")
    ] = None,
    document_papers: Annotated[
        Path | None, typer.Option(help="Table document_papers; none if the documents have corpus ids.")
    ] = None,
) -> None:
    """Look up venue, authors and year of the documents of a benchmark, for encoders that read them."""
    check_choice(kind, KINDS, "--kind")
    if KINDS[kind].made_by is not None and papers is not None:
        write_fields(output, fields_of_papers(documents, papers))
        return
    fields: dict[str, Fields] = {}
    if folder is not None:
        builder = READERS[LAYOUTS[kind]](folder, BENCHMARKS[kind], names(tasks), keeps_fields=True)
        fields = builder.texts.named_fields()
        fields |= {name: fields[original] for name, original in builder.further_names.items() if original in fields}
    if papers is not None:
        fields = add_fields_of_papers(fields, documents, papers, document_papers)
    write_fields(output, fields.items())
