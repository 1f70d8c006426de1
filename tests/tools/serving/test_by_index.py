"""An index of a run, searched on the command line and in a browser."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import yaml
from selenium.webdriver.common.keys import Keys
from tests.configurations import recorded
from tests.rows import write_rows
from tests.tools.builders import invoke
from tests.tools.serving.conftest import LARGE, LEFT, served, vectors_of_model, write_run

from cocite.config.entries import as_json
from cocite.config.index import Lists
from cocite.core.errors import InputError
from cocite.core.tables import TABLES
from cocite.retrieval.building import build_index
from cocite.retrieval.search import Index
from cocite.tools.finished_run import open_run
from cocite.tools.nearest import choose_index, current_indexes
from cocite.tools.run_answers import nearest

NAMES = ("cosine trained", "cosine small", "words", "votes_10", "votes_30", "votes_100", "citations")
NAMES += ("without links", "age", "rank cosine trained", "rank cosine small", "rank words")
CONFIGURATION = {
    "models": {"trained": {"seeds": [1]}},
    "encoders": {"small": {"package": "small"}},
    "graphs": {"citation": {"signal": "citation"}},
    "indexes": {
        "found": {"models": ["trained", "small"], "graph": "citation"},
        "by-citations": {"of": "found", "rank": {"citations": 1}},
    },
    "benchmarks": {"holdout": {"kind": "holdout", "search": True}},
}
WEIGHTS = {"found": (3, 2, 1, 1, 1, 1, 0.5, 0, 0.5, 1, 1, 1), "by-citations": (*[0] * 6, 1, *[0] * 5)}
RECALLS = {"found": 40.0, "by-citations": 9.0}
PAPERS = ("trained", 1), ("untrained_small", 0)


def weights_of(name):
    weights = zip(NAMES, WEIGHTS[name], strict=True)
    rows = [{"name": column, "mean": 0.1, "deviation": 0.5, "weight": weight} for column, weight in weights]
    offsets = [{"from": 0, "to": 0, "more": 0, "balanced": 1, "less": 50}]
    return {"rank": "learned", "known": "balanced", "weights": rows, "offsets": offsets}


def build(results):
    build_index(
        [results / f"encoder/{model}/seed-{seed}/papers" for model, seed in PAPERS],
        settings=Lists(),
        models="trained,small",
        papers=results / "corpus/papers",
        citations=results / "corpus/citations",
        links=results / "corpus/citations",
        memory_mb=500,
        threads=1,
        output=results / "retrieval/found/seed-1/index",
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    results = write_run(tmp_path_factory.mktemp("run") / "small")
    (results / "configuration.yaml").write_text(yaml.safe_dump(as_json(recorded(CONFIGURATION))))
    columns = "task ranking recall queries chosen recall_never recall_seldom"
    for name, recall in RECALLS.items():
        folder = results / f"retrieval/{name}/seed-1/holdout"
        rows = [("cite_search", "index, balanced", recall, 9, True, recall, recall)]
        write_rows(folder / "selection_scores.parquet", "selection_scores", columns, rows)
        (folder / "weights.json").write_text(json.dumps(weights_of(name)))
    build(results)
    return results


@pytest.fixture(scope="module")
def run(results, tmp_path_factory):
    with open_run(results, [], tmp_path_factory.mktemp("cache")) as run:
        by_name = {name: replace(of, embed=of_paper_7) for name, of in run.found_by.items()}
        yield replace(run, found_by=by_name, embed=lambda name, text: vectors_of_model(name)[7].tolist())


def of_paper_7(model, text):
    return vectors_of_model(f"{model.name}/{model.seed}")[7]


@pytest.fixture(scope="module")
def server(run):
    with served(run) as server:
        yield server


def expected(results, name, paper, text, known=None):
    index = Index(results / "retrieval/found/seed-1/index", results / f"retrieval/{name}/seed-1/holdout/weights.json")
    return index.search(text, index.vectors_of(paper), k=10, known=known, without=paper)


def searched(results, *arguments):
    return invoke("search", *arguments, "--results", results, "--format", "json")


def test_the_best_index_by_the_selection_queries_answers_and_says_so_with_the_parts_of_each_score(results):
    answer = searched(results, "1")
    rows, found = json.loads(answer.stdout), expected(results, "found", 1, "Bees and nectar An abstract.")
    assert "by index found, seed 1, known: balanced" in answer.stderr
    told = [(each.paper, each.facts["citations"]) for each in found]
    assert [(row["corpusid"], row["cited"]) for row in rows] == told
    for row in rows:
        parts = [row[part] for part in ("similarity", "words", "links", "citations", "age")]
        assert row["score"] == pytest.approx(sum(parts))
    assert {row["title"] for row in rows} >= {"Nectar"}
    first_line = invoke("search", LARGE, "--results", results).stdout.splitlines()[0]
    assert first_line.startswith(f"Found for paper {LARGE}, ")
    assert "Found for paper 6, without a title (1906), by index" in searched(results, "6").stderr


def test_an_index_is_named_and_well_known_papers_are_preferred_more_or_less(results):
    answer = searched(results, "1", "--index", "by-citations", "--known", "more")
    assert "by index by-citations, seed 1, known: more" in answer.stderr
    assert [row["cited"] for row in json.loads(answer.stdout)][:2] == [1, 1]
    less = json.loads(searched(results, "1", "--index", "by-citations", "--known", "less").stdout)
    assert [row["cited"] for row in less] == [0] * 10


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("1 --index other", "no index 'other'; --index can be by-citations or found"),
        ("1 --model trained --known less", "--known is for indexes, and a model answers here"),
        ("39", "Paper 39 is not in index found, or has no text"),
    ],
)
def test_a_search_that_no_index_answers_is_refused(results, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        searched(results, *arguments.split())


def test_an_index_that_only_screens_answers_no_search(results, tmp_path):
    screens = {"kind": "screening", "labels": "reviews/*.csv"}
    config = {**CONFIGURATION, "benchmarks": {"reviews": screens, "holdout": {"kind": "holdout"}}}
    (tmp_path / "configuration.yaml").write_text(yaml.safe_dump(as_json(recorded(config))))
    assert choose_index(tmp_path, None) is None
    assert current_indexes(tmp_path) == []
    with pytest.raises(InputError, match=r"Index found has no weights: .* a hold-out with `search: true`"):
        choose_index(tmp_path, "found")


def test_a_broken_table_of_another_index_does_not_stop_the_one_that_is_named(results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "run")
    (copied / "retrieval/by-citations/seed-1/holdout/selection_scores.parquet").write_bytes(b"broken")
    assert choose_index(copied, "found").name == "found"


def test_an_index_older_than_the_vectors_of_its_models_names_what_to_run(results, tmp_path):
    copied, configured = shutil.copytree(results, tmp_path / "run"), ("--configfile", tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text(f"pathvars: {{results: {copied}}}\n")
    vectors = copied / "encoder/trained/seed-1/papers/0.parquet"
    vectors.touch()
    with pytest.raises(InputError, match="was not laid out since its models embedded the papers") as raised:
        searched(copied, "1", *configured)
    assert "retrieval/found/seed-1/index" in str(raised.value)
    assert "by model trained, seed 1" in searched(copied, "1", "--model", "trained").stderr
    vectors.unlink()  # as if the model was trained again
    with pytest.raises(InputError, match="Index found was not laid out"):
        searched(copied, "1", "--index", "found", *configured)


@pytest.fixture(scope="module")
def published(results):
    """The run, which is finished, on papers of Semantic Scholar."""
    configuration = as_json(recorded(CONFIGURATION | {"corpus": {"source": "s2"}}))
    provenance = {"configuration": configuration, "release": "2026-01-06"}
    (results / "provenance.json").write_text(json.dumps(provenance))
    names = [(paper, f"id of {paper}") for paper in (1, 2, 3)]
    write_rows(results / "corpus/names.parquet", "names", "corpusid name", names)
    for table in ("judgements", "selection", "searches"):
        write_rows(results / f"evaluation/holdout/{table}.parquet", table, " ".join(TABLES[table].columns), [])
    return results


def test_a_published_index_finds_the_same_with_its_own_code(published, tmp_path):
    results = published
    row = {"benchmark": "holdout", "task": "cite_search", "metric": "recall_cap_20", "mode": "both", "model": "found"}
    row |= {"seed": 1, "evaluation_seed": 1, "value": 51.25, "documents": 40, "missing": 0, "format": "proximity"}
    row |= {"scored": 1, "unscored": 0, "searched": 40, "copies": 0, "unfindable": 0}
    path = results / "evaluation/holdout/scores/search/found-1.parquet"
    write_rows(path, "scores", " ".join(row), [tuple(row.values())])
    with pytest.raises(InputError, match="Name either a model or, with --index, an index"):
        invoke("publish", "--licence", "mit", "--output", tmp_path / "out", "--results", results)
    invoke("publish", "--index", "found", "--licence", "mit", "--output", tmp_path / "out", "--results", results)
    card = (tmp_path / "out/README.md").read_text()
    assert "| holdout | cite_search | recall_cap_20 | 51.2 |" in card
    assert "a corpus id. `names.parquet` of this folder has the id of each paper in its source" in card
    assert (tmp_path / "out/names.parquet").read_bytes() == (results / "corpus/names.parquet").read_bytes()
    code = card.partition("```python")[2].partition("```")[0]
    code = code.replace('{"trained": …, "small": …}', "index.vectors_of(1)").replace("index and", "")
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "out", capture_output=True, text=True, check=True)
    open_index = Index(tmp_path / "out")
    found = open_index.search("title and abstract of a text", open_index.vectors_of(1), k=10)
    assert [line.split()[0] for line in ran.stdout.splitlines()] == [str(each.paper) for each in found]


def test_an_index_within_a_dataset_is_the_same_has_no_texts_and_is_described(published, tmp_path):
    import mlcroissant

    def publish(*arguments, output):
        options = ["--index", "found", "--licence", "odc-by", "--output", output, "--results", published]
        invoke("publish", *arguments, *options)
        return {path.relative_to(output): path.read_bytes() for path in output.rglob("*") if path.is_file()}

    output = tmp_path / "data"
    files = publish("--data", output=output)
    alone = publish(output=tmp_path / "alone")
    assert {"index-found" / path: content for path, content in alone.items()}.items() <= files.items()
    assert not any(word in b"".join(alone.values()).lower() for word in (b"nectar", b"flowers", b"compilers"))
    card = (output / "README.md").read_text()
    assert "`index-found` is a search index of 40 papers, and [its card](index-found/README.md)" in card
    described = mlcroissant.Dataset(str(output / "croissant.json")).metadata
    assert not described.ctx.issues.errors
    [index] = [each for each in described.distribution if each.id == "index-found"]
    assert index.includes == ["index-found/**"]


def test_a_search_by_an_index_has_several_papers_and_filters(run, results):
    index = run.found_by["found"].arrays
    units = {
        name: {paper: of[paper] / np.linalg.norm(of[paper]) for paper in (1, 2, 3)}
        for name in index.models
        if (of := {paper: index.vectors_of(paper)[name] for paper in (1, 2, 3)})
    }
    means = {name: (of[1] + of[2]) / 2 for name, of in units.items()}
    vectors = {name: mean + 0.5 * (mean - units[name][3]) for name, mean in means.items()}
    text = "Bees and nectar An abstract. Nectar An abstract."
    expected = index.search(text, vectors, k=9, without=[1, 2, 3])
    found = nearest(run, "found", paper=[1, 2], unlike=[3], k=9)
    assert [int(hit["paper"]) for hit in found] == [each.paper for each in expected]
    within = nearest(run, "found", paper=[1], k=100, years="1905-1910", field="biology", venue="of bees")
    assert {int(hit["paper"]) for hit in within} == {6, 9}
    assert nearest(run, "found", text="bees", venue="nowhere") == []


def test_bm25_finds_papers_by_words_only_and_the_page_shows_it_beside_the_best_index(run, page, browser):
    found = nearest(run, "bm25", text="bees in winter")
    assert [hit["title"] for hit in found] == ["Bees in winter", "Bees and nectar"]
    assert [hit["paper"] for hit in nearest(run, "bm25", text="bees", years="1907")] == ["7"]
    assert nearest(run, "bm25", text="unheard") == []
    page.open(text="bees", k=50)
    assert browser.texts(".column h3") == ["found", "bm25"]
    assert browser.texts("#overlap") == ["2 of these papers are in both columns."]


def test_an_index_answers_on_the_page_with_what_its_scores_are_made_of(page, browser, results):
    page.open(paper=1, right="trained/1")
    found = expected(results, "found", 1, "Bees and nectar An abstract.")
    assert browser.texts(".column h3") == ["found", "trained/1"]
    assert page.papers(LEFT) == [each.paper for each in found]
    browser.run("document.querySelectorAll('.hits details').forEach(each => { each.open = true; })")
    parts = browser.texts(".column:nth-child(1) .parts")
    assert f"similarity {found[0].parts['similarity']:+.2f}".replace("-", "−") in parts[0]
    page.searched()
    browser.one("#known").send_keys(Keys.ARROW_RIGHT)
    page.wait()
    assert "known=less" in browser.driver.current_url
    less = expected(results, "found", 1, "Bees and nectar An abstract.", "less")
    assert page.papers(LEFT) == [each.paper for each in less]
    page.open(text="bees", left="found", right="")
    assert page.papers(LEFT)[0] == 7
    assert browser.complaints == []
