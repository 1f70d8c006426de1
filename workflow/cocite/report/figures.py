"""The figures of the report: curves of models and graphs, pairs, neighbours, triplets, aspects and maps."""

import json
from collections.abc import Mapping, Sequence
from itertools import compress, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle

from cocite.config.benchmarks import sides_of
from cocite.config.configuration import Configuration
from cocite.config.probes import named_sets
from cocite.config.runs import names_in_spaces
from cocite.config.sampler import graphs_of_aspects, sets_by_aspect
from cocite.config.tasks import Task
from cocite.core.atomic import read_json
from cocite.core.options import Results, Seed
from cocite.core.randomness import generator
from cocite.report.canvas import COLOURS, SERIES, SMALL, Entry, Titles, canvas, look, styles
from cocite.report.labels import GRAPH_METRICS, RELATIONS, loss_of, number_in, over_seeds
from cocite.report.map_page import UNKNOWN, MapData, by_frequency, read_map
from cocite.report.probes import draw_probes
from cocite.report.results import Pairs, Provenance, configuration_in, read, read_curves, read_each, read_scored
from cocite.report.screening import draw_screening, read_screening
from cocite.report.trade import draw_trade

PANEL, MAP_PANEL = (2.5, 1.9), (2.2, 2.2)
"""Width and height of the axes, inches."""
DRAWN = 500
"""Papers in the picture of a map: as many as can be told apart in a panel."""
CLASS_COLOURS = len(COLOURS) - 1
OTHER = "others"
ROW, LENGTH = 0.24, 1.1
"""Height of a row and length of the longest bar, inches."""
LABELS, NUMBERS = 1.0, 0.6
"""Room for the names before the bars, and for the shares behind them, inches."""
WIDTH, HEIGHT = 0.82, 0.42
"""Width and height of a cell of the heat map, inches."""
SPACES, ASPECTS = 1.1, 0.6
"""Room for the names of the spaces and of the aspects, in widths and heights of a cell."""
SCALE = LinearSegmentedColormap.from_list("scale", ["#f1f6fa", COLOURS[5]])
"""From low to high; black letters have a contrast of 9 to 1 or more on all of it."""


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
                draw_spaces(read_scored(results, configuration, "scores", benchmarks=of), configuration, path)
            case "trade":
                of = [benchmark for side in sides_of(configuration) for benchmark, _ in side]
                draw_trade(read_scored(results, configuration, "scores", benchmarks=of), configuration, path)
            case "screening":
                draw_screening(read_screening(results, configuration), path)
            case "probes":
                draw_probes(read_each(results, "probe_scores", "probe", configuration.probes), path)
            case name:
                draw_map(read_map(results, configuration, name.removeprefix("map_")), seed, path)


def draw_map(data: MapData, seed: int, output: Path) -> None:
    """A panel a model with the same papers in each, titles on hover, coloured by the class of the first label."""
    papers: Any = np.arange(len(data.titles))
    if len(papers) > DRAWN:
        papers = np.sort(generator(seed, "papers of the picture").choice(len(papers), DRAWN, replace=False))
    classes = next(iter(data.classes.values()), [None] * len(data.titles))
    called = [classes[paper] or UNKNOWN for paper in papers]
    titles: Titles = {}
    names = [name for name in by_frequency(called) if name != UNKNOWN]
    colours = dict(zip(names[:CLASS_COLOURS], COLOURS, strict=False))
    colours |= {OTHER: COLOURS[-1]} if len(names) > CLASS_COLOURS else {}
    colours |= {UNKNOWN: COLOURS[-1]} if UNKNOWN in called else {}
    entries = {name: Entry(name, colour, marker="o") for name, colour in colours.items()}
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


def draw_validation_curves(curves: Mapping[str, pl.DataFrame], losses: Mapping[str, str], output: Path) -> None:
    """Triplet accuracy of all models and, in a panel for each kind of loss, their loss on the common validation set."""
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
                for filtered, opacity, panel in ((True, 1.0, number), (False, 0.5, f"{number}-raw")):
                    of_metric = table.filter(metric=metric, filtered=filtered).sort("epoch")
                    axis.plot(of_metric["epoch"], of_metric["value"], alpha=opacity, **look(entries, name, panel))
            axis.set(xlabel="epoch", title=label)
            axis.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))


def draw_pair_counts(counts: pl.DataFrame, tables: Mapping[str, str], output: Path) -> None:
    """How many pairs occur at least so often in a graph of pairs: the table `pair_counts`, and what the pairs are."""
    names = {graph: f"{graph} ({tables[graph]})" for graph in sorted(tables)}
    entries = styles(list(names.values()), markers=False)
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
    """Collisions by the rank of hard negatives (as in figure 4 of Ostendorff et al., 2022, "SciNCL"), with a dot at
    `k_negative`, their last rank if they are taken by rank; and queries by their number of triplets, per set."""
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
    of_steps = curve.filter(metric=metric).group_by("step").agg(mean=value.mean(), low=value.min(), high=value.max())
    steps, mean, low, high = of_steps.sort("step")
    axis.plot(steps, mean, **look(entries, name, panel))
    if curve["seed"].n_unique() > 1:
        band = look(entries, name, f"{panel}-band")
        axis.fill_between(steps, low, high, color=band["color"], alpha=0.15, linewidth=0, gid=band["gid"])


def _rank_axis(axis: Axes, label: str) -> None:
    axis.set(xlabel=label, xscale="log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(ticker.ScalarFormatter())
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())


def draw_aspects(intents: Mapping[str, pl.DataFrame], checks: Mapping[str, pl.DataFrame], output: Path) -> None:
    """A panel for each graph, with a bar per intent, and for each set of examples, with a bar per aspect."""
    panels = {}
    for graph, counts in intents.items():
        citations, of_intents = max(counts["citations"].sum(), 1), counts.select("intent", "citations").iter_rows()
        panels[f"{graph}: citations"] = {intent: number / citations for intent, number in of_intents}
    for name, table in checks.items():
        served = table.filter(check="served").select("part", "found", "among")
        panels[f"{name}: queries"] = {aspect: found / max(among, 1) for aspect, found, among in served.iter_rows()}
    rows = max(map(len, panels.values()), default=0)
    with canvas(output, panels=len(panels), size=(LABELS + LENGTH + NUMBERS, rows * ROW), entries={}) as axes:
        for axis, (title, shares) in zip(axes, panels.items(), strict=True):
            axis.set(xlim=(-LABELS / LENGTH, 1 + NUMBERS / LENGTH), ylim=(rows - 0.5, -0.5))
            axis.set_axis_off()
            axis.set_title(title)
            axis.barh(range(len(shares)), list(shares.values()), height=0.7, color=COLOURS[0])
            for row, (name, share) in enumerate(shares.items()):
                axis.text(-0.05, row, name, ha="right", va="center", fontsize=SMALL)
                axis.text(share + 0.04, row, f"{share:.1%}", va="center", fontsize=SMALL)


def draw_spaces(scores: pl.DataFrame, configuration: Configuration, output: Path) -> None:
    """A heat map for each benchmark by aspect and each model with several spaces: a row per space, a column per task.
    Colours go from the lowest to the highest value of a benchmark."""
    models = {name: names_in_spaces(name, entry) for name, entry in configuration.models.items() if entry.spaces}
    benchmarks = {name: of.scored_tasks for name, of in configuration.benchmarks.items() if of.tells_spaces_apart}
    rows, columns = (max(map(len, shown.values()), default=0) for shown in (models, benchmarks))
    size = ((SPACES + columns) * WIDTH, (ASPECTS + rows) * HEIGHT)
    panels = list(product(benchmarks, models))
    with canvas(output, panels=len(panels), size=size, entries={}) as axes:
        for axis, (benchmark, model) in zip(axes, panels, strict=True):
            axis.set(xlim=(-SPACES, columns), ylim=(rows, -ASPECTS))
            axis.set_axis_off()
            axis.set_title(model if len(benchmarks) == 1 else f"{benchmark}: {model}")
            tasks = benchmarks[benchmark]
            metrics = pl.DataFrame([(task.name, task.main_metric) for task in tasks], ["task", "metric"], orient="row")
            named = [name for spaces in models.values() for name in spaces.values()]
            found = scores.filter(pl.col("model").is_in(named), benchmark=benchmark).join(metrics, on=metrics.columns)
            cells = {(name, task): cell for name, task, cell in over_seeds(found, ["model", "task"]).iter_rows()}
            _shade(axis, cells, models[model], tasks)


def _shade(axis: Axes, cells: Mapping[tuple[str, str], str], spaces: Mapping[str, str], tasks: Sequence[Task]) -> None:
    middle: Mapping[str, Any] = {"color": "black", "ha": "center", "va": "center"}
    values = [value for cell in cells.values() if (value := number_in(cell)) is not None]
    norm = Normalize(min(values, default=0), max(values, default=1))
    for column, task in enumerate(tasks):  # the name of a task may begin with that of its benchmark
        aspect = task.name.removeprefix(f"{task.group}_")
        axis.text(column + 0.5, -0.15, aspect, ha="center", va="bottom", fontsize=SMALL)
    for row, (space, model) in enumerate(spaces.items()):
        axis.text(-0.1, row + 0.5, space, ha="right", va="center", fontsize=SMALL)
        for column, task in enumerate(tasks):
            cell = cells.get((model, task.name), "–")
            value = number_in(cell)
            if value is None:  # on the page's own ground
                axis.text(column + 0.5, row + 0.5, cell, ha="center", va="center")
                continue
            axis.add_patch(Rectangle((column + 0.02, row + 0.02), 0.96, 0.96, facecolor=SCALE(norm(value)), lw=0))
            mean, _, deviation = cell.partition(" ± ")
            axis.text(column + 0.5, row + (0.35 if deviation else 0.5), mean, **middle)
            if deviation:
                axis.text(column + 0.5, row + 0.73, f"± {deviation}", fontsize=SMALL, **middle)
