"""The page as people use it in a browser: sorting, choosing, folding, in the dark, on a telephone; and a large page."""

import csv
import functools
import itertools
import time

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from tests.report.conftest import luminance
from tests.report.made_page import SMALL, page_of
from tests.report.made_run import comparisons_of, configuration_of, scores_of

from cocite.report.canvas import read_svg

MODELS = "figure.table:has(#models-caption) table"
COSTS = "figure.table:has(#costs-caption) table"


@pytest.fixture
def page(browser, small):
    browser.complaints  # noqa: B018 Those of other tests.
    return browser.open(small)


def head(page, table, column):
    return page.all(f"{table} thead button")[column]


def column(page, table, number):
    return page.texts(f"{table} tbody tr > :nth-child({number + 1})")


def pause(page):
    page.run("new Promise(done => setTimeout(done, 200))")


def number(text):
    return float(text.split(" ")[0].replace("−", "-").replace(",", ""))


def test_a_head_sorts_by_it_the_largest_first_by_mouse_and_keyboard_and_says_in_which_direction(page):
    def directions():
        return [each.get_attribute("aria-sort") for each in page.all(f"{MODELS} thead th")[:3]]

    names = dict(zip(column(page, MODELS, 1), column(page, MODELS, 0), strict=True))
    head(page, MODELS, 1).click()
    falling = [number(text) for text in column(page, MODELS, 1)]
    assert falling == sorted(falling, reverse=True)
    assert [names[text] for text in column(page, MODELS, 1)] == column(page, MODELS, 0)
    assert directions() == [None, "descending", None]
    head(page, MODELS, 1).send_keys(Keys.SPACE)
    assert [number(text) for text in column(page, MODELS, 1)] == falling[::-1]
    assert directions() == [None, "ascending", None]
    head(page, MODELS, 0).send_keys(Keys.ENTER)
    assert directions() == ["ascending", None, None]
    assert column(page, MODELS, 0) == sorted(column(page, MODELS, 0))


def test_rows_without_a_value_and_sums_stay_last_whichever_way_a_column_is_sorted_and_times_by_their_length(page):
    heads = page.texts(f"{MODELS} thead button")
    place = next(at for at, text in enumerate(heads) if "classification" in text)
    for _ in range(2):
        head(page, MODELS, place).click()
        assert column(page, MODELS, place).index("–") == len(column(page, MODELS, 0)) - 2
        assert set(column(page, MODELS, 0)[-2:]) == {"bm25", "popularity"}
    page.one("#costs > details > summary").click()
    times = page.texts(f"{COSTS} thead button").index("time")
    for expected in (["10:01:01", "0:10:00"], ["0:10:00", "10:01:01"]):
        head(page, COSTS, times).click()
        assert column(page, COSTS, times) == expected
        assert page.texts(f"{COSTS} tfoot th") == ["all together"]


def test_the_first_screen_has_the_verdict_and_scores_with_the_best_first(page):
    bottom = "arguments[0].getBoundingClientRect().bottom"
    first = page.one(".board tbody tr td:nth-of-type(2)")
    assert page.run(bottom, page.one(".verdict li")) < page.run(bottom, first) < 800
    scores = [number(text) for text in column(page, "#board-1 table", 2)]
    assert scores == sorted(scores, reverse=True)
    best = page.one("#board-1 .best th").text.split()[0]
    assert page.one(".verdict li").text.startswith(f"holdout The best model is {best} with ")


def test_the_contents_stay_in_sight_and_lead_to_what_is_folded(page):
    page.run("window.scrollTo(0, 5000)")
    assert page.run("document.querySelector('nav').getBoundingClientRect().top") == 0
    assert not page.one(COSTS).is_displayed()
    page.all("nav summary")[3].click()
    page.one("nav a[href='#costs']").click()
    pause(page)
    assert page.one(COSTS).is_displayed()
    assert not page.one("nav a[href='#costs']").is_displayed()
    top, below = page.run("['#costs', 'nav'].map(each => document.querySelector(each).getBoundingClientRect().bottom)")
    assert top > below


def saved(page, figure):
    """What the button of a figure saves: the name of the file and its text."""
    script = """new Promise(done => {
        const made = URL.createObjectURL;
        URL.createObjectURL = (blob) => { URL.blob = blob; return made(blob); };
        HTMLAnchorElement.prototype.click = function () {
            URL.blob.text().then((text) => done([this.download, text]));
        };
        document.querySelector(arguments[0] + ' .save').click();
    })"""
    return page.run(script, figure)


def test_a_table_is_saved_as_csv_with_its_rows_and_numbers(page):
    name, text = saved(page, "figure.table:has(#models-caption)")
    rows = list(csv.DictReader(text.splitlines()))
    assert name == "all-models-on-all-benchmarks.csv"
    assert [row["model"] for row in rows] == [name.replace("_ ", "_") for name in column(page, MODELS, 0)]
    assert [row["holdout: papers it cites, MAP"] for row in rows] == column(page, MODELS, 1)
    assert {row["scirepeval: classification (compat)"] == "" for row in rows if row["model"] == "bm25"} == {True}


@pytest.mark.parametrize(
    ("name", "expected"), [("=1+1", "'=1+1"), ("+cmd|x", "'+cmd|x"), ("+1.5* +0.5 to +2", "+1.5* +0.5 to +2")]
)
def test_what_a_spreadsheet_would_compute_is_saved_as_a_text(page, name, expected):
    cell = "document.querySelector('figure.table:has(#models-caption) tbody th').textContent"
    before = page.run(cell)
    page.run(f"{cell} = arguments[0]", name)
    _, text = saved(page, "figure.table:has(#models-caption)")
    page.run(f"{cell} = arguments[0]", before)
    assert text.splitlines()[1].startswith(f"{expected},")


def test_a_figure_is_saved_as_one_drawing_with_its_panels_and_legend(page):
    name, text = saved(page, "#validation_curves-figure")
    root = read_svg(text)
    assert name.endswith(".svg")
    own = "{http://www.w3.org/2000/svg}"
    drawings = page.all("#validation_curves-figure .panels > svg, #validation_curves-figure .legend svg")
    assert len(root.findall(f"{own}svg")) == len(drawings)
    assert [each.text for each in root.findall(f"{own}text")] == page.texts("#validation_curves-figure .legend li")


def ask(page, measure):
    """Choose what the matrix compares."""
    Select(page.one("#matrix-measure")).select_by_visible_text(measure)


def matrix(page):
    """The matrix as it is shown: (row, column) → the lines of the cell."""
    names = page.texts("#matrix tbody th")
    assert page.texts("#matrix thead th")[1:] == names
    cells = [cell.text.split("\n") for cell in page.all("#matrix tbody td")]
    return dict(zip(itertools.product(names, names), cells, strict=True))


@functools.cache
def compared(measure):
    """What the matrix must show of a metric of the hold-out, from the comparisons it is made of."""
    task, metric = measure
    rows = comparisons_of(scores_of(configuration_of(**SMALL))).filter(benchmark="holdout", task=task, metric=metric)
    return {(row["model"], row["other"]): row for row in rows.iter_rows(named=True)}


def signed(value):
    return f"{value:+.1f}".replace("-", "−") if abs(round(value, 1)) > 0 else "0.0"


@pytest.mark.parametrize(
    ("label", "measure"),
    [("papers it cites, MAP", ("cite", "map")), ("papers cited with it, nDCG", ("cocite", "ndcg"))],
)
def test_the_matrix_has_the_difference_of_any_two_models_with_its_interval_and_those_without_zero_stand_out(
    page, label, measure
):
    ask(page, f"holdout: {label}")
    shown, expected = matrix(page), compared(measure)
    assert len(shown) == len(expected) * 2 + 9  # five models, the encoder and three baselines: 36 pairs
    cells = page.all("#matrix tbody td")
    kinds = dict(zip(shown, (cell.get_attribute("class") for cell in cells), strict=True))
    for (model, other), row in expected.items():
        star = "*" if row["p_adjusted"] < 0.05 else ""
        counted = any(name.startswith("model-") for name in (model, other))  # nothing else has seeds
        ends = [f"{signed(row['low'])} to {signed(row['high'])}", f"{signed(-row['high'])} to {signed(-row['low'])}"]
        wide = [f"seeds: {signed(row['wide_low'])} to {signed(row['wide_high'])}"]
        turned = [f"seeds: {signed(-row['wide_high'])} to {signed(-row['wide_low'])}"]
        assert shown[model, other] == [signed(row["difference"]) + star, ends[0], *wide[: counted * 1]]
        assert shown[other, model] == [signed(-row["difference"]) + star, ends[1], *turned[: counted * 1]]
        assert kinds[model, other] == ("up" if row["low"] > 0 else "down" if row["high"] < 0 else "")
    assert {row["p_adjusted"] < 0.05 for row in expected.values()} == {True, False}
    assert "show a difference of 2.5 with a star" in page.one("#matrix-items").text


def test_a_star_of_what_was_trained_once_is_marked_and_has_no_interval_of_seeds(browser, tmp_path_factory):
    configuration = configuration_of(models=3, seeds=1, kinds=("holdout",))
    page = browser.open(page_of(configuration, tmp_path_factory.mktemp("once")))
    shown = matrix(page)
    of_models = [cell for pair, cell in shown.items() if any(name.startswith("model-") for name in pair)]
    assert any(cell[0].endswith("(*)") for cell in of_models)
    assert not any(cell[0].endswith("*") for cell in of_models)
    assert not any("seeds" in line for cell in shown.values() for line in cell)


def test_the_matrix_shows_what_is_chosen_by_mouse_or_keyboard_with_the_models_that_were_compared(page):
    before = matrix(page)
    assert "bm25" in {row for row, _ in before}
    page.one("#matrix-measure").send_keys(Keys.ARROW_DOWN)
    assert Select(page.one("#matrix-measure")).first_selected_option.text == "holdout: papers it cites, nDCG"
    assert matrix(page) != before
    ask(page, "s2and: s2and_arnetminer, B³ F1")
    shown = {row for row, _ in matrix(page)}
    assert "bm25" not in shown
    assert {"model-00", "random"} <= shown
    ask(page, "over tasks: holdout, mean over its tasks")
    remark = page.one("#matrix-items").text
    assert remark.startswith("over 4 tasks: the interval covers the choice of tasks")
    assert remark.endswith("so few tasks cannot give a star among 36 pairs, however large the differences are")
    assert "over tasks: all benchmarks, mean over tasks" in page.texts("#matrix-measure option")


def test_the_configuration_unfolds_by_mouse_and_by_keyboard(page):
    summary, text = page.one("#configuration summary"), page.one("#configuration pre")
    assert not text.is_displayed()
    summary.send_keys(Keys.ENTER)
    assert text.is_displayed()
    assert '"batch_size": 32' in text.text
    summary.click()
    assert not text.is_displayed()


def test_a_name_of_a_legend_makes_its_lines_stand_out_until_it_is_pressed_again(page):
    figure = "#validation_curves-figure"
    lines = page.all(f"{figure} .panels [data-series]")
    opacities = "arguments[0].map(line => [line.dataset.series, getComputedStyle(line).opacity])"
    button = page.all(f"{figure} .legend button")[1]
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "true"
    shown = page.run(opacities, lines)
    assert {opacity for series, opacity in shown if series == "1"} == {"1"}
    assert all(float(opacity) < 0.2 for series, opacity in shown if series != "1")
    button.send_keys(Keys.SPACE)
    assert {opacity for _, opacity in page.run(opacities, lines)} == {"1"}


def rgb(colour):
    """Red, green and blue of a colour as the browser states it."""
    return [int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def contrast(one, other):
    lighter, darker = sorted((luminance(*rgb(one)), luminance(*rgb(other))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


TEXTS = ["p", "td", "th[scope=col]", "figcaption", "a", "figure.drawn svg text", "small", ".up", ".notice p"]


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_and_the_lines_of_figures_can_be_seen_by_day_and_by_night(browser, dark, tmp_path_factory):
    configuration = configuration_of(models=5, seeds=1, kinds=("holdout",))
    configuration["corpus"] = {"source": "demo"}
    page = browser.open(page_of(configuration, tmp_path_factory.mktemp("page")), dark=dark)
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert (luminance(*rgb(ground)) < 0.05) is dark
    lines = page.all(".panels [data-series] path")
    strokes = page.run("arguments[0].map(line => getComputedStyle(line).stroke)", lines)
    drawn = {colour for colour in strokes if colour.startswith("rgb(")}
    assert len(drawn) >= 5
    assert all(contrast(colour, ground) > 2 for colour in drawn)
    for selector in TEXTS:
        colours = page.run(
            """(element => {
                const style = getComputedStyle(element);
                let behind = element;
                const isClear = each => getComputedStyle(each).backgroundColor === 'rgba(0, 0, 0, 0)';
                while (behind && isClear(behind)) behind = behind.parentElement;
                const text = element instanceof SVGElement ? style.fill : style.color;
                return [text, getComputedStyle(behind ?? document.body).backgroundColor];
            })(document.querySelector(arguments[0]))""",
            selector,
        )
        assert contrast(*colours) >= 4.5, (selector, colours)


@pytest.mark.parametrize("width", [400, 1280])
def test_only_tables_scroll_sideways_and_say_so_and_figures_are_within_the_window(browser, small, width):
    page = browser.open(small, width=width)
    assert page.overflow <= 0
    edges = page.run(
        """[...document.querySelectorAll('figure.drawn .legend li, figure.drawn .panels > svg')]
            .map(element => element.getBoundingClientRect()).map(box => [box.left, box.right, box.width])"""
    )
    assert len(edges) > 25
    assert all(left >= 0 and right <= width and wide > 20 for left, right, wide in edges)
    tables = page.run(
        """[...document.querySelectorAll('.wide')].filter(wide => wide.offsetParent).map(wide => ({
            wider: wide.scrollWidth > wide.clientWidth + 1,
            marked: wide.classList.contains('more-right'),
            taller: wide.scrollHeight > wide.clientHeight + 1,
            shown: !wide.nextElementSibling.hidden,
            reachable: wide.tabIndex === 0 || wide.scrollWidth <= wide.clientWidth + 1,
        }))"""
    )
    assert all(table["wider"] == table["marked"] and table["reachable"] for table in tables)
    assert all(table["shown"] == (table["wider"] or table["taller"]) for table in tables)
    assert any(table["wider"] for table in tables)


def test_the_mark_of_a_wide_table_moves_as_it_is_scrolled(browser, small):
    page = browser.open(small, width=400)
    wide = page.one("figure.table:has(#models-caption) .wide")
    page.run("arguments[0].scrollLeft = 1e6", wide)
    pause(page)
    assert "more-left" in wide.get_attribute("class")
    assert "more-right" not in wide.get_attribute("class")


def test_words_of_a_panel_are_within_it_and_nothing_is_fetched_or_complained_about(page):
    beyond = page.run(
        """[...document.querySelectorAll('.panels > svg')].flatMap(panel => {
            const box = panel.getBoundingClientRect();
            return [...panel.querySelectorAll('text')].filter(text => {
                const own = text.getBoundingClientRect();
                const isWide = own.left < box.left - 1 || own.right > box.right + 1;
                return isWide || own.top < box.top - 1 || own.bottom > box.bottom + 1;
            }).map(text => text.textContent);
        })"""
    )
    assert beyond == []
    assert page.run("performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The page of 50 models with 3 seeds on 6 benchmarks."""
    return page_of(configuration_of(models=50, seeds=3), tmp_path_factory.mktemp("large"))


@pytest.mark.long
@pytest.mark.parametrize("width", [400, 1280])
def test_a_large_page_is_light_opens_at_once_and_is_no_wider_than_its_window(browser, large, width):
    assert 1_000_000 < large.stat().st_size < 5_000_000
    start = time.process_time()
    page = browser.open(large, width=width)
    assert time.process_time() - start < 10
    assert page.overflow <= 0
    assert len(page.all("#matrix tbody tr")) == 54


def test_large_tables_scroll_below_their_heads_and_say_so(browser, large):
    page = browser.open(large)
    assert page.run("document.documentElement.scrollHeight") < 20_000
    wide = page.one("figure.table:has(#models-caption) .wide")
    hint = page.run("arguments[0].nextElementSibling.textContent", wide)
    assert hint == "This table continues to the right and below (54 rows): scroll it."
    page.run("arguments[0].scrollTop = 1e6", wide)
    pause(page)
    assert "more-below" not in wide.get_attribute("class")
    edges = "arguments[0].map(each => each.getBoundingClientRect()).map(box => [box.top, box.bottom])"
    parts = [page.one("figure.table:has(#models-caption) " + part) for part in ("thead th", "tbody tr:last-child td")]
    (top, _), (_, last), (start, below) = page.run(edges, [*parts, wide])
    assert abs(top - start) < 2
    assert last <= below


def test_the_matrix_and_the_tables_of_a_large_page_answer_at_once(browser, large):
    page = browser.open(large)
    start = time.process_time()
    Select(page.one("#matrix-measure")).select_by_visible_text("over tasks: mdcr, mean over its tasks")
    page.one("#tasks > details > summary").click()
    page.one("figure.table:has(#tasks_mdcr-caption) thead button").click()
    assert len(page.one("#matrix tbody td:nth-child(3) small").text) > 0
    assert time.process_time() - start < 10


def test_a_long_legend_leaves_room_for_its_panels(browser, large):
    page = browser.open(large, width=400)
    legend = page.one("#validation_curves-figure .legend")
    assert legend.rect["height"] <= 0.31 * 900
    assert legend.get_property("scrollHeight") > legend.rect["height"]
    assert all(panel.rect["width"] > 300 for panel in page.all("#validation_curves-figure .panels > svg"))
