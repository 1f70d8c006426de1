"""All papers by the vectors of a model: their topics, the points of the map, and the map on the page of a search."""

import base64
import gzip
import os
from dataclasses import replace
from itertools import pairwise
from threading import Event

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial import cKDTree
from selenium.webdriver.support.ui import Select
from tests.tools.builders import write_model, write_vectors
from tests.tools.serving.conftest import LEFT, MODELS, TITLES, Page, ids, served, write_run

from cocite.core.randomness import generator
from cocite.core.tables.files import read_table, write_table
from cocite.report.topics import write_topics
from cocite.tools import paper_map
from cocite.tools.finished_run import open_run
from cocite.tools.paper_map import index_points
from cocite.tools.run_answers import mapped, nearest

MODEL = MODELS[0]
NONE = 65_535


def numbers(text, kind="<u2"):
    return np.frombuffer(gzip.decompress(base64.b64decode(text)), kind)


def laid_out(file, folder):
    folder.mkdir()
    index_points([file], folder)
    return np.load(folder / "ids.npy"), np.load(folder / "points.npy")


def test_papers_beyond_the_sample_are_among_those_of_their_cluster_and_copies_on_their_originals(tmp_path, monkeypatch):
    """Of 600 papers in six clusters, about 120 are laid out; the last 10 are copies of the first."""
    monkeypatch.setattr(paper_map, "SAMPLED", 120)
    draw, clusters, file = generator(1, "clusters"), np.arange(600) % 6, tmp_path / "0.parquet"
    values = draw.normal(size=(6, 16))[clusters] * 8 + draw.normal(size=(600, 16))
    values[590:] = values[:10]
    clusters[590:] = clusters[:10]
    write_vectors(file, {paper * 2: value.astype(np.float32) for paper, value in enumerate(values)})
    papers, points = laid_out(file, tmp_path / "first")
    assert papers.tolist() == [*range(0, 1200, 2)]
    assert np.ptp(points.astype(int), axis=0).max() == 65_534
    # Of copies one can be in the sample, at its own point; neither copy is then anywhere else.
    assert points[590:].tolist() == points[:10].tolist()
    _, nearest = cKDTree(points.astype(float)).query(points.astype(float), k=6)
    assert (clusters[nearest] == clusters[:, None]).mean() > 0.95
    assert laid_out(file, tmp_path / "again")[1].tolist() == points.tolist()


def test_a_map_has_all_papers_with_a_vector_their_years_first_fields_and_topics(run):
    shown = mapped(run, MODEL)
    papers = numbers(shown["ids"], "<i8").tolist()
    assert sorted(papers) == sorted({*ids()} - {39})
    assert (shown["model"], shown["papers"]) == (MODEL, 39)
    assert numbers(shown["year"]).tolist() == [1900 + paper % 100 for paper in papers]
    fields = [shown["fields"][at] for at in numbers(shown["field"])]
    assert shown["fields"] == ["Art", "Biology"]
    assert fields == ["Biology" if paper % 3 == 0 else "Art" for paper in papers]
    hits = {int(hit["paper"]): hit["topic"] for hit in nearest(run, MODEL, paper=[1], k=100)}
    topics = {paper: shown["topics"][at] for paper, at in zip(papers, numbers(shown["topic"]), strict=True)}
    assert hits == {paper: topic for paper, topic in topics.items() if paper != 1}
    assert max(numbers(shown[axis]).max() for axis in "xy") < NONE


def test_topics_of_the_run_are_shown_unless_its_model_is_newer(tmp_path):
    results = write_run(tmp_path / "run")
    folder, vectors = results / "report/topics/trained/seed-1", results / "encoder/trained/seed-1/papers"
    tables = {"topics": folder / "topics.parquet", "scores": folder / "scores.parquet", "output": folder / "papers"}
    write_topics(sorted(vectors.glob("*")), papers=results / "corpus/papers", seed=1, threads=1, **tables)
    table = read_table(tables["topics"], "topics")
    rows = [{**row, "words": ["own", "words"]} for row in table.to_pylist()]
    write_table(tables["topics"], "topics", pa.Table.from_pylist(rows, schema=table.schema))

    def topics():
        with open_run(results, [MODEL], tmp_path / "cache") as run:
            return {hit["topic"] for hit in nearest(run, MODEL, paper=[1])}

    assert topics() == {"own, words"}
    os.utime(tables["topics"], (1, 1))
    assert "own, words" not in topics()


def test_a_model_whose_vectors_are_not_finite_is_served_with_an_empty_map(tmp_path):
    results = write_run(tmp_path / "run")
    papers = write_model(results, "diverged").parent / "papers"
    for bucket in (0, 1):
        broken = {paper: np.full(8, np.nan, np.float32) for paper in ids() if paper % 2 == bucket}
        write_vectors(papers / f"{bucket}.parquet", broken)
    with open_run(results, ["diverged"], tmp_path / "cache") as run:
        assert mapped(run)["papers"] == 0


SETTLED = "document.querySelector('#map canvas').dataset.moving === 'false'"


def click_at(browser, run, paper):
    """Click on the point of a paper: its place by the answer, and the part of the map that the canvas says it shows."""
    shown = mapped(run, MODEL)
    row = numbers(shown["ids"], "<i8").tolist().index(paper)
    x, y = (int(numbers(shown[axis])[row]) / 65_534 for axis in "xy")
    browser.run(
        """(([x, y]) => {
            const canvas = document.querySelector('#map canvas');
            const [middleX, middleY, scale] = canvas.dataset.view.split(' ').map(Number);
            const box = canvas.getBoundingClientRect();
            canvas.setPointerCapture = () => {};
            const at = {clientX: box.left + box.width / 2 + (x - middleX) * scale,
                clientY: box.top + box.height / 2 - (y - middleY) * scale, bubbles: true, pointerId: 1};
            for (const name of ['pointerdown', 'pointerup']) canvas.dispatchEvent(new PointerEvent(name, at));
        })(arguments[0])""",
        [x, y],
    )


@pytest.mark.parametrize("width", [400, 1280])
def test_the_map_marks_what_was_found_and_a_click_shows_the_paper(page, browser, run, width):
    page.open(width=width, paper=1, k=50)
    assert not browser.one("#map canvas").is_displayed()
    browser.one("#map summary").click()
    page.until(SETTLED)
    assert browser.texts("#map-waits") == ["39 of the 39 papers of this search are on the map."]
    assert "map=trained%2F1" in browser.driver.current_url
    assert browser.one("#map canvas").get_attribute("aria-label") == "Map of 39 papers as trained/1 places them"
    click_at(browser, run, 2)
    page.until("document.querySelector('#map-paper a') !== null")
    assert browser.texts("#map-paper a") == [TITLES[2]]
    assert browser.overflow <= 0
    page.searched()
    browser.one("#map-paper button").click()
    page.until("location.search.includes('paper=1%2C2')").wait()
    assert browser.texts("#asked-title") == ["Like 2 papers"]
    assert browser.one("#map canvas").is_displayed()
    assert browser.complaints == []


def test_the_map_is_coloured_by_topic_field_and_year_and_a_link_opens_it(page, browser, run):
    browser.open(f"{page.server.url}?map={MODELS[1]}")
    page.until(SETTLED)
    assert browser.one("#map canvas").get_attribute("aria-label").endswith("as untrained_small/0 places them")
    colour = Select(browser.one("#map .map-colour"))
    assert [option.text for option in colour.options] == ["topic", "field", "year"]
    [topic] = browser.texts("#map .legend button")  # 39 papers have one topic
    assert topic == f"{mapped(run, MODELS[1])['topics'][0]} (39)"
    colour.select_by_visible_text("field")
    assert browser.texts("#map .legend button") == ["Art (27)", "Biology (12)"]
    colour.select_by_visible_text("year")
    years = sorted(1900 + paper % 100 for paper in ids() if paper != 39)
    first = [years[39 * part // 7] for part in range(7)]
    spans = [f"{start}–{end - 1}" for start, end in pairwise(first)] + [f"from {first[-1]}"]
    assert [text.partition(" (")[0] for text in browser.texts("#map .legend button")] == spans


def test_a_hit_names_its_topic_and_a_link_to_a_paper_keeps_the_map_open(page, browser, run):
    page.open(paper=1, map=MODEL)
    topic = mapped(run, MODEL)["topics"][0]
    assert all(f"topic: {topic}" in text for text in browser.texts(f"{LEFT} .facts-of"))
    browser.run("window.kept = true")
    page.searched()
    browser.all(f"{LEFT} .hits a")[0].click()
    page.wait()
    assert browser.run("window.kept")
    assert browser.one("#map canvas").is_displayed()


def test_searches_are_answered_while_a_map_is_laid_out_and_the_page_says_what_it_waits_for(run, browser):
    finished = Event()

    def late(model):
        finished.wait(60)
        return run.map_by(model)

    with served(replace(run, map_by=late)) as server:
        page = Page(browser, server)
        page.open(paper=1)
        try:
            for _ in range(6):  # more than the requests that are answered at once
                browser.run("void fetch('/api/map')")
            browser.one("#map summary").click()
            page.until("document.querySelector('#map-waits').textContent.includes('laid out once')")
            page.searched()
            browser.all(f"{LEFT} button.paper")[0].click()
            page.until("location.search.includes('%2C')").wait()
            assert browser.texts("#asked-title") == ["Like 2 papers"]
        finally:
            finished.set()
        page.until(SETTLED)
