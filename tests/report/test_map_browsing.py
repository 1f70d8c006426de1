"""The map of ten thousand papers as people use it in a browser: pointing, switching, zooming, finding."""

import math
import time
from collections import Counter

import numpy as np
import pytest
from scipy.spatial import cKDTree
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from tests.report.made_page import page_of
from tests.report.made_run import configuration_of

from cocite.core.randomness import generator
from cocite.report.map_page import LARGEST, MapData, aligned, quantised

PAPERS = 10_000
FIELDS = ("physics", "biology", "history", "art")
MODELS = ("untrained_base", "model-00", "model-01")
FIGURE = "#map-holdout"
CANVAS = f"{FIGURE} canvas"


DRAW = generator(1, "browsing")
OF_PAPERS = DRAW.integers(len(FIELDS), size=PAPERS)
ANGLES = DRAW.uniform(0, 2 * math.pi, size=PAPERS)
RADII = 1 + OF_PAPERS + DRAW.uniform(0, 0.6, PAPERS)
RINGS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1) * RADII[:, None]
CORNERS = np.array([[0, 0], [5, 1], [1, 6], [6, 6]])[OF_PAPERS] + DRAW.normal(size=(PAPERS, 2))
CORNERS[7] = np.nan
MAP = MapData(
    titles=[f"Paper {number} on {FIELDS[field]} & more" for number, field in enumerate(OF_PAPERS)],
    years=[None if number % 5 == 0 else 1950 + number % 70 for number in range(PAPERS)],
    classes={
        "field": [FIELDS[field] if number % 50 else None for number, field in enumerate(OF_PAPERS)],
        "parity": ["odd" if number % 2 else "even" for number in range(PAPERS)],
    },
    layouts=dict(zip(MODELS, (DRAW.normal(size=(PAPERS, 2)), RINGS, CORNERS), strict=True)),
    clusters={name: [int(field) if n % 9 else None for n, field in enumerate(OF_PAPERS)] for name in MODELS},
)
"""Papers in four fields; the first model knows nothing, the second puts fields in rings, the third elsewhere."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    configuration = configuration_of(models=2, seeds=1, kinds=("holdout",))
    return page_of(configuration, tmp_path_factory.mktemp("map"), maps={"holdout": MAP})


@pytest.fixture
def opened(browser, written):
    browser.complaints  # noqa: B018 Those of other tests.
    browser.open(written)
    browser.run(f"document.querySelector('{FIGURE}').scrollIntoView()")
    settle(browser)
    return browser


@pytest.fixture
def page(opened):
    choose(opened, "model", MODELS[0])
    return opened


def wait(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def of_canvas(page, function, *numbers):
    """What a function of the canvas and some numbers returns."""
    return page.run(f"({function})(document.querySelector('{CANVAS}'), ...arguments)", *map(float, numbers))


def settle(page):
    """Wait until the map is there and nothing on it moves."""
    wait(lambda: of_canvas(page, "canvas => canvas.dataset.moving === 'false'"))


def size_of_canvas(page):
    return np.array(of_canvas(page, "canvas => [canvas.clientWidth, canvas.clientHeight]"))


def pixels(page, model):
    """Where each paper is, in pixels from the upper left of the canvas, by what the canvas says it shows."""
    placed = quantised(aligned(MAP.layouts[model], MAP.layouts[MODELS[0]])) / LARGEST  # from 0 to 1
    x, y, scale = map(float, of_canvas(page, "canvas => canvas.dataset.view").split())
    return size_of_canvas(page) / 2 + (placed - [x, y]) * [scale, -scale]


def alone(page, model):
    """The paper within the canvas that is farthest from all others."""
    there = np.flatnonzero(np.isfinite(MAP.layouts[model]).all(axis=1))
    at = pixels(page, model)[there]
    nearest = cKDTree(at).query(at, k=2)[0][:, 1]
    is_inside = ((at > 15) & (at < size_of_canvas(page) - [60, 15])).all(axis=1)
    return int(there[np.argmax(np.where(is_inside, nearest, 0))])


def point_at(page, x, y):
    """Move the pointer to a pixel of the canvas."""
    function = """(canvas, x, y) => {
        const box = canvas.getBoundingClientRect();
        const at = {clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerId: 1};
        canvas.dispatchEvent(new PointerEvent('pointermove', at));
    }"""
    of_canvas(page, function, x, y)


def tip(page):
    return page.one(f"{FIGURE} .map-tip").text.split("\n") if page.one(f"{FIGURE} .map-tip").is_displayed() else None


def colour_at(page, x, y):
    """The colour that is drawn at a pixel of the canvas, as red, green and blue."""
    function = "(canvas, x, y) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)"
    return of_canvas(page, function, math.floor(x), math.floor(y))


def is_drawn(page, x, y):
    """Whether there is a dot at a pixel of the canvas; the page is white."""
    return min(colour_at(page, x, y)) < 150


def status(page):
    return page.one(f"{FIGURE} .map-status").text


def choose(page, what, name):
    """Choose a model or a colour, and wait until it is shown."""
    Select(page.one(f"{FIGURE} .map-{what}")).select_by_visible_text(name)
    of, said = (CANVAS, f" as {name} places them") if what == "model" else (f"{FIGURE} .legend", f"Legend: {name}")
    wait(lambda: (page.one(of).get_attribute("aria-label") or "").endswith(said))
    settle(page)


@pytest.mark.parametrize("model", MODELS)
def test_a_point_names_its_paper_with_year_field_and_cluster_when_the_pointer_rests_on_it(page, model):
    choose(page, "model", model)
    paper = alone(page, model)
    point_at(page, *pixels(page, model)[paper])
    title, more = tip(page)
    assert title == MAP.titles[paper]
    said = [MAP.years[paper], MAP.classes["field"][paper] and f"field: {MAP.classes['field'][paper]}"]
    said += [f"parity: {MAP.classes['parity'][paper]}"]
    said += ["in no cluster" if MAP.clusters[model][paper] is None else f"cluster {MAP.clusters[model][paper] + 1}"]
    assert more.startswith(" · ".join(str(each) for each in said if each))  # the words of the cluster follow
    point_at(page, 1, 1)
    assert tip(page) is None


def test_the_pointer_names_the_nearest_of_many_papers(page):
    choose(page, "model", "model-00")
    at = pixels(page, "model-00")
    for x, y in at[:200:20] + np.array([1.5, -1.0]):
        point_at(page, x, y)
        between = np.hypot(*(at - [x, y]).T)
        assert tip(page)[0] in {MAP.titles[paper] for paper in np.flatnonzero(between <= between.min() + 0.5)}


def test_the_map_opens_on_the_best_model_of_its_benchmark(opened):
    best = opened.one("#board-1 .best th").text.split()[0]
    assert opened.one(f"{FIGURE} .map-model").get_property("value") == best


def test_another_model_moves_the_points_and_a_paper_that_one_does_not_place_comes_back(page):
    picture = "canvas => canvas.toDataURL()"
    wait(lambda: status(page) == "10,000 of 10,000 papers in view")
    before = of_canvas(page, picture)
    choose(page, "model", "model-01")
    assert of_canvas(page, picture) != before
    wait(lambda: status(page) == "9,999 of 10,000 papers in view")
    choose(page, "model", MODELS[0])
    wait(lambda: status(page) == "10,000 of 10,000 papers in view")


def test_another_colour_colours_the_points_by_other_classes(page):
    legends = {}
    for label in ("field", "parity", "cluster"):
        choose(page, "colour", label)
        legends[label] = page.texts(f"{FIGURE} .legend button")
    counts = {label: Counter(classes) for label, classes in MAP.classes.items()}
    assert sorted(legends["parity"]) == ["even (5,000)", "odd (5,000)"]
    expected = {f"{name or 'unknown'} ({number:,})" for name, number in counts["field"].items()}
    assert set(legends["field"]) == expected
    assert legends["cluster"][-1].startswith("in no cluster")
    paper = alone(page, MODELS[0])
    at = pixels(page, MODELS[0])[paper]
    for label in ("field", "parity"):
        choose(page, "colour", label)
        wait(lambda at=at: is_drawn(page, *at))
        dot = page.run(
            """[...document.querySelectorAll(arguments[0])]
                .find(each => each.textContent.trim().startsWith(arguments[1]))
                .querySelector('.map-dot').style.background""",
            f"{FIGURE} .legend button",
            MAP.classes[label][paper] or "unknown",
        )
        named = [int(part) for part in dot[4:-1].split(",")]
        assert np.abs(np.array(named) - colour_at(page, *at)).max() <= 25, label  # it covers its pixel all but wholly


def test_a_class_of_the_legend_is_shown_alone_until_it_is_pressed_again(page):
    choose(page, "colour", "parity")
    paper = alone(page, MODELS[0])
    at = pixels(page, MODELS[0])[paper]
    button = next(
        each for each in page.all(f"{FIGURE} .legend button") if not each.text.startswith(MAP.classes["parity"][paper])
    )
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "true"
    wait(lambda: not is_drawn(page, *at))
    point_at(page, *at)
    assert tip(page) is None
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"
    wait(lambda: is_drawn(page, *at))
    point_at(page, *at)
    assert tip(page)[0] == MAP.titles[paper]


def test_the_wheel_zooms_where_the_pointer_is_once_the_map_is_chosen(page):
    paper, before = 4, pixels(page, MODELS[0])
    at = before[paper]
    wheel = """(canvas, x, y, deltaY, ctrlKey) => {
        const box = canvas.getBoundingClientRect();
        const at = {clientX: box.left + x, clientY: box.top + y, deltaY, ctrlKey, bubbles: true, cancelable: true};
        return canvas.dispatchEvent(new WheelEvent('wheel', at));
    }"""
    assert of_canvas(page, wheel, *at, -600, False)  # the page scrolls
    assert pixels(page, MODELS[0])[paper] == pytest.approx(at)
    assert not of_canvas(page, wheel, *at, -600, True)
    wait(lambda: status(page) != "10,000 of 10,000 papers in view")
    after = pixels(page, MODELS[0])
    assert np.ptp(after[:, 0]) == pytest.approx(math.exp(600 / 400) * np.ptp(before[:, 0]))
    assert after[paper] == pytest.approx(at, abs=4)  # a browser's pointer is at whole pixels
    inside = ((after >= 0) & (after <= size_of_canvas(page))).all(axis=1).sum()
    wait(lambda: status(page) == f"{inside:,} of 10,000 papers in view")
    point_at(page, *after[paper])
    wait(lambda: tip(page) and tip(page)[0] == MAP.titles[paper])
    page.one(f"{FIGURE} .map-whole").click()
    wait(lambda: status(page) == "10,000 of 10,000 papers in view")


def test_the_keyboard_moves_and_zooms_the_map(page):
    canvas = page.one(CANVAS)
    before = pixels(page, MODELS[0])
    middle = size_of_canvas(page) / 2
    zoomed = middle + 1.5 * (before - middle)
    for key, expected in (("+", zoomed), (Keys.ARROW_RIGHT, zoomed - [60, 0]), ("0", before)):
        canvas.send_keys(key)
        wait(lambda expected=expected: np.allclose(pixels(page, MODELS[0]), expected, equal_nan=True))


def test_words_find_papers_and_a_list_names_those_in_the_middle(page):
    page.one(f"{FIGURE} .map-find").send_keys("paper 77 physics")
    found = [title for title in MAP.titles if "77" in title and "physics" in title and "paper" in title.lower()]
    wait(lambda: status(page).startswith(f"{len(found)} found"))
    page.one(f"{FIGURE} .map-list summary").click()
    wait(lambda: len(page.all(f"{FIGURE} .map-list li")) == min(50, len(found)))
    assert set(page.texts(f"{FIGURE} .map-list li button")) <= set(found)
    page.one(f"{FIGURE} .map-list li button").click()
    assert tip(page)[0] == page.one(f"{FIGURE} .map-list li button").text


def test_ten_thousand_points_move_without_stutter(page):
    choose(page, "model", "model-00")
    page.driver.set_script_timeout(60)
    took = page.driver.execute_async_script(
        """const [selector, done] = [arguments[0], arguments[1]];
        const canvas = document.querySelector(selector);
        const box = canvas.getBoundingClientRect();
        const at = (name, x, buttons) => canvas.dispatchEvent(new PointerEvent(name,
            {clientX: box.left + x, clientY: box.top + 200, buttons, bubbles: true, pointerId: 1}));
        canvas.setPointerCapture = () => {};
        at('pointerdown', 200, 1);
        const frames = [];
        let last = performance.now();
        const next = (now) => {
            frames.push(now - last);
            last = now;
            if (frames.length > 60) return done(frames.slice(1));
            at('pointermove', 200 + (frames.length % 30) * 4, 1);
            requestAnimationFrame(next);
        };
        requestAnimationFrame(next);""",
        CANVAS,
    )
    assert len(took) == 60
    assert np.median(took) < 100, took


def test_nothing_is_fetched_or_complained_about_and_the_page_stays_light(page, written):
    choose(page, "model", "model-01")
    assert page.run("performance.getEntriesByType('resource').length") == 0
    assert page.complaints == []
    assert written.stat().st_size < 1_500_000
