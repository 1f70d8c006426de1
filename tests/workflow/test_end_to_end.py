"""The whole pipeline on a small generated release, from its download to its report."""

import html
import json
import re

import duckdb
import pytest
from tests.browser import started
from tests.tools.builders import invoke

from cocite.core.atomic import read_json

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def query(finished):
    """A function that answers a question to the database."""
    with duckdb.connect(finished.folder / "results/cocite.duckdb", read_only=True) as database:
        yield lambda sql: database.sql(sql).fetchall()


def test_counts_agree_with_the_release(finished, query):
    stated = read_json(finished.folder / "results/demo/release/release.json")
    papers, abstracts, citations = stated["papers"], stated["abstracts"], stated["citations"]
    assert query("SELECT count(*), count(abstract) FROM papers") == [(papers, abstracts)]
    assert query("SELECT count(*) FROM citations") == [(citations,)]


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("cocitations", "paper, other"),
        ("edges", "source, target"),
        ("graph_embeddings", "corpusid"),
        ("neighbours", "query, neighbour"),
        ("triplets", "query, positive, negative"),
    ],
)
def test_heldout_papers_are_in_no_graph_index_or_triplet(query, table, columns):
    held_out = "SELECT corpusid FROM queries WHERE split = 'holdout'"
    assert query(f"SELECT count(*) FROM ({held_out})") == [(40,)]
    for column in columns.split(", "):
        assert query(f"SELECT count(*) FROM {table} WHERE {column} IN ({held_out})") == [(0,)]


def test_sets_of_triplets_have_one_size_and_no_query_trains_and_validates(query):
    sizes = query("SELECT triplets, count(*) FROM training_examples GROUP BY ALL ORDER BY ALL")
    assert [name for name, _ in sizes] == ["cocite", "specter"]
    assert sizes[0][1] == sizes[1][1] > 100
    both = "SELECT count(*) FROM training_examples WHERE query IN (SELECT query FROM validation_examples)"
    assert query(both) == [(0,)]


def test_every_model_and_baseline_is_scored_on_every_format_by_documents_that_are_all_there(query):
    formats = query("SELECT model, count(DISTINCT format) FROM scores GROUP BY ALL ORDER BY ALL")
    on_all = [("cocite", 5), ("random", 5), ("specter", 5), ("untrained_small", 5)]
    assert formats == sorted([("bm25", 3), ("popularity", 1), *on_all])  # it knows the papers of the corpus alone
    assert query("SELECT sum(missing), min(value) >= -100, max(value) <= 100 FROM scores") == [(0, True, True)]


def test_bm25_and_the_models_beat_random_vectors_and_the_untrained_encoder_on_the_holdout(query):
    of_holdout = "FROM scores WHERE benchmark = 'holdout' AND metric = 'map'"
    means = dict(query(f"SELECT model, avg(value) {of_holdout} GROUP BY 1"))
    assert all(means[model] > means["random"] + 5 for model in ("bm25", "cocite", "specter"))
    assert all(means[model] > means["untrained_small"] + 1 for model in ("bm25", "cocite", "specter"))


def test_a_model_opens_without_cocite(finished):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(finished.folder / "results/encoder/cocite/seed-1/model"))
    assert model.encode(["a title"]).shape == (1, 32)


def test_the_provenance_has_the_release_and_the_whole_configuration(finished):
    provenance = read_json(finished.folder / "results/provenance.json")
    assert provenance["release"] == "2026-01-06"
    assert provenance["configuration"]["models"]["cocite"]["batch_size"] == 32


def test_the_command_prints_the_verdict_of_the_page_and_its_numbers_are_those_of_the_database(finished, query):
    results = finished.folder / "results"
    page = html.unescape((results / "report/index.html").read_text())
    printed = invoke("scores", "--results", results, "--format", "markdown").stdout
    verdict = printed.partition("holdout (mean over 4 tasks)\n")[2].partition("\n\n")[0].splitlines()
    best = re.match(r"  The best model is (\w+) with ([\d.]+)", verdict[0])
    assert len(verdict) > 2
    assert all(line.strip() in page for line in verdict)
    rows = json.loads(invoke("scores", "--results", results, "--format", "json").stdout)
    value = "SELECT avg(value) FROM scores WHERE benchmark = 'holdout' AND metric = 'map' AND model = '{}'"
    for row in (row for row in rows if row["benchmark"] == "holdout"):
        assert row["score"] == pytest.approx(query(value.format(row["model"]))[0][0], abs=0.006)
    models = [row for row in rows if (row["benchmark"], row["kind"]) == ("holdout", "model")]
    assert models[0]["model"] == best[1]
    assert models[0]["score"] == max(row["score"] for row in models)


@pytest.mark.parametrize(("model", "sampler"), [("cocite", "neighbours"), ("specter", "citations")])
def test_every_model_has_a_card_of_where_it_comes_from_and_a_copy_with_its_scores(finished, query, model, sampler):
    results = finished.folder / "results"
    card = (results / f"encoder/{model}/seed-1/model/README.md").read_text()
    assert f"| sampler | {sampler}: " in card
    assert "a generated release" in card
    assert str(finished.folder) not in card
    copy = (results / f"report/cards/{model}/seed-1/README.md").read_text()
    assert copy.startswith(card.partition("## Scores on benchmarks")[0].rstrip())
    [(value,)] = query(f"SELECT value FROM scores WHERE model = '{model}' AND task = 'cite' AND metric = 'map'")
    assert f"| holdout | papers it cites, MAP | {value:.1f} |" in copy


def test_no_resumable_state_is_left(finished):
    left = {path.name: path for path in (finished.folder / "results/.state").rglob("*") if path.is_file()}
    # What jobs and runs take turns by, and two records of the run; nothing that a job resumes from.
    assert set(left) == {"configuration.json", "run.json", "run.lock", "steps.lock"}


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), pytest.param(400, True, marks=pytest.mark.long)], ids=["wide", "narrow and dark"]
)
def test_the_report_is_drawn_whole_fits_its_window_and_complains_of_nothing(finished, browser, width, dark):
    browser.complaints  # noqa: B018 Those of other tests.
    file = finished.folder / "results/report/index.html"
    assert file.stat().st_size < 5_000_000
    page = browser.open(file, width=width, dark=dark)
    assert len(page.all("figure.drawn")) == 7
    panels = page.run("[...document.querySelectorAll('.panels > svg')].map(panel => panel.getBBox().width)")
    assert len(panels) > 12
    assert min(panels) > 100
    assert page.run("performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []
    assert page.overflow <= 0  # tables scroll
    heads = "[...document.querySelectorAll('th')].filter(head => head.scrollWidth > head.clientWidth + 1).length"
    assert page.run(heads) == 0
    names = ["cocite", "specter", "untrained_small", "bm25", "popularity", "random"]
    assert page.texts("#matrix tbody th") == page.texts("#matrix thead th")[1:] == names
    assert page.texts(".notice strong") == ["Generated data."]
    assert "published" not in page.one("#scores table").text
    assert not [words for words in ("CoCite 25-5000", "ODC-BY") if words in page.one("body").text]
