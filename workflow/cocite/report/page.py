"""The page: the report's tables and figures in one self-contained HTML file, which needs no server and no network.

Text, captions and order are in the templates; this module decides which sections there are, which cells of a table are
numbers, and which is the best of its column. Rows that this run scored compete. Published rows do not, nor do averages
over fewer values than others, nor oracles.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from cocite.config.benchmarks.holdout import CITATION_CLASSES
from cocite.config.configuration import Configuration
from cocite.config.origins import terms_of_benchmark, terms_of_corpus, terms_of_encoder
from cocite.config.runs import mapped_runs, model_of, with_vectors
from cocite.config.sampler import oracle_models
from cocite.core.atomic import write_text
from cocite.report.canvas import read_figure
from cocite.report.figures import DRAWN
from cocite.report.inputs import leaks_in_words
from cocite.report.labels import GRAPH_METRICS, PUBLISHED, number_in
from cocite.report.map_page import AGREEMENT, MapData, packed
from cocite.report.published import REPORTED
from cocite.report.results import configuration_in
from cocite.report.scores import QUERIES, recall_of
from cocite.report.summary import OF_ALL, what_is_generated
from cocite.report.verdict import Board

TEMPLATES = Path(__file__).parents[2] / "report"
SCRIPTS = ("matrix.js", "sort.js", "legend.js", "map-view.js", "map.js", "scroll.js", "save.js", "fold.js")
FIGURES = {
    "validation_curves": "Validation",
    "pair_counts": "Pairs of papers",
    "link_prediction": "Link prediction",
    "band_quality": "Quality of the neighbours",
    "triplets": "Triplets",
    "aspects": "Intents and aspects",
    "trade": "Short queries against documents",
    "screening": "Screening of reviews",
    "probes": "Sets and losses of the probes",
    "spaces": "MAP by space and aspect",
    "map": "Map of the papers",
}
"""What each figure shows, for readers who cannot see it; figures of maps are called map_<name>."""
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Results": {
        "verdict": ("Which is best?", ""),
        "scores": ("All scores", "models"),
        "differences": ("Which models differ?", "differences"),
        "popularity": ("How much of it is popularity?", "popularity"),
        "years": ("How good are they on later years?", "by_year"),
        "screening": ("How soon are the papers of reviews found?", "screening"),
        "trade": ("Short queries or documents?", "trade"),
        "spaces": ("Which space finds which aspect?", "spaces"),
        "tasks": ("Scores on each task", "models"),
        "map": ("Which papers are near each other?", "map"),
    },
    "Training": {
        "trained": ("What was trained?", ""),
        "training": ("How did training go?", "trained"),
        "losses": ("Which loss?", "losses"),
        "difficulties": ("How difficult should triplets be?", "difficulties"),
        "probes": ("Which triplets and losses are worth a training?", "probes"),
        "triplets": ("How good are the triplets?", "triplets"),
    },
    "Data": {
        "corpus": ("What is the corpus?", ""),
        "graphs": ("How good are the graph embeddings?", "graph_embeddings"),
        "searches": ("What do the approximate searches miss?", "searches"),
        "neighbours": ("How related are the neighbours?", "band_quality"),
        "aspects": ("Why do papers cite each other?", "intents"),
        "leaks": ("Did anything leak?", ""),
        "omissions": ("What was left out?", ""),
    },
    "Run": {
        "summary": ("What ran?", ""),
        "costs": ("What did it take?", "costs"),
        "terms": ("Whose data are these?", ""),
        "provenance": ("What made these results?", ""),
    },
}
"""The groups of sections, and the title of each section with the table or figure without which it is left out."""

EMPTY = ("–", "", None)
IDENTIFYING = ("benchmark", "task", "model", "source", "values")

Row = Mapping[str, str | None]


class Ranking(NamedTuple):
    """The columns of a table in which the best value is bold, and the rows it is selected from."""

    columns: Callable[[str], bool] = lambda column: column not in IDENTIFYING
    """Whether a column, by its name, has values that can be ranked."""
    within: tuple[str, ...] = ()
    """Rows can be compared if these columns agree; a source without a mode agrees with each mode of its benchmark."""
    competes: Callable[[Row], bool] = lambda row: True
    lower: tuple[str, ...] = ()


class Cell(NamedTuple):
    """A cell of a table on the page."""

    text: str
    is_number: bool
    is_best: bool


class Shown(NamedTuple):
    """A table on the page: its columns, whether they are numeric, its rows, and rows of totals."""

    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sums: tuple[tuple[Cell, ...], ...]


def shown(table: pl.DataFrame, ranking: Ranking | None = None, is_sum: str = "", aside: Collection[str] = ()) -> Shown:
    """A table of text for the page; `is_sum` is the first cell of rows of totals, models in `aside` do not compete."""
    rows = table.with_columns(pl.col(pl.Int64).map_elements("{:,}".format, return_dtype=pl.String)).rows(named=True)
    best = [set[str]()] * len(rows) if ranking is None else _best(rows, table.columns, ranking, aside)
    filled = {name: [row[name] for row in rows if row[name] not in EMPTY] for name in table.columns}
    numbers = {name: bool(texts) and None not in map(number_in, texts) for name, texts in filled.items()}

    cells = []
    for row, of_row in zip(rows, best, strict=True):
        texts = {name: "–" if text in EMPTY else str(text) for name, text in row.items()}
        texts |= {name: re.sub(r"^-(?=\d)", "−", texts[name]) for name in texts if numbers[name]}
        cells.append(tuple(Cell(text, numbers[name], name in of_row) for name, text in texts.items()))
    shown_rows, sums = (tuple(row for row in cells if (row[0].text == is_sum) == each) for each in (False, True))
    return Shown(tuple(table.columns), tuple(numbers.values()), shown_rows, sums)


def _best(rows: Sequence[Row], columns: Sequence[str], ranking: Ranking, aside: Collection[str]) -> list[set[str]]:
    """For each row, the columns in which no rival is better and at least one is worse."""
    best: list[set[str]] = [set() for _ in rows]
    for column in filter(ranking.columns, columns):
        sign = -1 if column in ranking.lower else 1
        values = {
            place: sign * value
            for place, row in enumerate(rows)
            if ranking.competes(row)
            and model_of(row.get("model") or "") not in aside
            and not re.search(r"\d of \d", row[column] or "")
            and (value := number_in(row[column])) is not None
        }
        for place, value in values.items():
            rivals = [other for at, other in values.items() if at != place and _agree(rows[place], rows[at], ranking)]
            if rivals and value >= max(rivals) and value > min(rivals):
                best[place].add(column)
    return best


def _agree(row: Row, other: Row, ranking: Ranking) -> bool:
    """Whether two rows can be compared."""
    (benchmark, _, mode), (others, _, other_mode) = ((it.get("source") or "").partition(" (") for it in (row, other))
    of_one_source = benchmark == others and (mode == other_mode or not mode or not other_mode)
    return all(of_one_source if name == "source" else row[name] == other[name] for name in ranking.within)


def ranking_of(table: str) -> Ranking | None:
    """The ranking of a table of the page, by its name; none if no row is better than another."""
    return next((RANKINGS[kind] for kind in ("tasks", "map") if table.startswith(f"{kind}_")), RANKINGS.get(table))


RANKINGS: Mapping[str, Ranking] = {
    **dict.fromkeys(("models", "tasks"), Ranking()),
    **dict.fromkeys(
        ("scirepeval_formats", "scirepeval_groups", "scirepeval_tasks", "scidocs", "mdcr", "mdcr_fields"),
        Ranking(
            within=("source",),
            competes=lambda row: row.get("source") != PUBLISHED and " of " not in (row.get("values") or ""),
        ),
    ),
    "popularity": Ranking(lambda column: column in map(recall_of, CITATION_CLASSES), within=("benchmark", "task")),
    "by_year": Ranking(str.isdecimal, ("benchmark", "task"), competes=lambda row: row["model"] != QUERIES),
    "screening": Ranking(within=("benchmark", "task")),
    "reported": Ranking(within=("source",), competes=lambda row: not (row["source"] or "").startswith(REPORTED)),
    # Of models that differ in one thing only: columns of scores name their benchmark.
    **dict.fromkeys(
        ("losses", "difficulties"), Ranking(lambda column: column == "validation accuracy" or ": " in column)
    ),
    "map": Ranking(
        lambda column: column in AGREEMENT.values(), ("label",), competes=lambda row: row["source"] != PUBLISHED
    ),
    "graph_embeddings": Ranking(
        lambda column: column in GRAPH_METRICS.values() and column != "loss",  # losses are of several kinds
        within=("graph", "held-out edges", "negatives"),
        competes=lambda row: row["held-out edges"] not in EMPTY,  # published rows have none
        lower=("mean rank",),
    ),
}


def write_page(
    *,
    boards: Sequence[Board],
    tables: Mapping[str, pl.DataFrame],
    figures: Mapping[str, Path],
    maps: Mapping[str, MapData],
    differences: Mapping[str, Any],
    popularity: Sequence[str],
    facts: Mapping[str, str],
    provenance: Mapping[str, Any],
    output: Path,
) -> None:
    """Fill the templates; tables, figures and maps are by name, and the differences are packed."""
    versions = pl.DataFrame(list(provenance["versions"].items()), schema=["name", "version"], orient="row")
    configuration = configuration_in(provenance)
    oracles = oracle_models(configuration)
    of_tables = {**tables, "versions": versions}.items()
    sums = {"costs": OF_ALL}
    on_page = {name: shown(of, ranking_of(name), is_sum=sums.get(name, ""), aside=oracles) for name, of in of_tables}
    # A figure that bears the name of a table shows the same: without rows, its axes are empty.
    present = {name for name, table in on_page.items() if table.rows} | (set(figures) - set(on_page))
    further = {"differences": differences["questions"], "map": maps, "popularity": popularity}
    present |= {name for name, has_any in further.items() if has_any}
    sections = {
        group: {id: title for id, (title, needed) in of_group.items() if not needed or needed in present}
        for group, of_group in SECTIONS.items()
    }
    page = _template().render(
        boards=boards,
        groups={group: [*titles] for group, titles in sections.items()},
        sections={id: title for titles in sections.values() for id, title in titles.items()},
        tables=on_page,
        figures={name: read_figure(path, FIGURES[re.sub("^map_.*", "map", name)]) for name, path in figures.items()},
        differences=differences,
        popularity=popularity,
        facts=facts,
        generated=what_is_generated(provenance),
        oracles=oracles,
        terms={
            "corpus": terms_of_corpus(provenance),
            "encoders": {name: terms_of_encoder(name, provenance) for name in configuration.encoders},
            "benchmarks": {name: terms_of_benchmark(name, provenance) for name in configuration.benchmarks},
        },
        leaks=leaks_in_words(tables["leaks"]),
        maps={name: _map(name, data, configuration, boards) for name, data in maps.items()},
        provenance=provenance,
        scripts=SCRIPTS,
    )
    write_text(output, page)


def _template() -> Template:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True

    def breakable(text: str) -> Markup:
        """A text that a narrow column may break behind each underscore and slash, and not within a range of numbers."""
        whole = re.sub(r"(?<=\d)–(?=\d)", "\u2060–\u2060", str(escape(text)))
        return Markup(re.sub("([_/])", r"\1<wbr>", whole))  # noqa: S704

    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    environment.globals["source"] = lambda name: Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704
    environment.filters |= {
        "breakable": breakable,
        "number": lambda value: f"{value:.1f}".replace("-", "−"),
        "signed": lambda value: f"{round(value, 1) + 0.0:+.1f}".replace("-", "−"),
    }
    return environment.get_template("index.html.j2")


def _map(name: str, data: MapData, configuration: Configuration, boards: Sequence[Board]) -> dict[str, Any]:
    entry = configuration.maps[name]
    # The board of the map's benchmark is asked first.
    asked = sorted(boards, key=lambda board: not board.name.startswith(entry.benchmark))
    return {
        "packed": packed(data),
        "best": next((board.best for board in asked if board.best in data.layouts), ""),
        "benchmark": entry.benchmark,
        "method": entry.called,
        "models": len(mapped_runs(configuration, entry.models)),
        "of_models": len(with_vectors(configuration, entry.benchmark)),
        "drawn": DRAWN,
        "coloured_by": next(iter(data.classes), "nothing"),
    }
