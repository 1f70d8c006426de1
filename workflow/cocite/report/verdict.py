"""The verdict of a run: what is best on each benchmark, by how much, and whether the adjusted test shows it.

The page, the end of a run and `cocite scores` all take words and numbers from `judge`. The score of a system is the
mean over the tasks of a benchmark, by the main metric of each. The difference of two systems is the mean over the tasks
that both have, and so are the ends of its 95% interval, which is as wide as if the errors of all tasks had the same
direction. Whether a task shows a difference is decided by the p-values of the table `comparisons`, which are adjusted
for all pairs of a task (Holm, 1979).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from cocite.config.configuration import Configuration
from cocite.config.runs import UNTRAINED, model_of, names_in_order, numbers_of_seeds, scored_models
from cocite.config.sampler import oracle_models
from cocite.config.tasks import BOTH, Task, without_unions
from cocite.core.atomic import read_json
from cocite.report.differences import LEVEL
from cocite.report.labels import mean_cell, measure, with_mode
from cocite.report.results import configuration_in, read_scored, read_summary
from cocite.report.summary import what_is_generated

FORMATS = {
    "proximity": "ranking candidates",
    "corpus-search": "searching the whole corpus",
    "search": "searching by title",
}
"""What the formats of the tasks of a hold-out are called; each has a board, since they have other systems."""
NAMED = 6
"""Systems that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How much a system is above another: the mean over the tasks of both, with its interval."""

    difference: float
    low: float
    high: float
    tasks: int
    better: int
    """Tasks on which the adjusted test shows that it is better."""
    worse: int

    @property
    def is_shown(self) -> bool:
        """Whether the test shows the sign of the difference on most tasks, and the opposite on none."""
        agreeing, opposite = (self.better, self.worse) if self.difference > 0 else (self.worse, self.better)
        return 2 * agreeing > self.tasks and not opposite

    def in_words(self) -> str:
        """Its interval, and on how many tasks the test shows its sign."""
        agreeing, opposite = (self.better, self.worse) if self.difference > 0 else (self.worse, self.better)
        shown = f"shows this on {agreeing or 'none'} of {self.tasks} tasks"
        if self.tasks == 1:
            shown = "shows this" if agreeing else "does not show this"
        against = f", and the opposite on {opposite}" if opposite else ""
        interval = f"95% interval {self.low:.1f} to {self.high:.1f}".replace("-", "−")
        return f"({interval}). The adjusted test {shown}{against}."


@dataclass(frozen=True, kw_only=True)
class System:
    """A line of a board."""

    name: str
    kind: str
    """model, index, encoder, baseline, or oracle."""
    about: str
    """What it is, in a few words."""
    score: float
    deviation: float | None
    """Over training seeds."""
    tasks: int
    gap: Gap | None
    """Its difference to the reference."""
    star: str


@dataclass(frozen=True, kw_only=True)
class Board:
    """A benchmark, or the tasks of a format of a hold-out: its systems, the best first, and the verdict in words."""

    name: str
    measure: str
    tasks: int
    reference: str | None
    systems: Sequence[System]
    """Those with scores on all tasks come first."""
    words: Sequence[str]

    @property
    def level(self) -> float:
        """The score of the reference; 0 without one."""
        return next((each.score for each in self.systems if each.name == self.reference), 0.0)

    @property
    def top(self) -> float:
        """The highest score or end of an interval, at which bars end."""
        ends = [self.level + each.gap.high for each in self.systems if each.gap]
        return max(1.0, *(each.score for each in self.systems), *ends)

    @property
    def best(self) -> str | None:
        """The best model, without oracles."""
        return next((each.name for each in self.systems if each.kind == "model" and each.tasks == self.tasks), None)


def read_verdict(results: Path) -> tuple[list[Board], str]:
    """The verdict of a finished run, and what is generated in it, which is empty if nothing is."""
    provenance = read_json(results / "provenance.json")
    configuration = configuration_in(provenance)
    scores = read_scored(results, configuration, "scores")
    boards = judge(scores, read_summary(results, configuration, "comparisons"), configuration)
    return boards, what_is_generated(provenance)


def judge(scores: pl.DataFrame, comparisons: pl.DataFrame, configuration: Configuration) -> list[Board]:
    """The boards of all benchmarks with scores, as configured."""
    boards: list[Board] = []
    for benchmark, entry in configuration.benchmarks.items():
        of_benchmark, compared = (table.filter(benchmark=benchmark) for table in (scores, comparisons))
        formats: dict[str, list[Task]] = {}
        for task in without_unions(entry.scored_tasks):
            formats.setdefault(task.format if entry.made_by else "", []).append(task)
        for name, tasks in formats.items():
            label = f"{benchmark}, {FORMATS.get(name, name)}" if len(formats) > 1 else benchmark
            boards += _board(label, tasks, of_benchmark, compared, configuration)
    return boards


def board_frame(boards: Sequence[Board]) -> pl.DataFrame:
    """The boards as one table, numbers × 100."""
    rows = [
        {
            "benchmark": board.name,
            "model": each.name,
            "kind": each.kind,
            "tasks": each.tasks,
            "score": each.score,
            "deviation": each.deviation,
            "reference": board.reference if each.gap else None,
            **{key: getattr(each.gap, key) if each.gap else None for key in ("difference", "low", "high")},
            **{f"tasks {key}": getattr(each.gap, key) if each.gap else None for key in ("better", "worse")},
            "star": each.star or None,
        }
        for board in boards
        for each in board.systems
    ]
    real = dict.fromkeys(("score", "deviation", "difference", "low", "high"), pl.Float64)
    whole = dict.fromkeys(("tasks", "tasks better", "tasks worse"), pl.Int64)
    names = ("benchmark", "model", "kind", "tasks", "score", "deviation", "reference", "difference", "low", "high")
    schema = {name: (real | whole).get(name, pl.String) for name in (*names, "tasks better", "tasks worse", "star")}
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(pl.Float64).round(2) + 0.0)


def _board(
    name: str, tasks: Sequence[Task], scores: pl.DataFrame, comparisons: pl.DataFrame, configuration: Configuration
) -> Iterator[Board]:
    """The board of some tasks, in the first of their modes; none if nothing was scored."""
    main = pl.DataFrame([(task.name, task.main_metric) for task in tasks], schema=["task", "metric"], orient="row")
    scores = scores.join(main, on=["task", "metric"])
    modes = sorted({*scores["mode"]} - {BOTH})[:1]
    scores, comparisons = (
        table.join(main, on=["task", "metric"]).filter(pl.col("mode").is_in([*modes, BOTH]))
        for table in (scores, comparisons)
    )
    found = _means(scores)
    if not found:
        return
    most = scores["task"].n_unique()
    kinds = {each: _kind(each, configuration) for each in names_in_order(configuration)}
    order = list(kinds)
    ranked = sorted(found, key=lambda each: (found[each][2] < most, -found[each][0], order.index(each)))
    gaps = _gaps(comparisons)
    whole = [each for each in ranked if found[each][2] == most]
    references = [each for each in whole if kinds[each] in ("encoder", "baseline")]
    is_chance = {each for each, entry in configuration.baselines.items() if entry.is_chance}
    reference = next((each for each in references if each not in is_chance), next(iter(references), None))
    seeds = numbers_of_seeds(configuration)
    systems = []
    for each in ranked:
        gap = gaps.get((each, reference)) if reference else None
        star = "(*)" if reference and 1 in (seeds[each], seeds[reference]) else "*"
        systems.append(
            System(
                name=each,
                kind=kinds[each],
                about=_about(each, kinds[each], configuration),
                score=found[each][0],
                deviation=found[each][1],
                tasks=found[each][2],
                gap=gap,
                star=star if gap and gap.is_shown else "",
            )
        )
    task = tasks[0]
    of_all = f"mean over {most} tasks" if most > 1 else measure(task.name, task.main_metric, BOTH)
    words = list(_words([each for each in systems if each.tasks == most], reference, gaps, configuration))
    yield Board(
        name=with_mode(name, modes[0] if modes else BOTH),
        measure=of_all,
        tasks=most,
        reference=reference,
        systems=systems,
        words=words,
    )


def _means(scores: pl.DataFrame) -> dict[str, tuple[float, float | None, int]]:
    """Mean, deviation over training seeds, and number of the tasks that all seeds of a system have, by its name."""
    of_seeds = scores.group_by("model", "task", "seed").agg(pl.col("value").mean())
    complete = of_seeds.filter(pl.len().over("model", "task") == pl.col("seed").n_unique().over("model"))
    of_runs = complete.group_by("model", "seed").agg(pl.col("value").mean(), pl.len().alias("tasks"))
    means = of_runs.group_by("model").agg(
        pl.col("value").mean().alias("mean"), pl.col("value").std().alias("deviation"), pl.col("tasks").first()
    )
    return {name: (mean, deviation, tasks) for name, mean, deviation, tasks in means.rows()}


def _gaps(comparisons: pl.DataFrame) -> dict[tuple[str, str], Gap]:
    """How much each system is above each other one."""
    is_sure = pl.col("p_adjusted") < LEVEL
    of_pairs = comparisons.group_by("model", "other").agg(
        pl.col("difference", "wide_low", "wide_high").mean(),
        pl.len(),
        (is_sure & (pl.col("difference") > 0)).sum().alias("better"),
        (is_sure & (pl.col("difference") < 0)).sum().alias("worse"),
    )
    gaps = {}
    for one, other, value, low, high, tasks, better, worse in of_pairs.rows():
        gaps[one, other] = Gap(difference=value, low=low, high=high, tasks=tasks, better=better, worse=worse)
        gaps[other, one] = Gap(difference=-value, low=-high, high=-low, tasks=tasks, better=worse, worse=better)
    return gaps


def _words(
    systems: Sequence[System],
    reference: str | None,
    gaps: Mapping[tuple[str, str], Gap],
    configuration: Configuration,
) -> Iterator[str]:
    """The verdict on some systems, the best first, which all have the same tasks: a sentence each."""
    best = next((each for each in systems if each.kind == "model"), None)
    if best is None and systems:
        yield f"No trained model has a score; the best is {systems[0].name} with {_score(systems[0])}."
    if best is not None:
        yield f"The best model is {best.name} with {_score(best)}."
        encoder = f"{UNTRAINED}{configuration.base_encoder(model_of(best.name))}"
        for other in dict.fromkeys((reference, encoder)):
            yield from _against(best.name, other, "its encoder" if other == encoder else "the best reference", gaps)
    index = next((each for each in systems if each.kind == "index"), None)
    if index is not None:
        yield f"The best index is {index.name} with {_score(index)}."
        yield from _against(index.name, best.name if best else None, "the best model", gaps)
        yield from _against(index.name, reference, "the best reference", gaps)
    for first in filter(None, (best, index)):
        rivals = [each.name for each in systems if each.kind == first.kind and each.name != first.name]
        level = [name for name in rivals if (gap := gaps.get((first.name, name))) and not gap.is_shown]
        if level:
            yield f"The test cannot tell {first.name} apart from {_listed(level)}."
        elif rivals:
            yield f"The test shows that {first.name} is above every other {first.kind}."


def _against(name: str, other: str | None, what: str, gaps: Mapping[tuple[str, str], Gap]) -> Iterator[str]:
    gap = gaps.get((name, other or ""))
    if gap is not None:
        side = "above" if gap.difference >= 0 else "below"
        if side == "below":
            gap = gaps[other or "", name]
        yield f"It is {gap.difference:.1f} {side} {other}, {what} {gap.in_words()}"


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:NAMED], *([f"{len(names) - NAMED} others"] if len(names) > NAMED else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _score(system: System) -> str:
    return mean_cell(system.score, system.deviation)


def _kind(name: str, configuration: Configuration) -> str:
    if name in scored_models(configuration):
        return "oracle" if model_of(name) in oracle_models(configuration) else "model"
    if name in configuration.indexes:
        return "index"
    return "encoder" if name.startswith(UNTRAINED) else "baseline"


def _about(name: str, kind: str, configuration: Configuration) -> str:
    model = configuration.models.get(model_of(name))
    if model is not None:
        sets = ", ".join(model.learns_from)
        return f"{kind}, {'sets' if ',' in sets else 'set'} {sets}"
    return kind
