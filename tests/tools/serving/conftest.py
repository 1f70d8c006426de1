"""A finished run of few papers whose neighbours are known by hand, its server, and its page in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode

import numpy as np
import pytest
from selenium.webdriver.support.ui import WebDriverWait
from tests.browser import Browser, started
from tests.papers import papers_table
from tests.rows import write_rows
from tests.tools.builders import write_model, write_vectors

from cocite.core.randomness import generator
from cocite.core.tables.files import write_table
from cocite.tools import web
from cocite.tools.finished_run import Run, open_run

SCRIPT = '<script>document.title = "owned"</script>'
IMAGE = '<img src=x onerror="document.title = 1">'
TITLES = {1: "Bees and nectar", 2: "Nectar", 3: "Flowers of spring", 4: SCRIPT, 5: IMAGE, 6: None, 7: "Bees in winter"}
PAPERS = 40
LARGE = 2**62 + 1
"""The last paper; JavaScript would round its id."""
LAST = 'Loops "OR" compilers'
CITED = {7: 50, 1: 10}
MODELS = ("trained/1", "untrained_small/0")
DOI = "10.1234/Bees_(1)"
REQUESTS = {
    "/papers": {"words": "bees"},
    "/paper": {"paper": "6"},
    "/nearest": {"model": MODELS[0], "paper": "1", "k": "3"},
    "/relations": {"paper": "1", "others": "2,3"},
    "/map": {"model": MODELS[0]},
    "/links": {"papers": "1,2"},
    "/citing": {"paper": "1"},
    "/cited": {"paper": "1"},
    "/export": {"papers": "1", "form": "ris"},
}
"""A request of each kind that is answered."""
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
    _write_relations(results)
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


def _write_relations(results: Path) -> None:
    citations = [(1, 2, False, []), (3, 1, False, []), (4, 5, False, [])]
    write_rows(results / "corpus/citations/0.parquet", "citations", "citing cited influential intents", citations)
    for graph, pairs in {"all": [(1, 2, 2), (1, 4, 3), (2, 3, 8)], "few": [(1, 4, 1)]}.items():
        write_rows(results / f"graph/{graph}/cocitations/0.parquet", "cocitations", "paper other count", pairs)
    columns = "query positive negative split positive_rank negative_rank negative_kind"
    triplets = [(1, 2, 5, "train", None, None, "hard"), (2, 1, 4, "train", None, None, "hard")]
    write_rows(results / "triplets/near/triplets.parquet", "triplets", columns, triplets)
    columns, examples = "query number split positives negatives", [(1, 1, "train", [3], [4, 6])]
    write_rows(results / "triplets/lists/sampled_examples.parquet", "sampled_examples", columns, examples)


@dataclass(frozen=True)
class Served:
    """A server of a run on a free port of this machine."""

    url: str
    port: int


@contextmanager
def served(run: Run, host: str = "127.0.0.1") -> Iterator[Served]:
    with web.listen(host, 0) as listening:
        at_work = web.server(run, host)
        thread = Thread(target=at_work.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(web.url_of(listening), listening.getsockname()[1])
        finally:
            at_work.should_exit = True
            thread.join()


def states(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of everything in a folder."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


LEFT, RIGHT = ".column:nth-child(1)", ".column:nth-child(2)"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "small")


@pytest.fixture(scope="module")
def run(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The run, whose encoders give every text the vector of paper 7."""
    with open_run(results, [], tmp_path_factory.mktemp("cache")) as run:
        yield replace(run, embed=lambda name, text: vectors_of_model(name)[7].tolist())


@pytest.fixture(scope="module")
def server(run: Run) -> Iterator[Served]:
    with served(run) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


class Page:
    """The page of the server, and what a test reads on it."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server

    def open(self, width=1280, **parameters):
        self.browser.open(f"{self.server.url}?{urlencode(parameters)}" if parameters else self.server.url, width=width)
        return self.wait() if parameters else self.until("document.querySelector('#run').textContent !== ''")

    def until(self, condition):
        WebDriverWait(self.browser.driver, 20, 0.05).until(lambda _: self.browser.run(condition))
        return self

    def wait(self):
        """Until a search is shown with all that the server says of its papers, or an error is."""
        return self.until("document.documentElement.dataset.shown || document.querySelector('#status.wrong') !== null")

    def searched(self):
        self.browser.run("delete document.documentElement.dataset.shown")
        return self

    def papers(self, column):
        found = self.browser.all(f"{column} .hits > li")
        return [int(item.get_attribute("data-paper")) for item in found]

    def facts(self, paper):
        return self.browser.texts(f"{LEFT} li[data-paper='{paper}'] .badges li")

    @property
    def words(self):
        return self.browser.one("main").text


@pytest.fixture
def page(browser, server):
    browser.complaints  # noqa: B018 Those of other tests.
    return Page(browser, server)
