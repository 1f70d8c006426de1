"""The benchmarks that others made: which reader takes the files of which layout."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cocite.config.benchmarks import BENCHMARKS, KINDS, LAYOUTS
from cocite.config.plugins import check_choice
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
    folder: Path, kind: str, names: Sequence[str], metrics: Sequence[str] = (), *, tables: Path, omissions: Path
) -> None:
    """Write the tables of a benchmark: of the tasks of these names, or of all in the folder where none are named.

    What only some metrics need, such as test folds, is read where these metrics are given instead of the declared ones.

    Raises `InputError` where a named task is not in the folder, where none is, where a file is missing or wrong, and
    where no document of a task has a text.
    """
    check_choice(kind, [known for known, layout in LAYOUTS.items() if layout in READERS and known != "beir"], "--kind")
    tasks = [replace(task, metrics=tuple(metrics) or task.metrics) for task in BENCHMARKS[kind]]
    builder = READERS[LAYOUTS[kind]](folder, tasks, names)
    builder.check_texts(dict.fromkeys(builder.benchmark.tasks, folder))
    builder.write(tables=tables, omissions=omissions)


def describe_documents(
    documents: Path,
    kind: str,
    names: Sequence[str],
    folder: Path | None,
    output: Path,
    *,
    papers: Path | None = None,
    document_papers: Path | None = None,
) -> None:
    """Write the table `document_fields` of a prepared benchmark.

    `folder` is that of the benchmark; None if its files say nothing of any document. `papers` is the folder of the
    table papers, None if none of its documents is known to be one; `document_papers` says which they are, None if their
    ids are corpus ids.
    """
    check_choice(kind, KINDS, "--kind")
    if KINDS[kind].made_by is not None and papers is not None:
        write_fields(output, fields_of_papers(documents, papers))
        return
    fields: dict[str, Fields] = {}
    if folder is not None:
        builder = READERS[LAYOUTS[kind]](folder, BENCHMARKS[kind], names, keeps_fields=True)
        fields = builder.texts.named_fields()
        fields |= {name: fields[original] for name, original in builder.further_names.items() if original in fields}
    if papers is not None:
        fields = add_fields_of_papers(fields, documents, papers, document_papers)
    write_fields(output, fields.items())
