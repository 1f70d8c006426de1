"""The figures of the report: curves of models and graphs, pairs, neighbours, triplets and maps.

The picture of a map has some hundred papers, so that it can be read on paper; the interactive map has all of them.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from matplotlib import ticker
from matplotlib.axes import Axes

from cocite.config.benchmarks import sides_of
from cocite.config.configuration import Configuration
from cocite.config.probes import named_sets
from cocite.config.sampler import graphs_of_aspects, sets_by_aspect
from cocite.core.atomic import read_json
from cocite.core.options import Results, Seed
from cocite.core.randomness import generator
from cocite.report.aspects import draw_aspects, draw_spaces
from cocite.report.canvas import COLOURS, SERIES, Entry, Titles, canvas, look, styles
from cocite.report.labels import GRAPH_METRICS, RELATIONS, loss_of
from cocite.report.map_page import UNKNOWN, MapData, by_frequency, read_map
from cocite.report.probes import draw_probes
from cocite.report.results import Pairs, Provenance, configuration_in, read, read_curves, read_each, read_scored
from cocite.report.trade import draw_trade

PANEL = (2.5, 1.9)
"""Width and height of the axes, inches."""
MAP_PANEL = (2.2, 2.2)
"""Those of a model's part of a map."""
DRAWN = 500
"""Papers in the picture of a map: as many as can be told apart in a panel."""
CLASS_COLOURS = len(COLOURS) - 1
GREY = COLOURS[-1]
OTHER = "others"
FAINT = 0.15
"""Opacity of the band between the lowest and the highest seed."""
RAW = 0.5
"""Opacity of raw link prediction; filtered is opaque."""


def draw_figures(
    figures: Annotated[Sequence[Path], typer.Argument(help="Figures to draw, SVG; the file's name is the figure's.")],
    *,
    results: Results,
    provenance: Provenance,
    pairs: Pairs,
    seed: Seed,
) -> None:
    """Draw figures of a run by their names; that of a map is called map_<name>."""
    configuration = configuration_in(read_json(provenance))
    of_pairs, sets = json.loads(pairs), named_sets(configuration)
    for path in figures:
        match path.stem:
            case "pair_counts":
                draw_pair_counts(read(results, "pair_counts"), of_pairs, path)
            case "validation_curves":
                losses = {name: loss_of(entry) for name, entry in configuration.models.items()}
                draw_validation_curves(read_curves(results, configuration), losses, path)
            case "link_prediction":
                draw_link_prediction(read_each(results, "graph_scores", "embedding", configuration.embeddings), path)
            case "band_quality":
                ranked = [*configuration.embeddings, *configuration.walks]
                draw_band_quality(read_each(results, "band_quality", "embedding", ranked), path)
            case "triplets":
                curves = read_each(results, "collisions", "triplets", sets)
                counts = read_each(results, "triplets_per_query", "triplets", sets)
                limits = {name: getattr(entry, "k_negative", None) for name, entry in sets.items()}
                last = {name: limit[-1] if isinstance(limit, tuple) else limit for name, limit in limits.items()}
                draw_triplets(curves, counts, last, path)
            case "aspects":
                intents = read_each(results, "intent_counts", "graph", graphs_of_aspects(configuration))
                checks = read_each(results, "triplet_checks", "triplets", sets_by_aspect(configuration))
                draw_aspects(intents, checks, path)
            case "spaces":
                of = [name for name, entry in configuration.benchmarks.items() if entry.tells_spaces_apart]
                draw_spaces(_scores_on(of, results, configuration), configuration, path)
            case "trade":
                of = [benchmark for side in sides_of(configuration) for benchmark, _ in side]
                draw_trade(_scores_on(of, results, configuration), configuration, path)
            case "probes":
                draw_probes(read_each(results, "probe_scores", "probe", configuration.probes), path)
            case name:
                draw_map(read_map(results, configuration, name.removeprefix("map_")), seed, path)


def _scores_on(benchmarks: Collection[str], results: Path, configuration: Configuration) -> pl.DataFrame:
    kept = {name: entry for name, entry in configuration.benchmarks.items() if name in benchmarks}
    return read_scored(results, configuration.model_copy(update={"benchmarks": kept}), "scores")


def draw_map(data: MapData, seed: int, output: Path) -> None:
    """A panel a model with the same papers in each, titles on hover, coloured by the class of the first label.

    Classes beyond the most frequent share a colour. Of many papers, some are drawn at random.
    """
    papers: Any = np.arange(len(data.titles))
    if len(papers) > DRAWN:
        papers = np.sort(generator(seed, "papers of the picture").choice(len(papers), DRAWN, replace=False))
    classes = next(iter(data.classes.values()), [None] * len(data.titles))
    called = [classes[paper] or UNKNOWN for paper in papers]
    titles: Titles = {}
    entries = _entries(called)
    with canvas(output, panels=len(data.layouts), size=MAP_PANEL, entries=entries, titles=titles) as axes:
        for axis, (model, layout) in zip(axes, data.layouts.items(), strict=True):
            axis.set_axis_off()
            points = layout[papers]
            is_placed = np.isfinite(points).all(axis=1)
            for place, (value, entry) in enumerate(entries.items()):
                is_of_class = [(each if each in entries else OTHER) == value for each in called]
                is_drawn = np.array(is_of_class, dtype=bool) & is_placed
                x, y = points[is_drawn].T
                identity = f"{SERIES}{place}-{model}"
                axis.scatter(x, y, s=9, color=entry.colour, linewidths=0).set_gid(identity)
                titles[identity] = [data.titles[paper] for paper in compress(papers, is_drawn)]
            axis.set_title(model)


def _entries(classes: Sequence[str]) -> dict[str, Entry]:
    """A colour for each of the most frequent classes, and grey for the others together and for papers without one."""
    names = [name for name in by_frequency(classes) if name != UNKNOWN]
    colours = dict(zip(names[:CLASS_COLOURS], COLOURS, strict=False))
    if len(names) > CLASS_COLOURS:
        colours[OTHER] = GREY
    if UNKNOWN in classes:
        colours[UNKNOWN] = GREY
    return {name: Entry(name, colour, marker="o") for name, colour in colours.items()}


def draw_validation_curves(curves: Mapping[str, pl.DataFrame], losses: Mapping[str, str], output: Path) -> None:
    """Triplet accuracy of all models and, in a panel for each kind of loss, their loss on the common validation set.

    `curves` and `losses` give the curves of each model's seeds and the name of its loss.
    """
    kinds, entries = list(dict.fromkeys(losses.values())), styles(list(curves))
    with canvas(output, panels=1 + len(kinds), size=PANEL, entries=entries) as axes:
        panels = {kind: (number, axis) for number, (kind, axis) in enumerate(zip(kinds, axes[1:], strict=False), 1)}
        axes[0].set(xlabel="steps", title="share of triplets in order")
        for kind, (_, axis) in panels.items():
            axis.set(xlabel="steps", title=f"{kind} loss")
        for name, curve in curves.items():
            _curve(axes[0], 0, curve, "validation_accuracy", entries, name)
            number, axis = panels[losses[name]]
            _curve(axis, number, curve, "validation_loss", entries, name)


def draw_link_prediction(scores: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Every metric of each graph embedding on its held-out edges, by epoch: filtered as full lines, raw faint."""
    entries = styles(list(scores))
    with canvas(output, panels=len(GRAPH_METRICS), size=PANEL, entries=entries) as axes:
        for number, (axis, (metric, label)) in enumerate(zip(axes, GRAPH_METRICS.items(), strict=True)):
            for name, table in scores.items():
                for filtered, opacity, panel in ((True, 1.0, number), (False, RAW, f"{number}-raw")):
                    of_metric = table.filter(metric=metric, filtered=filtered).sort("epoch")
                    axis.plot(of_metric["epoch"], of_metric["value"], alpha=opacity, **look(entries, name, panel))
            axis.set(xlabel="epoch", title=label)
            axis.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))


def draw_pair_counts(counts: pl.DataFrame, tables: Mapping[str, str], output: Path) -> None:
    """How many pairs are cited together, or cite the same papers, at least so often, for each graph made of pairs.

    `counts` is the table `pair_counts`, and `tables` names what the pairs of each graph are.
    """
    names = {graph: f"{graph} ({tables[graph]})" for graph in sorted(tables)}
    entries = {name: entry._replace(marker="") for name, entry in styles(list(names.values())).items()}
    with canvas(output, panels=1, size=PANEL, entries=entries) as [axis]:
        for graph, name in names.items():
            of_graph = counts.filter(graph=graph).sort("count")
            at_least = of_graph["pairs"].cum_sum(reverse=True)
            if len(of_graph):  # A logarithmic axis cannot be laid out for a line without points.
                axis.plot(of_graph["count"], at_least, **look(entries, name, 0))
                axis.set(xscale="log", yscale="log")
                for each in (axis.xaxis, axis.yaxis):  # powers of ten take a second to lay out, and 100,000 has no room
                    each.set_major_formatter(ticker.EngFormatter(sep=""))
                    each.set_minor_formatter(ticker.NullFormatter())
        axis.set(xlabel="times that a pair occurs, at least", title="pairs")


def draw_band_quality(bands: Mapping[str, pl.DataFrame], output: Path) -> None:
    """Share of the neighbours that are truly related to the query, by rank; `bands` by name of what ranks."""
    entries = styles(list(bands))
    with canvas(output, panels=len(RELATIONS), size=PANEL, entries=entries) as axes:
        for panel, (axis, (column, label)) in enumerate(zip(axes, RELATIONS.items(), strict=True)):
            for name, table in bands.items():
                axis.plot(table["last_rank"], table[column] / table["papers"], **look(entries, name, panel))
            axis.set(title=f"neighbours {label}", ylim=(0, None))
            axis.yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))
            _rank_axis(axis, "rank")


def draw_triplets(
    collisions: Mapping[str, pl.DataFrame],
    per_query: Mapping[str, pl.DataFrame],
    k_negative: Mapping[str, int | None],
    output: Path,
) -> None:
    """Collisions by the rank of hard negatives, and the number of queries by their number of triplets, per set.

    As in figure 4 of Ostendorff et al., 2022 ("SciNCL"). A dot marks the last rank of a set's hard negatives, which
    `k_negative` gives if they are taken by rank.
    """
    entries = styles([f"set {name}" for name in per_query])  # a model may have the same name
    with canvas(output, panels=2, size=PANEL, entries=entries) as axes:
        for name, counts in per_query.items():
            if len(collisions[name]):  # A logarithmic axis cannot be laid out for a line without points.
                curve, drawn = collisions[name], look(entries, f"set {name}", 0)
                axes[0].plot(curve["k_negative"], curve["collisions"] / curve["pairs"], **{**drawn, "marker": ""})
                dot = {**drawn, "gid": f"{drawn['gid']}-own", "markersize": 5}
                for own in curve.filter(pl.col("k_negative").eq_missing(k_negative.get(name))).iter_rows(named=True):
                    axes[0].plot(own["k_negative"], own["collisions"] / own["pairs"], clip_on=False, **dot)
            of_all: dict[int, int] = dict(counts.group_by("count").agg(pl.col("queries").sum()).iter_rows())
            numbers = range(max(of_all) + 1)
            shares = [of_all.get(number, 0) / sum(of_all.values()) for number in numbers]
            axes[1].plot(numbers, shares, **look(entries, f"set {name}", 1))
        axes[0].set(title="positive pairs that collide", ylim=(0, None))
        _rank_axis(axes[0], "last rank of the hard negatives, k⁻")
        axes[1].set(xlabel="triplets per query", title="queries", ylim=(0, None))
        axes[1].xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        axes[0].yaxis.set_major_formatter(ticker.PercentFormatter(1))
        axes[1].yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))


def _curve(axis: Axes, panel: int, curve: pl.DataFrame, metric: str, entries: Mapping[str, Entry], name: str) -> None:
    """Mean of a metric over the seeds by step, with a band from the lowest to the highest if there are several."""
    value = pl.col("value")
    of_metric = (
        curve.filter(pl.col("metric") == metric)
        .group_by("step")
        .agg(value.mean().alias("mean"), value.min().alias("low"), value.max().alias("high"))
        .sort("step")
    )
    steps, mean, low, high = of_metric
    axis.plot(steps, mean, **look(entries, name, panel))
    if curve["seed"].n_unique() > 1:
        band = look(entries, name, f"{panel}-band")
        axis.fill_between(steps, low, high, color=band["color"], alpha=FAINT, linewidth=0, gid=band["gid"])


def _rank_axis(axis: Axes, label: str) -> None:
    axis.set(xlabel=label, xscale="log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(ticker.ScalarFormatter())
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())
