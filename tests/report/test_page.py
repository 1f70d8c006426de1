"""The page opens from disk: everything it shows is in it, said in words, and where it belongs."""

import re
from html.parser import HTMLParser

import pytest
from tests.report import made_page
from tests.report.made_page import TITLES, page_of
from tests.report.made_run import configuration_of

from cocite.report.figures import draw_pair_counts


@pytest.fixture(scope="session")
def page(small):
    return small.read_text()


class Page(HTMLParser):
    """The elements of a page that a test asks about, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def test_the_page_fetches_nothing_and_may_not(page):
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)|@import', page) == []
    assert "default-src 'none'" in page


def test_every_entry_of_the_contents_leads_to_a_section_and_every_section_is_listed(page):
    listed = re.findall(r'<li><a href="#([\w-]+)">', page)
    sections = [attributes["id"] for attributes in Page(page).of("section")]
    assert listed == sections
    assert sections[0] == "verdict"
    assert sections[-1] == "provenance"


def test_every_table_is_named_by_its_caption(page):
    tables = Page(page).of("table")
    captions = dict(re.findall(r'<figcaption id="([\w-]+)">(.*?)</figcaption>', page, re.DOTALL))
    assert len(tables) > 10
    for table in tables:
        assert len(re.sub("<.*?>", "", captions[table["aria-labelledby"]])) > 25


def test_every_panel_of_a_figure_says_what_it_shows(page):
    panels = [attributes for attributes in Page(page).of("svg") if "aria-hidden" not in attributes]
    assert len(panels) > 20
    assert all(panel["role"] == "img" for panel in panels)
    assert "Validation: share of triplets in order, by steps" in [panel["aria-label"] for panel in panels]


def test_ids_are_unique_and_those_that_are_used_are_there(page):
    identities = [attributes["id"] for _, attributes in Page(page).found if "id" in attributes]
    assert len(identities) == len(set(identities))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page))
    assert {name for pair in used for name in pair if name} <= set(identities)


def test_the_configuration_is_folded_away_behind_all_else(page):
    folded = re.search(r"<details id=\"configuration\">(.*?)</details>", page, re.DOTALL)
    assert '"batch_size": 32' in folded[1].replace("&#34;", '"')
    assert "open" not in folded[0].split(">")[0]
    assert page.index('<details id="configuration">') > max(page.rindex("<table"), page.rindex("<h2"))


def test_the_summary_says_what_was_trained_how_long_it_took_and_on_what_machine(page):
    facts = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", page))
    assert facts["Models"] == "5, each trained with seeds 1, 2"
    assert facts["Time (h:mm:ss)"].startswith("0:12:34")
    assert facts["Processor time"].startswith("0:09:30")
    assert facts["Largest memory"] == "900 MB, a job of the rule train_encoder"
    assert facts["Machine"] == "Some Processor, 4 cores, 16 GB of memory, no GPU"


def test_a_run_without_models_and_benchmarks_has_a_page(tmp_path):
    text = page_of(configuration_of(models=0, seeds=1, kinds=()), tmp_path).read_text()
    assert "none were trained" in text
    assert all(title not in text for title in ("Which models differ?", "Which space finds", "Short queries or"))


def test_sections_without_rows_are_left_out(page, tmp_path, monkeypatch):
    titles = ("How often papers are paired.", "How related are the neighbours?")
    assert all(title in page for title in titles)
    tables = made_page._run_tables()
    without = tables | {"band_quality": tables["band_quality"].clear()}
    monkeypatch.setattr(made_page, "_run_tables", lambda: without)
    monkeypatch.setattr(made_page, "draw_pair_counts", lambda counts, _, path: draw_pair_counts(counts, {}, path))
    text = page_of(configuration_of(models=1, seeds=1, kinds=("holdout",)), tmp_path).read_text()
    assert all(title not in text for title in (*titles, "Which loss?"))


def test_oracles_are_marked_where_scores_stand_and_text_is_not_markup(tmp_path):
    configuration = configuration_of(models=2, seeds=1, kinds=("holdout", "scirepeval"))
    configuration["triplets"]["oracle"] = {"sampler": "oracle", "benchmark": "holdout", "group": "oracle"}
    configuration["models"]["model-01"] |= {"triplets": "oracle"}
    text = page_of(configuration, tmp_path, readmes={"papers": "<b>licence</b> & more"}).read_text()
    assert "model-01 from those of holdout." in text
    assert "Oracles, which were trained on the answers of a\nbenchmark (model-01), are not ranked." in text
    assert "&lt;b&gt;licence" in text
    assert "<b>licence" not in text
    assert f"{TITLES[0].replace('&', '&amp;')}" in text


def test_a_run_on_generated_data_says_so_before_all_else(tmp_path):
    configuration = configuration_of(models=2, seeds=1, kinds=("holdout", "scirepeval"))
    configuration["corpus"] = {"source": "demo"}
    configuration["benchmarks"]["scirepeval"]["folder"] = "demo"
    text = page_of(configuration, tmp_path).read_text()
    banner = "A program made up the corpus with its citations and the benchmarks holdout and scirepeval"
    assert banner in text
    assert text.index(banner) < text.index("<h2")
    assert "ODC-BY" not in text


def test_a_run_on_real_data_has_no_such_banner_and_one_without_oracles_names_none(page):
    assert "made up" not in page
    assert page.count("ODC-BY") == 1
    assert "Oracles" not in page


def test_sums_stay_below_the_rules_that_they_sum_up_and_counts_have_their_thousands_apart(page):
    [foot] = re.findall(r"<tfoot>(.*?)</tfoot>", page, re.DOTALL)
    assert "all together" in foot
    assert "1:01:40" in foot  # 600 s and 36,061 s
    assert "<td>1,234</td>" in page
