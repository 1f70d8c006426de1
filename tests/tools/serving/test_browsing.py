"""The page of a search as people use it in a browser."""

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from tests.tools.serving.conftest import DOI, LARGE, LAST, LEFT, MODELS, RIGHT, SCRIPT, TITLES, vectors_of_model

from cocite.tools.run_answers import nearest

TRAINED, UNTRAINED = MODELS


def brute_force(model, paper, k):
    vectors = vectors_of_model(model)
    distances = {other: float(np.sum((vector - vectors[paper]) ** 2)) ** 0.5 for other, vector in vectors.items()}
    return sorted((distance, other) for other, distance in distances.items() if other != paper)[:k]


def test_the_neighbours_of_a_paper_are_those_of_brute_force_for_both_models(page, browser):
    page.open(paper=1, k=20)
    for column, model in ((LEFT, TRAINED), (RIGHT, UNTRAINED)):
        expected = brute_force(model, 1, 20)
        assert page.papers(column) == [paper for _, paper in expected]
        shown = [float(text) for text in browser.texts(f"{column} .distance")]
        assert shown == pytest.approx([distance for distance, _ in expected], rel=1e-3)
    assert browser.texts(".column h3") == list(MODELS)
    assert browser.texts("#asked-title") == [TITLES[1]]
    assert browser.complaints == []


def test_beside_a_paper_stands_what_the_graph_and_the_triplets_say_of_it_from_either_side(page):
    page.open(paper=1, k=50)
    assert page.facts(2) == ["the query cites it", "co-cited 2 × in all", "positive in near"]
    assert page.facts(3) == ["cites the query", "positive in lists"]
    assert page.facts(4) == ["co-cited 3 × in all", "co-cited 1 × in few", "negative in lists"]
    assert page.facts(5) == ["negative in near"]
    assert page.facts(6) == ["negative in lists"]
    assert page.facts(7) == []
    page.open(paper=4, k=50)
    assert page.facts(1) == ["co-cited 3 × in all", "co-cited 1 × in few"]
    assert page.facts(5) == ["the query cites it"]


def test_a_link_shows_the_same_page_again(page, browser):
    page.open()
    browser.one("#query").send_keys("bees")
    page.until("document.querySelectorAll('#suggestions li').length === 2")
    browser.one("#query").send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.wait().searched()
    Select(browser.one("#k")).select_by_visible_text("5")
    page.wait().searched()
    Select(browser.one("#left")).select_by_visible_text(UNTRAINED)
    page.wait()
    link, shown = browser.driver.current_url, page.words
    assert len(page.papers(LEFT)) == 5
    assert TITLES[1] in shown
    browser.open("about:blank").open(link)
    page.wait()
    assert page.words == shown
    assert browser.driver.current_url == link


def test_a_found_paper_is_a_link_to_its_own_search_and_going_back_shows_the_one_before(page, browser):
    page.open(paper=1)
    before = page.papers(LEFT)
    page.searched()
    browser.one(f"{LEFT} .hits a").click()
    page.until(f"location.search.includes('paper={before[0]}')").wait().searched()
    assert page.papers(LEFT) == [paper for _, paper in brute_force(TRAINED, before[0], 10)]
    browser.driver.back()
    page.wait()
    assert page.papers(LEFT) == before


def test_suggested_are_papers_with_the_words_the_most_cited_first_and_the_keyboard_chooses(page, browser):
    page.open()
    field = browser.one("#query")
    field.send_keys("bee")
    page.until("document.querySelectorAll('#suggestions li').length === 2")
    assert browser.texts("#suggestions li") == ["Bees in winter 1907", "Bees and nectar 1901"]
    field.send_keys(Keys.ARROW_DOWN)
    pointed = browser.one(f"#{field.get_attribute('aria-activedescendant')}")
    assert (pointed.text, pointed.get_attribute("aria-selected")) == ("Bees in winter 1907", "true")
    field.send_keys(Keys.ESCAPE)
    assert field.get_attribute("aria-expanded") == "false"


def test_a_text_is_searched_for_and_the_paper_with_its_vector_is_the_nearest(page, browser):
    page.open()
    browser.one("#query").send_keys("what <b>bees</b> do & why", Keys.ENTER)
    page.wait()
    assert (page.papers(LEFT)[0], page.papers(RIGHT)[0]) == (7, 7)
    assert browser.texts("#asked-title") == ["“what <b>bees</b> do & why”"]
    assert browser.all(".badges li") == []


def test_titles_are_text_and_nothing_in_them_runs(page, browser):
    page.open(paper=4, k=50)
    assert browser.texts("#asked-title") == [SCRIPT]
    assert TITLES[5] in browser.texts(f"{LEFT} .hits a")
    assert "(no title)" in browser.texts(f"{LEFT} .hits a")
    assert browser.driver.title == f"{SCRIPT} · CoCite search"
    assert browser.all("main img, main script") == []
    assert browser.complaints == []


def test_a_script_that_is_put_into_the_page_is_not_run(page, browser):
    page.open()
    browser.run("document.body.append(Object.assign(document.createElement('script'), {text: 'window.owned = 1'}))")
    assert browser.run("window.owned ?? 0") == 0
    assert "Content Security Policy" in "".join(browser.complaints)


def test_what_is_wrong_with_a_link_is_said_in_one_sentence(page, browser):
    page.open(paper=1, left="../../etc/passwd")
    assert browser.one("#status").text.startswith("This run has no model '../../etc/passwd' with vectors")
    page.open(paper=1, k=-5)
    assert browser.one("#status").text == "k must be a whole number from 1 to 100, and is '-5'."


def test_one_model_can_be_looked_at_alone_on_a_telephone_and_every_control_has_a_name(page, browser):
    page.open(width=400, paper=1, right="")
    assert page.papers(LEFT)
    assert page.papers(RIGHT) == []
    controls = "[...document.querySelectorAll('input, select, button')]"
    assert browser.run(f"{controls}.filter(each => !each.labels?.length && !each.textContent.trim()).length") == 0
    assert browser.overflow <= 0


def test_details_and_reasons_of_a_paper_are_shown(page, browser, run):
    page.open(paper=2, k=50)
    [topic] = {hit["topic"] for hit in nearest(run, TRAINED, paper=[2])}
    first = browser.one(f"{LEFT} li[data-paper='1']")
    facts = first.find_element("css selector", ".facts-of")
    known = "Ada Bee, Carl Hive, Dora Comb et al. · Journal of Bees · 1901 · cited 10 × · Art"
    assert facts.text == f"{known} · topic: {topic} · {DOI}"
    assert facts.find_element("css selector", "a").get_attribute("href") == f"https://doi.org/{DOI}"
    why = first.find_element("css selector", ".why").text
    assert why.startswith("shares nectar · cited by 1 of these papers · rank ")
    first.find_element("css selector", "summary").click()
    assert "An abstract." in first.text


def test_papers_are_added_as_wanted_or_not_and_taken_out_again(page, browser):
    page.open(paper=1)
    wanted = page.papers(LEFT)[0]
    page.searched()
    browser.one(f"{LEFT} li[data-paper='{wanted}'] button.paper").click()
    page.until(f"location.search.includes('paper=1%2C{wanted}')").wait()
    assert browser.texts("#asked-title") == ["Like 2 papers"]
    unwanted = page.papers(LEFT)[0]
    page.searched()
    browser.one(f"{LEFT} li[data-paper='{unwanted}'] button.unlike").click()
    page.until(f"location.search.includes('unlike={unwanted}')").wait()
    assert not {1, wanted, unwanted} & {*page.papers(LEFT)}
    assert len(browser.all("#seeds li")) == 3
    page.searched()
    browser.all("#seeds button")[2].click()
    page.until("!location.search.includes('unlike')").wait()
    assert page.papers(LEFT)[0] == unwanted


def test_filters_are_set_on_the_page_and_kept_in_its_address(page, browser):
    page.open(paper=1, k=50)
    for name, value in (("from", "1905"), ("to", "1912"), ("venue", "bees")):
        page.searched()
        browser.one(f"#{name}").send_keys(value, Keys.TAB)
        page.wait()
    page.searched()
    Select(browser.one("#field")).select_by_visible_text("Biology")
    page.wait()
    assert sorted(page.papers(LEFT)) == [6, 9, 12]
    link = browser.driver.current_url
    browser.open("about:blank").open(link)
    page.wait()
    assert sorted(page.papers(LEFT)) == [6, 9, 12]
    assert [browser.one(f"#{name}").get_attribute("value") for name in ("from", "to")] == ["1905", "1912"]


@pytest.mark.parametrize(
    ("typed", "paper", "title"),
    [*((typed, 1, TITLES[1]) for typed in (f"https://doi.org/{DOI}", "bees AND nectar.")), (str(LARGE), LARGE, LAST)],
)
def test_a_doi_a_whole_title_and_an_id_of_up_to_63_bits_lead_to_the_paper(page, browser, typed, paper, title):
    page.open()
    browser.one("#query").send_keys(typed, Keys.ENTER)
    page.until(f"location.search.includes('paper={paper}&')").wait()
    assert browser.texts("#asked-title") == [title]
    assert page.papers(LEFT) == [other for _, other in brute_force(TRAINED, paper, 10)]


def test_an_empty_page_has_examples_and_a_search_its_overlap_files_and_graph(page, browser):
    page.open()
    assert browser.texts("#examples a")[:2] == ["Bees in winter", "Bees and nectar"]
    browser.all("#examples a")[1].click()
    page.until("location.search.includes('paper=1&')").wait()
    left, right = page.papers(LEFT), page.papers(RIGHT)
    assert browser.one("#overlap").text.startswith(f"{len({*left} & {*right})} of these papers")
    files = {link.text: link.get_attribute("href") for link in browser.all("#exports a")}
    assert files.keys() == {"BibTeX", "RIS", "CSV"}
    assert len(browser.all("#graph a")) == len({*left, *right, 1})
    page.open(paper=1, k=50, right="")
    assert browser.one("#graph figcaption").text.startswith("3 citations among these papers")
    assert len(browser.all("#graph line")) == 3
    assert browser.complaints == []
