"""The folder of a published model: what goes into it, and from where."""

import shutil
from pathlib import Path

from cocite.core.atomic import atomic_path
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.core.tables.files import write_text
from cocite.tools.inspection.nearest import Model
from cocite.tools.publishing.checking import check_vectors
from cocite.tools.publishing.metadata import card_for_hub, provenance_for
from cocite.tools.publishing.mteb import scores_of, write_mteb

CARD, REPORT, VECTORS, MTEB = "README.md", "report.html", "vectors", "mteb"
SCHEMA = """# Vectors of the papers

One row for each paper of the corpus that has a title or an abstract, as Parquet, in files by `corpusid` modulo their
number. {origin}

| column | type | what it is |
|---|---|---|
{rows}
"""


def write_folder(results: Path, model: Model, output: Path, *, licence: str, with_vectors: bool = False) -> int:
    """Write the folder of a model, and return how many documents were embedded again to check it.

    Raises `InputError` where the output exists, the run is not at its end, vectors are asked for that were not made, or
    the folder does not embed as the run did.
    """
    provenance = provenance_for(results, output)
    with atomic_path(output) as folder:
        shutil.copytree(model.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        scored = results / f"report/cards/{model.name}/seed-{model.seed}" / CARD
        card = scored if scored.is_file() else model.folder / CARD
        write_text(folder / CARD, card_for_hub(card.read_text(encoding="utf-8"), results, model, provenance, licence))
        if (results / "report/index.html").is_file():
            shutil.copyfile(results / "report/index.html", folder / REPORT)
        scores, _ = scores_of(results, provenance, (model.name, model.seed))
        if len(scores):
            write_mteb(scores, provenance, folder / MTEB, licence=licence)
        if with_vectors:
            _write_vectors(model, folder / VECTORS)
        return check_vectors(results, model, folder)


def _write_vectors(model: Model, folder: Path) -> None:
    """Write the vectors of all papers, and what their columns are."""
    if not model.vectors:
        raise InputError(
            f"The papers have no vectors of model {model.name}, seed {model.seed}, that are newer than it is; "
            f"`cocite search` says how to make them."
        )
    folder.mkdir()
    for file in model.vectors:
        shutil.copyfile(file, folder / file.name)
    columns = TABLES["paper_embeddings"].columns
    rows = "\n".join(f"| `{name}` | {column.type} | {column.meaning} |" for name, column in columns.items())
    origin = f"They are those of the model {model.name}, seed {model.seed}, in this folder."
    write_text(folder / CARD, SCHEMA.format(origin=origin, rows=rows))
