"""A finished run of few papers whose neighbours and relations are known by hand, and a server of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
from tests.papers import papers_table
from tests.tools.builders import write_model, write_vectors

from cocite.core.randomness import generator
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_table
from cocite.tools.finished_run import Run
from cocite.tools.web import listen, server, url_of

SCRIPT = '<script>document.title = "owned"</script>'
TITLES = {
    1: "Bees and nectar",
    2: "Nectar",
    3: "Flowers of spring",
    4: SCRIPT,
    5: '<img src=x onerror="document.title = 1">',
    6: None,
    7: "Bees in winter",
}
PAPERS = 40
LARGE = 2**62 + 1
"""The last paper; JavaScript would round its id."""
LAST = 'Loops "OR" compilers'
CITED = {7: 50, 1: 10}
MODELS = ("trained/1", "untrained_small/0")
DOI = "10.1234/Bees_(1)"
AUTHORS = {1: ["Ada Bee", "Carl Hive", "Dora Comb", "Eli Wax"], 4: ["=Ada"]}
"""Of papers 1 and 4; others have none."""


def ids() -> list[int]:
    return [*range(1, PAPERS), LARGE]


def vectors_of_model(name: str) -> dict[int, np.ndarray]:
    """The vectors of all papers but 39, which has no text."""
    drawn = generator(1, name).normal(size=(PAPERS, 8)).astype(np.float32)
    return {paper: vector for paper, vector in zip(ids(), drawn, strict=True) if paper != 39}


def write_run(results: Path) -> Path:
    """Tables of papers, citations, co-citations of two graphs, triplets, examples and two models."""
    _write_papers(results)
    _write_graph(results)
    _write_triplets(results)
    for name in MODELS:
        model, seed = name.split("/")
        papers = write_model(results, model, int(seed)).parent / "papers"
        for bucket in (0, 1):
            vectors = vectors_of_model(name).items()
            write_vectors(papers / f"{bucket}.parquet", {paper: each for paper, each in vectors if paper % 2 == bucket})
    return results


def _write_papers(results: Path) -> None:
    titles = {paper: TITLES.get(paper, f"Paper {paper}") for paper in ids()} | {LARGE: LAST}
    for bucket in (0, 1):
        there = [paper for paper in ids() if paper % 2 == bucket]
        columns = {"year": [1900 + paper % 100 for paper in there], "citation_count": [CITED.get(p) for p in there]}
        columns |= {"doi": [DOI if p == 1 else None for p in there], "authors": [AUTHORS.get(p, []) for p in there]}
        columns |= {"venue": ["Journal of Bees" if p < 20 else None for p in there]}
        columns |= {"fields": [["Biology", "Art"] if p % 3 == 0 else ["Art"] for p in there]}
        texts = {paper: (titles[paper], "An abstract.") for paper in there}
        write_table(results / f"corpus/papers/{bucket}.parquet", "papers", papers_table(texts, **columns))


def _write_graph(results: Path) -> None:
    citations = {"citing": [1, 3, 4], "cited": [2, 1, 5], "influential": [False] * 3, "intents": [[]] * 3}
    _write(results / "corpus/citations/0.parquet", "citations", citations)
    for graph, pairs in {"all": [(1, 2, 2), (1, 4, 3), (2, 3, 8)], "few": [(1, 4, 1)]}.items():
        papers, others, counts = zip(*pairs, strict=True)
        columns = {"paper": papers, "other": others, "count": counts}
        _write(results / f"graph/{graph}/cocitations/0.parquet", "cocitations", columns)


def _write_triplets(results: Path) -> None:
    triplets = {"query": [1, 2], "positive": [2, 1], "negative": [5, 4], "split": ["train"] * 2}
    more = {"positive_rank": [None] * 2, "negative_rank": [None] * 2, "negative_kind": ["hard"] * 2}
    _write(results / "triplets/near/triplets.parquet", "triplets", {**triplets, **more})
    examples = {"query": [1], "number": [1], "split": ["train"], "positives": [[3]], "negatives": [[4, 6]]}
    _write(results / "triplets/lists/sampled_examples.parquet", "sampled_examples", examples)


def _write(path: Path, name: str, columns: dict[str, list]) -> None:
    schema = empty_schema(TABLES[name])
    write_table(
        path, name, pa.table([pa.array(columns[each], schema.field(each).type) for each in columns], [*columns])
    )


@dataclass(frozen=True)
class Served:
    """A server of a run on a free port of this machine."""

    url: str
    port: int


@contextmanager
def served(run: Run, host: str = "127.0.0.1") -> Iterator[Served]:
    with listen(host, 0) as listening:
        at_work = server(run, host)
        thread = Thread(target=at_work.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(url_of(listening), listening.getsockname()[1])
        finally:
            at_work.should_exit = True
            thread.join()


def states(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of everything in a folder."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}
