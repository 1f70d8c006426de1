"""A folder of S2AND datasets (Subramanian et al., 2021, "S2AND").

    <dataset>/<dataset>_papers.json        texts of the papers
    <dataset>/<dataset>_signatures.json    names on papers: paper, and block of alike names
    <dataset>/<dataset>_clusters.json      authors: the signatures of each person

The pickled embeddings in the folder are not read. A tenth of the blocks is for the test, as in the package of S2AND,
but drawn independently of the order of the file.
"""

from collections.abc import Sequence
from pathlib import Path

from cocite.config.tasks import Task
from cocite.core.errors import InputError
from cocite.core.progress import progress
from cocite.core.randomness import generator
from cocite.core.rows import read_objects
from cocite.evaluation.preparation.builder import Builder, Texts
from cocite.evaluation.preparation.files import present_tasks

TEST_SHARE = 0.1
SPLIT_SEED = 1111


def read_s2and(folder: Path, declared: Sequence[Task], names: Sequence[str], *, keeps_fields: bool = False) -> Builder:
    """Read the tasks of these names from the benchmark in `folder`, or all of them if none are named.

    Raises `InputError` if the dataset of a named task is not in the folder, a file is missing or has an error, or a
    dataset has fewer than two blocks.
    """
    present, omitted = present_tasks(folder, declared, names, lambda task: task.labels_folder)
    texts = Texts(keeps_fields=keeps_fields)
    for task in progress(present, of="Texts", unit="dataset"):
        for identifier, row in read_objects(_file(folder, task, "papers")):
            texts.add_paper(task.texts_folder, identifier, row)
    builder = Builder(texts, omitted)
    for task in progress(present, of="Tasks", unit="task"):
        _read_dataset(folder, task, builder)
    return builder


def _file(folder: Path, task: Task, table: str) -> Path:
    return folder / task.labels_folder / f"{task.labels_folder}_{table}.json"


def _read_dataset(folder: Path, task: Task, builder: Builder) -> None:
    authors: dict[str, str] = {}
    for author, row in read_objects(_file(folder, task, "clusters")):
        for signature in row.identifiers("signature_ids"):
            again = f"task {task.name}: signature of a second author (the first counts)"
            builder.omitted[again] += signature in authors
            authors.setdefault(signature, author)
    found, path = {}, _file(folder, task, "signatures")
    with builder.documents_of(task) as references:
        for signature, row in read_objects(path):
            builder.omitted[f"task {task.name}: signature without an author"] += signature not in authors
            if signature in authors:
                document = references.find(row.place, task.texts_folder, row.identifier("paper_id"))
                block = row.nested("author_info").identifier("block")
                if document is not None:
                    found[signature] = document, block
    blocks = sorted({block for _, block in found.values()})
    if len(blocks) < 2:
        raise InputError(f"{path}: has {len(blocks)} blocks; two are needed, one to choose the distance on.")
    order = generator(SPLIT_SEED, "test blocks", task.name).permutation(len(blocks))
    tested = {blocks[number] for number in order[: max(1, round(TEST_SHARE * len(blocks)))]}
    builder.benchmark.signatures[task.name] = {
        signature: (document, block, authors[signature], "test" if block in tested else "train")
        for signature, (document, block) in found.items()
    }
