"""The page opens from disk: everything it shows is in it, said in words, where it belongs; the best stands out."""

import re
from html.parser import HTMLParser

import polars as pl
import pytest
from tests.report import made_page
from tests.report.made_page import TITLES, page_of
from tests.report.made_run import configuration_of

from cocite.report.figures import draw_pair_counts
from cocite.report.page import number_in, ranking_of, shown


@pytest.fixture(scope="session")
def page(small):
    return small.read_text()


def elements(page):
    """The elements of a page with their attributes, by their tags, in order."""
    found = {}
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.setdefault(tag, []).append(dict(attributes))
    parser.feed(page)
    return found


def test_the_page_fetches_nothing_and_may_not(page):
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)|@import', page) == []
    assert "default-src 'none'" in page


def test_every_entry_of_the_contents_leads_to_a_section_and_every_section_is_listed(page):
    sections = [attributes["id"] for attributes in elements(page)["section"]]
    assert re.findall(r'<li><a href="#([\w-]+)">', page) == sections
    assert (sections[0], sections[-1]) == ("verdict", "provenance")


def test_every_table_is_named_by_its_caption_and_every_panel_of_a_figure_says_what_it_shows(page):
    captions = dict(re.findall(r'<figcaption id="([\w-]+)">(.*?)</figcaption>', page, re.DOTALL))
    tables = elements(page)["table"]
    assert len(tables) > 10
    assert all(len(re.sub("<.*?>", "", captions[table["aria-labelledby"]])) > 25 for table in tables)
    panels = [attributes for attributes in elements(page)["svg"] if "aria-hidden" not in attributes]
    assert len(panels) > 20
    assert all(panel["role"] == "img" for panel in panels)
    assert "Validation: share of triplets in order, by steps" in [panel["aria-label"] for panel in panels]


def test_ids_are_unique_and_those_that_are_used_are_there(page):
    identities = [one["id"] for of_tag in elements(page).values() for one in of_tag if "id" in one]
    assert len(identities) == len(set(identities))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page))
    assert {name for pair in used for name in pair if name} <= set(identities)


def test_the_configuration_is_folded_away_behind_all_else(page):
    folded = re.search(r"<details id=\"configuration\">(.*?)</details>", page, re.DOTALL)
    assert '"batch_size": 32' in folded[1].replace("&#34;", '"')
    assert "open" not in folded[0].split(">")[0]
    assert page.index('<details id="configuration">') > max(page.rindex("<table"), page.rindex("<h2"))


def test_the_summary_stands_on_the_page(page):
    facts = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", page))
    assert facts["Models"] == "5, each trained with seeds 1, 2"
    assert facts["Time (h:mm:ss)"].startswith("0:12:34")
    assert facts["Machine"] == "Some Processor, 4 cores, 16 GB of memory, no GPU"


def test_sections_without_rows_are_left_out(page, tmp_path, monkeypatch):
    titles = ("How often papers are paired.", "How related are the neighbours?")
    assert all(title in page for title in titles)
    tables = made_page._run_tables()
    without = tables | {"band_quality": tables["band_quality"].clear()}
    monkeypatch.setattr(made_page, "_run_tables", lambda: without)
    monkeypatch.setattr(made_page, "draw_pair_counts", lambda counts, _, path: draw_pair_counts(counts, {}, path))
    text = page_of(configuration_of(models=0, seeds=1, kinds=()), tmp_path).read_text()
    assert "none were trained" in text
    absent = (*titles, "Which loss?", "Which models differ?", "Which space finds", "Short queries or")
    assert all(title not in text for title in absent)


def test_oracles_are_marked_where_scores_stand_and_text_is_not_markup(page, tmp_path):
    configuration = configuration_of(models=2, seeds=1, kinds=("holdout", "scirepeval"))
    configuration["triplets"]["oracle"] = {"sampler": "oracle", "benchmark": "holdout", "group": "oracle"}
    configuration["models"]["model-01"] |= {"triplets": "oracle"}
    text = page_of(configuration, tmp_path, readmes={"papers": "<b>licence</b> & more"}).read_text()
    assert "model-01 from those of holdout." in text
    assert "Oracles, which were trained on the answers of a\nbenchmark (model-01), are not ranked." in text
    assert "Oracles" not in page
    assert "&lt;b&gt;licence" in text
    assert "<b>licence" not in text
    assert f"{TITLES[0].replace('&', '&amp;')}" in text


def test_a_run_on_generated_data_says_so_before_all_else_and_one_on_real_data_does_not(page, tmp_path):
    configuration = configuration_of(models=2, seeds=1, kinds=("holdout", "scirepeval"))
    configuration["corpus"] = {"source": "demo"}
    configuration["benchmarks"]["scirepeval"]["folder"] = "demo"
    text = page_of(configuration, tmp_path).read_text()
    banner = "A program made up the corpus with its citations and the benchmarks holdout and scirepeval"
    assert -1 < text.find(banner) < text.index("<h2")
    assert "made up" not in page
    assert (text.count("ODC-BY"), page.count("ODC-BY")) == (0, 1)


def test_sums_stay_below_the_rules_that_they_sum_up_and_counts_have_their_thousands_apart(page):
    [foot] = re.findall(r"<tfoot>(.*?)</tfoot>", page, re.DOTALL)
    assert "all together" in foot
    assert "1:01:40" in foot  # 600 s and 36,061 s
    assert "<td>1,234</td>" in page


def best(columns, rows, name, aside=frozenset()):
    """The first cell of a row and the column, of each cell that stands out in the table of that name."""
    page = shown(pl.DataFrame(rows, schema=columns, orient="row"), ranking_of(name), aside=aside)
    return {
        (row[0].text, column)
        for row in page.rows
        for column, cell in zip(page.columns, row, strict=True)
        if cell.is_best
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("71.0 ± 1.4 (9)", 71.0), ("-0.6", -0.6), ("−7.5 ± 0.1", -7.5), ("+2.9 (+0.2 to +5.3)", 2.9)),
        *(("12,000", 12000.0), ("–", None), ("a1", None)),
    ],
)
def test_a_cell_is_the_number_that_it_begins_with(text, number):
    assert number_in(text) == number


MODELS = ("a", "b", "bm25")
OF_TASKS = ["model", "source", "classification", "search"]


@pytest.mark.parametrize(
    ("name", "columns", "rows", "expected"),
    [
        (
            "models",
            ["model", "x", "y"],
            zip(MODELS, ["9.5 ± 2.0", "10.1", "–"], ["-3.0", "-7.0", "1.0"], strict=True),
            {("b", "x"), ("bm25", "y")},
        ),
        (
            "tasks_holdout",
            ["model", "x", "y"],
            zip(MODELS, ["9.0", "9.0", "1.0"], ["5.0", "5.0", "5.0"], strict=True),
            {("a", "x"), ("b", "x")},
        ),
        ("models", ["model", "x"], zip(MODELS, ["60.0", "70.0 (1 of 2 tasks)", "50.0"], strict=True), {("a", "x")}),
        ("costs", ["model", "x"], zip(MODELS, "123", strict=True), set()),
        ("trained", ["model", "x"], zip(MODELS, "123", strict=True), set()),
        (
            "scirepeval_formats",
            ["model", "source", "average", "values"],
            [
                *(("a", "sre", "60.0", "25"), ("b", "sre", "50.0", "25"), ("c", "sre", "70.0", "24 of 25")),
                ("SPECTER", "published", "80.0", "25"),
            ],
            {("a", "average")},
        ),
        (
            "scirepeval_tasks",
            OF_TASKS,
            [
                *(("a", "sre (compat)", "40.0", "61.0"), ("b", "sre (compat)", "30.0", "62.0")),
                *(("c", "sre (correct)", "50.0", "61.0"), ("d", "sre (correct)", "55.0", "60.0")),
                *(("bm25", "sre", "–", "63.0"), ("e", "other", "10.0", "10.0"), ("f", "other", "20.0", "9.0")),
            ],
            {*((name, "classification") for name in "adf"), ("bm25", "search"), ("e", "search")},
        ),
        (
            "graph_embeddings",
            ["embedding", "graph", "held-out edges", "negatives", "loss", "mean rank", "MRR"],
            [
                ("a", "g", "10", "raw", "1.0", "200.5", "0.1"),
                ("b", "g", "10", "raw", "2.0", "150.5", "0.3"),
                ("c", "h", "10", "raw", "0.1", "10.5", "0.9"),
            ],
            {("b", "mean rank"), ("b", "MRR")},
        ),
        (
            "difficulties",
            ["model", "k⁺", "validation accuracy", "holdout: papers it cites, MAP"],
            [("a", "25", "80.0", "1"), ("b", "500", "70.0", "2")],
            {("a", "validation accuracy"), ("b", "holdout: papers it cites, MAP")},
        ),
    ],
    ids=[
        *("baselines compete", "shown alike", "a mean over fewer tasks", "no scores", "nothing is better"),
        *("published rows and averages over fewer values do not compete", "of one benchmark and mode"),
        *("on the same edges, and a lower rank is better", "what models differ in does not compete"),
    ],
)
def test_the_best_of_what_can_be_compared_stands_out(name, columns, rows, expected):
    assert best(columns, [*rows], name) == expected


def test_an_oracle_does_not_compete_in_any_of_its_spaces():
    rows = [("a", "9.5"), ("b", "10.1"), ("oracle", "99.0"), ("oracle_in_result", "99.5")]
    assert best(["model", "x"], rows, "models", aside={"oracle"}) == {("b", "x")}


def test_a_column_of_numbers_with_gaps_is_one_of_numbers_and_a_negative_one_has_a_minus_sign():
    page = shown(pl.DataFrame({"model": ["a-b", "b"], "x": ["-0.6 ± 1.0", "–"], "y": ["2 of 3", "none"]}))
    assert page.numbers == (False, True, False)
    assert [cell.text for cell in page.rows[0]] == ["a-b", "−0.6 ± 1.0", "2 of 3"]
