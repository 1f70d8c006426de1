"""The page: the report's tables and figures in one self-contained HTML file, which needs no server and no network.

Text, captions and order are in the templates; this module decides which sections there are and what they are given.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cocite.config.configuration import Configuration
from cocite.config.origins import terms_of_benchmark, terms_of_corpus, terms_of_encoder
from cocite.config.runs import mapped_runs, with_vectors
from cocite.config.sampler import oracle_models
from cocite.core.atomic import write_text
from cocite.report.canvas import read_figure
from cocite.report.figures import DRAWN
from cocite.report.inputs import leaks_in_words
from cocite.report.map_page import MapData, packed
from cocite.report.page_tables import ranking_of, shown
from cocite.report.results import configuration_in
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
"""The groups of sections, each of which has its template; the title of each section, and the table or figure without
which it is left out."""


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
    """Fill the templates with the verdict, tables, figures and maps by name, the packed differences, scores of citation
    counts, the summary and provenance."""
    versions = pl.DataFrame(list(provenance["versions"].items()), schema=["name", "version"], orient="row")
    configuration = configuration_in(provenance)
    oracles = oracle_models(configuration)
    on_page = {
        name: shown(table, ranking_of(name), is_sum=OF_ALL if name == "costs" else None, aside=oracles)
        for name, table in {**tables, "versions": versions}.items()
    }
    # A figure that bears the name of a table shows the same: without rows, its axes are empty.
    present = {name for name, table in on_page.items() if table.rows} | (set(figures) - set(on_page))
    further = {"differences": differences["questions"], "map": maps, "popularity": popularity}
    present |= {name for name, has_any in further.items() if has_any}
    sections = {
        group: {id: title for id, (title, needed) in of_group.items() if not needed or needed in present}
        for group, of_group in SECTIONS.items()
    }
    template = _environment().get_template("index.html.j2")
    page = template.render(
        boards=boards,
        groups={group: [*titles] for group, titles in sections.items()},
        sections={id: title for titles in sections.values() for id, title in titles.items()},
        tables=on_page,
        figures={
            name: read_figure(path, FIGURES["map" if name.startswith("map_") else name])
            for name, path in figures.items()
        },
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


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

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
    return environment


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
