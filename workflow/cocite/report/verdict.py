"""The verdict of a run: the best systems of each benchmark, by how much, and whether the adjusted test shows it.

The page, the end of a run and `cocite scores` all take words and numbers from `judge`. How any two models differ on
each metric of each task and over tasks is packed for the page, a matrix per question: fifty models on six benchmarks
have more than 100,000 differences.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cocite.config.configuration import Configuration
from cocite.config.runs import UNTRAINED, model_of, names_in_order, numbers_of_seeds, scored_models
from cocite.config.sampler import oracle_models
from cocite.config.tasks import BOTH, Task, without_unions
from cocite.core.atomic import read_json
from cocite.report.labels import mean_cell, measure, with_mode
from cocite.report.results import configuration_in, read_scored, read_summary
from cocite.report.summary import what_is_generated

FORMATS = {"proximity": "ranking candidates", "corpus-search": "whole corpus", "search": "search by title"}
"""Names of the formats of a hold-out's tasks; each has its own board, since different systems are scored on it."""
NONE = np.iinfo(np.int16).min
"""The value of a pair of models that were not compared."""
LEVEL = 0.05
NAMED = 6


def differences(comparisons: pl.DataFrame, configuration: Configuration) -> dict[str, Any]:
    """The models that were compared, their numbers of seeds, and each question: name, items and packed differences. A
    difference is the value of the earlier model minus that of the later one, in hundredths; pairs are in the order of
    `itertools.combinations`. Questions are in the order of the configured benchmarks, then of the tasks' names."""
    compared = set(comparisons["model"]) | set(comparisons["other"])
    models = [name for name in names_in_order(configuration) if name in compared]
    order = list(configuration.benchmarks)
    parts = comparisons.partition_by("benchmark", "task", "metric", "mode", as_dict=True, include_key=False)
    questions = []
    for key in sorted(parts, key=lambda key: (order.index(key[0]), *key[1:])):
        (benchmark, *of), part = key, parts[key]
        question = {"benchmark": benchmark, "measure": measure(*of), "items": part["items"].max()}
        question |= {"detectable": round(float(part["detectable"].median()), 1)}  # type: ignore[arg-type]
        questions.append(question | _packed(part, models, ("wide_low", "wide_high")))
    seeds = numbers_of_seeds(configuration)
    return {"models": models, "seeds": [seeds[name] for name in models], "questions": questions}


def questions_over_tasks(table: pl.DataFrame, models: list[str], configuration: Configuration) -> list[dict[str, Any]]:
    """A question for the tasks of each benchmark in each mode, as configured, and for those of all benchmarks last."""
    order = [*configuration.benchmarks, "all benchmarks"]
    parts = table.partition_by("over", "mode", as_dict=True, include_key=False)
    questions = []
    for over, mode in sorted(parts, key=lambda key: (order.index(key[0]), key[1])):
        part = parts[over, mode]
        fewest, most = min(part["tasks"]), max(part["tasks"])
        remark = f"over {most if fewest == most else f'{fewest} to {most}'} tasks: the interval covers the choice of "
        remark += "tasks, and stars are by Wilcoxon's signed-rank test over the tasks, adjusted for all pairs"
        least = (part["least_p_value"] * part["least_p_value"].rank("max")).min()  # by Holm
        if least >= LEVEL:  # type: ignore[operator]
            remark += f"; so few tasks cannot give a star among {len(part)} pairs, however large the differences are"
        label = with_mode(f"{over}, mean over {'its ' if over in configuration.benchmarks else ''}tasks", mode)
        question = {"benchmark": "over tasks", "measure": label, "remark": remark}
        questions.append(question | _packed(part, models))
    return questions


def _packed(comparisons: pl.DataFrame, models: Sequence[str], further: Sequence[str] = ()) -> dict[str, str]:
    """Difference, low and high of every pair, and the ends of a `further` interval, 16 bits each, the lower byte first;
    and a bit, the lowest first, whether it is sure by its adjusted p-value. Numbers are rounded to tenths, as they are
    shown; a hundredth keeps the sign of one that rounds to zero."""
    names = ["difference", "low", "high", *further]
    value, *ends = comparisons.select(names).to_numpy().T
    intervals = list(zip(ends[::2], ends[1::2], strict=True))
    turned = [-value, *(-end for low, high in intervals for end in (high, low))]
    row, column = (comparisons[of].replace_strict(models, range(len(models))).to_numpy() for of in ("model", "other"))
    rows = np.where(row > column, turned, [value, *ends]).T
    rounded = np.round(100 * np.round(rows, 1)).clip(NONE + 1, -NONE - 1)
    first, second = np.minimum(row, column), np.maximum(row, column)
    pairs = first * len(models) - first * (first + 1) // 2 + second - first - 1  # in the order of `combinations`
    number = comb(len(models), 2)
    packed = np.full((number, len(names)), NONE, dtype="<i2")
    packed[pairs] = np.where(rounded == 0, np.sign(rows), rounded)
    bits = np.zeros(number, dtype=bool)
    bits[pairs] = comparisons["p_adjusted"].to_numpy() < LEVEL
    sure = np.packbits(bits, bitorder="little")
    return {"sure": b64encode(sure.tobytes()).decode(), "packed": b64encode(packed.tobytes()).decode()}


class Gap(NamedTuple):
    """How much a system is above another: the mean over the tasks of both, with its interval."""

    difference: float
    low: float
    high: float
    tasks: int
    better: int
    """Tasks on which the adjusted test shows that it is better."""
    worse: int

    def turned(self) -> "Gap":
        """How much the other is above the one."""
        return Gap(-self.difference, -self.high, -self.low, self.tasks, self.worse, self.better)

    @property
    def is_shown(self) -> bool:
        """Whether the test shows the sign of the difference on most tasks, and the opposite on none."""
        upward = self if self.difference > 0 else self.turned()
        return 2 * upward.better > self.tasks and not upward.worse


class System(NamedTuple):
    """A line of a board."""

    name: str
    kind: str
    """model, index, encoder, baseline, or oracle."""
    sets: Sequence[str]
    """The sets of triplets that a model learned from."""
    score: float
    deviation: float | None
    tasks: int
    gap: Gap | None
    """How much it is above the reference."""
    star: str

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        return f"{self.kind}, set{'s' * (len(self.sets) > 1)} {', '.join(self.sets)}" if self.sets else self.kind


class Board(NamedTuple):
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
    boards = judge(scores, read_summary(results, configuration.benchmarks, "comparisons"), configuration)
    return boards, what_is_generated(provenance)


def judge(scores: pl.DataFrame, comparisons: pl.DataFrame, configuration: Configuration) -> list[Board]:
    """The boards of all benchmarks with scores, as configured. The score of a system is the mean over the tasks of a
    benchmark, by the main metric of each. The difference of two systems is the mean over the tasks that both have, and
    so are the ends of its 95% interval, as if the errors of all tasks had the same direction. A task shows a difference
    by the p-values of the table `comparisons`, which are adjusted for all pairs of a task (Holm, 1979)."""
    boards: list[Board] = []
    for benchmark, entry in configuration.benchmarks.items():
        of_benchmark = [table.filter(benchmark=benchmark) for table in (scores, comparisons)]
        formats: dict[str, list[Task]] = {}
        for task in without_unions(entry.scored_tasks):
            formats.setdefault(task.format if entry.made_by else "", []).append(task)
        for name, tasks in formats.items():
            label = f"{benchmark}, {FORMATS[name]}" if len(formats) > 1 else benchmark
            boards += _board(label, tasks, of_benchmark, configuration)
    return boards


def board_frame(boards: Sequence[Board]) -> pl.DataFrame:
    """The boards as one table, numbers × 100."""
    columns = ["benchmark", "model", "kind", "tasks", "score", "deviation", "star", "reference", "difference", "low"]
    rows = [
        (board.name, each.name, each.kind, each.tasks, each.score, each.deviation, each.star or None)
        + ((board.reference, *each.gap) if each.gap else (None,) * 7)
        for board in boards
        for each in board.systems
    ]
    columns += ["high", "tasks compared", "tasks better", "tasks worse"]
    frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    return frame.with_columns(pl.col(pl.Float64).round(2) + 0.0)


def _board(name: str, tasks: list[Task], tables: list[pl.DataFrame], configuration: Configuration) -> Iterator[Board]:
    """The board of some tasks, in the first of their modes, by scores and comparisons; none if nothing was scored."""
    main = pl.DataFrame([(task.name, task.main_metric) for task in tasks], schema=["task", "metric"], orient="row")
    scores, comparisons = (table.join(main, on=["task", "metric"]) for table in tables)
    [mode] = sorted({*scores["mode"]} - {BOTH})[:1] or [BOTH]
    scores, comparisons = (table.filter(pl.col("mode").is_in([mode, BOTH])) for table in (scores, comparisons))
    found, most, gaps = _means(scores), scores["task"].n_unique(), _gaps(comparisons)
    if not found:
        return
    names = names_in_order(configuration)
    ranked = sorted(found, key=lambda each: (found[each][2] < most, -found[each][0], names.index(each)))
    seeds, oracles = numbers_of_seeds(configuration), oracle_models(configuration)
    kinds = {each: "encoder" if each.startswith(UNTRAINED) else "baseline" for each in ranked}
    kinds |= dict.fromkeys(configuration.indexes, "index")
    kinds |= {each: "oracle" if model_of(each) in oracles else "model" for each in scored_models(configuration)}
    references = [each for each in ranked if found[each][2] == most and kinds[each] in ("encoder", "baseline")]
    chance = {each for each, entry in configuration.baselines.items() if entry.is_chance}
    reference = next((each for each in references if each not in chance), next(iter(references), None))

    def system(each: str) -> System:
        gap = gaps.get((each, reference or ""))
        star = "(*)" if 1 in (seeds[each], seeds.get(reference or "")) else "*"
        model = configuration.models.get(model_of(each))
        sets = () if model is None else model.learns_from
        return System(each, kinds[each], sets, *found[each], gap, star if gap and gap.is_shown else "")

    systems = [system(each) for each in ranked]
    task, metric = scores.select("task", "metric").row(0)
    of_all = f"mean over {most} tasks" if most > 1 else measure(task, metric, BOTH)
    words = list(_words([each for each in systems if each.tasks == most], reference, gaps, configuration))
    yield Board(with_mode(name, mode), of_all, most, reference, systems, words)


def _means(scores: pl.DataFrame) -> dict[str, tuple[float, float | None, int]]:
    """Mean, deviation over training seeds, and number of the tasks that all seeds of a system have, by its name."""
    of_seeds = scores.group_by("model", "task", "seed").agg(pl.col("value").mean())
    complete = of_seeds.filter(pl.len().over("model", "task") == pl.col("seed").n_unique().over("model"))
    of_runs = complete.group_by("model", "seed").agg(pl.col("value").mean(), pl.len().alias("tasks"))
    value = pl.col("value")
    means = of_runs.group_by("model").agg(value.mean(), value.std().alias("deviation"), pl.col("tasks").first())
    return {name: (mean, deviation, tasks) for name, mean, deviation, tasks in means.rows()}


def _gaps(comparisons: pl.DataFrame) -> dict[tuple[str, str], Gap]:
    """How much each system is above each other one."""
    sure = pl.col("difference").filter(pl.col("p_adjusted") < LEVEL)
    means = pl.mean("difference", "wide_low", "wide_high")
    shown = {"better": (sure > 0).sum(), "worse": (sure < 0).sum()}
    of_pairs = comparisons.group_by("model", "other").agg(means, pl.len(), **shown)
    gaps = {(one, other): Gap(*numbers) for one, other, *numbers in of_pairs.rows()}
    return gaps | {(other, one): gap.turned() for (one, other), gap in gaps.items()}


def _words(
    systems: Sequence[System], reference: str | None, gaps: Mapping[tuple[str, str], Gap], configuration: Configuration
) -> Iterator[str]:
    """The verdict on some systems, the best first, which all have the same tasks: a sentence each."""
    model, index = (next((each for each in systems if each.kind == kind), None) for kind in ("model", "index"))
    if model is None and systems:
        yield f"No trained model has a score; the best is {_named(systems[0])}."
    against = {reference or "": "the best reference"}
    if model is not None:
        yield f"The best model is {_named(model)}."
        of_model = against | {f"{UNTRAINED}{configuration.base_encoder(model_of(model.name))}": "its encoder"}
        yield from _differences(model.name, of_model, gaps)
    if index is not None:
        yield f"The best index is {_named(index)}."
        yield from _differences(index.name, ({model.name: "the best model"} if model else {}) | against, gaps)
    for best in filter(None, (model, index)):
        rivals = [each.name for each in systems if each.kind == best.kind and each.name != best.name]
        level = [name for name in rivals if not ((gap := gaps.get((best.name, name))) and gap.is_shown)]
        if level:
            further = f"{len(level) - NAMED} others"
            *first, last = level if len(level) <= NAMED else [*level[:NAMED], further]
            yield f"The test cannot tell {best.name} apart from {', '.join(first)}{' and ' if first else ''}{last}."
        elif rivals:
            yield f"The test shows that {best.name} is above every other {best.kind}."


def _differences(name: str, others: Mapping[str, str], gaps: Mapping[tuple[str, str], Gap]) -> Iterator[str]:
    """A sentence on how much a system is above or below each of some others, if they were compared."""
    for other, what in others.items():
        gap = gaps.get((name, other))
        if gap is None:
            continue
        side, gap = ("above", gap) if gap.difference >= 0 else ("below", gap.turned())
        interval = f"95% interval {gap.low:.1f} to {gap.high:.1f}".replace("-", "−")
        shown = f"shows it on {gap.better or 'none'} of {gap.tasks} tasks"
        if gap.tasks == 1:
            shown = "shows it" if gap.better else "does not show it"
        opposite = f", and the opposite on {gap.worse}" if gap.worse else ""
        yield f"It is {gap.difference:.1f} {side} {other}, {what} ({interval}; the adjusted test {shown}{opposite})."


def _named(system: System) -> str:
    return f"{system.name} with {mean_cell(system.score, system.deviation)}"
