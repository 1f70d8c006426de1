"""From a folder of S2AND datasets to the tables of a benchmark (Subramanian et al., 2021, "S2AND").

    <dataset>/<dataset>_papers.json        texts of the papers
    <dataset>/<dataset>_signatures.json    names on papers: paper, and block of alike names
    <dataset>/<dataset>_clusters.json      authors: the signatures of each person

The embeddings that lie beside them are pickled, and are not read. A dataset gives no splits; its package draws a tenth
of the blocks for the test. So it is here, by a draw that does not depend on the order of the file.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cocite.config.benchmarks.s2and import TASKS
from cocite.config.tasks import Task
from cocite.evaluation.benchmark import Benchmark, Prepared, Signature, write_benchmark
from cocite.evaluation.preparation.files import present_tasks, read_objects
from cocite.evaluation.preparation.texts import References, Texts, chosen_texts
from cocite.ground.errors import InputError
from cocite.ground.progress import progress
from cocite.ground.randomness import generator

TEST_SHARE = 0.1
SPLIT_SEED = 1111


def prepare_s2and(
    folder: Path, *, tasks: Sequence[str] = (), files: Prepared, declared: Sequence[Task] = TASKS
) -> None:
    """Write the tables of these tasks of the benchmark in `folder`; where none are named, of all that it holds.

    Raises `InputError` where a task is named whose dataset the folder does not hold, a file is missing, something in it
    is wrong, or a dataset has fewer than two blocks.
    """
    folders = {task: folder / task.labels_folder for task in declared if not tasks or task.name in tasks}
    present, omitted = present_tasks(folders, must_all=bool(tasks))
    texts, benchmark, used = Texts(), Benchmark(), set[str]()
    for task in progress(present, of="Texts", unit="dataset"):
        for identifier, row in read_objects(_file(folder, task, "papers")):
            texts.add(task.texts_folder, identifier, (row.text("title"), row.text("abstract"), ()))
    for task in progress(present, of="Tasks", unit="task"):
        references = References(texts, f"the task {task.name}")
        authors = _read_authors(_file(folder, task, "clusters"), task, omitted)
        benchmark.signatures[task.name] = _read_signatures(
            _file(folder, task, "signatures"), task, authors, references, omitted
        )
        omitted[f"task {task.name}: document without text"] = references.unknown
        used |= references.found
    write_benchmark(benchmark, chosen_texts(texts, used, omitted), dict(omitted), files)


def _file(folder: Path, task: Task, table: str) -> Path:
    return folder / task.labels_folder / f"{task.labels_folder}_{table}.json"


def _read_authors(path: Path, task: Task, omitted: Counter[str]) -> dict[str, str]:
    """The author of each signature."""
    authors: dict[str, str] = {}
    for author, row in read_objects(path):
        for signature in row.identifiers("signature_ids"):
            omitted[f"task {task.name}: signature of a second author (the first counts)"] += signature in authors
            authors.setdefault(signature, author)
    return authors


def _read_signatures(
    path: Path, task: Task, authors: dict[str, str], references: References, omitted: Counter[str]
) -> dict[str, Signature]:
    """The signatures whose author is known, with their blocks in one of the splits."""
    found = {}
    for signature, row in read_objects(path):
        omitted[f"task {task.name}: signature without an author"] += signature not in authors
        if signature in authors:
            document = references.find(row.place, task.texts_folder, row.identifier("paper_id"))
            block = row.nested("author_info").identifier("block")
            if document is not None:
                found[signature] = (document, block)
    references.check()
    splits = _split({block for _, block in found.values()}, task, path)
    return {
        signature: (document, block, authors[signature], splits[block])
        for signature, (document, block) in found.items()
    }


def _split(blocks: set[str], task: Task, path: Path) -> dict[str, str]:
    """The split of each block: a tenth of them is for the test, and one at least."""
    if len(blocks) < 2:
        raise InputError(f"{path}: has {len(blocks)} blocks; two are needed, one to choose the distance on.")
    order = generator(SPLIT_SEED, "test blocks", task.name).permutation(len(blocks))
    tested = max(1, round(TEST_SHARE * len(blocks)))
    ordered = sorted(blocks)
    return {ordered[number]: "test" if place < tested else "train" for place, number in enumerate(order)}
