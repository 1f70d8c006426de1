"""The tables of the study on the page about results and in README: `cocite docs study`.

docs/study.csv has the scores of the systems that docs/study.yaml names, and their differences. A page has a table below
each comment that asks for one, such as <!-- study: scores chance hci -->, <!-- study: first later hci --> and
<!-- study: answers loss hci -->. Scores are in percent, for cited / co-cited papers; ± is the standard deviation over
training seeds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from cocite.config.benchmarks.holdout import CITATION_CLASSES
from cocite.config.configuration import results_folder
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import write_text
from cocite.core.tables.files import scan_table

ROOT = Path(__file__).parents[3]
SCORES, SYSTEMS = ROOT / "docs" / "study.csv", ROOT / "docs" / "study.yaml"
PAGES = ("README.md", "docs/results.md")
ASKED = re.compile(r"(<!-- study: ([\w ,.-]+) -->\n)(?:\|.*\n)*")
"""A comment that asks for a table, and the table below it."""
HELD_OUT = {"chance": "by chance", "later": "by time"}
"""The benchmarks of each run."""
RANDOM, MATCHED, SEARCH = "random: MAP", "matched: MAP", "R@20"
MEASURES = {
    RANDOM: ("cite", "cocite", "map"),
    MATCHED: ("cite_matched", "cocite_matched", "map"),
    SEARCH: ("cite_search", "cocite_search", "recall_cap_20"),
    **{each: ("cite_search", "cocite_search", f"recall of {each}") for each in CITATION_CLASSES},
}
"""The measures of a table, with the task of each kind of relevant papers and the metric."""
QUESTION = ["corpus", "benchmark", "task", "metric", "model", "other"]
KEY = [*QUESTION, "seed"]
COLUMNS: dict[str, Any] = dict.fromkeys(QUESTION, pl.String) | {"seed": pl.Int64}
COLUMNS |= dict.fromkeys(["value", "low", "high"], pl.Float64)


def renew(corpora: Sequence[str]) -> None:
    """Renew docs/study.csv from the finished runs on these corpora, and the tables of all pages from it."""
    known = read_scores()
    for corpus in corpora:
        results = results_folder(written_configuration(ROOT / _systems()["runs"][corpus]))
        scored = [benchmark for benchmark in HELD_OUT if (results / "evaluation" / benchmark).is_dir()]
        found = pl.concat([rows for benchmark in scored for rows in scores_of(results, corpus, benchmark)])
        known = pl.concat([known.join(found, on=KEY, how="anti", nulls_equal=True), found])
    write_text(SCORES, known.sort(KEY).write_csv(float_precision=2))
    for page, text in pages().items():
        write_text(ROOT / page, text)


def read_scores() -> pl.DataFrame:
    """What was measured: a score of each model and seed, or, with `other`, by how much it is above the other."""
    return pl.read_csv(SCORES, schema=COLUMNS) if SCORES.exists() else pl.DataFrame(schema=COLUMNS)


def scores_of(results: Path, corpus: str, benchmark: str) -> Iterator[pl.DataFrame]:
    """Scores and differences of a benchmark of a run, as in docs/study.csv."""

    def scanned(table: str, pattern: str) -> pl.DataFrame:
        rows = scan_table(sorted(results.glob(f"evaluation/{benchmark}/{pattern}")), table).to_table()
        return pl.DataFrame(pl.from_arrow(rows)).with_columns(corpus=pl.lit(corpus))

    metrics = {metric for *_, metric in MEASURES.values()}
    by_class = scanned("scores_by_citations", "by_citations/*.parquet").rename({"recall": "value"})
    by_class = by_class.with_columns(metric=pl.format("recall of {}", "citations"))
    for scores in (scanned("scores", "scores/*/*.parquet"), by_class):
        yield _as_declared(scores.filter(pl.col("metric").is_in(metrics)))
    pairs = [pair for asked in _systems()["questions"].values() for pair in asked]
    asked = pl.DataFrame(pairs, schema=["model", "other"], orient="row")
    compared = scanned("comparisons", "comparisons.parquet").filter(pl.col("metric").is_in(metrics))
    named = compared.with_columns(value="difference", low="wide_low", high="wide_high")
    turned = compared.with_columns(model="other", other="model", value=-pl.col("difference"))
    turned = turned.with_columns(low=-pl.col("wide_high"), high=-pl.col("wide_low"))
    for each in (named, turned):
        yield _as_declared(each.join(asked, on=["model", "other"], how="semi"))


def _as_declared(rows: pl.DataFrame) -> pl.DataFrame:
    missing = [pl.lit(None, kind).alias(name) for name, kind in COLUMNS.items() if name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _systems() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(SYSTEMS.read_text(encoding="utf-8"))
    return read


def pages() -> dict[str, str]:
    """The pages with their tables, by their path from the project's root."""
    over_seeds = [pl.col("value").mean(), pl.col("value").std().alias("deviation"), pl.col("low", "high").first()]
    means = read_scores().group_by(QUESTION).agg(over_seeds)
    found = {tuple(row[name] for name in QUESTION): row for row in means.iter_rows(named=True)}

    def with_table(asked: re.Match[str]) -> str:
        kind, of, *corpora = asked[2].split()
        lines = _answer_table(found, of, corpora) if kind == "answers" else _score_table(found, kind, of, corpora)
        return asked[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    return {page: ASKED.sub(with_table, (ROOT / page).read_text(encoding="utf-8")) for page in PAGES}


Found = Mapping[tuple[Any, ...], Mapping[str, Any]]
"""The means over the seeds of docs/study.csv, by what they answer."""


def _score_table(found: Found, kind: str, benchmark: str, corpora: Sequence[str]) -> Iterator[list[str]]:
    """A row for each system that was run: all `scores`, by groups of systems; R@20 of the `first` ones, which README
    names; or R@20 of some by how often a relevant paper is cited in training, of kind `citations`."""
    of_kind, first = {"scores": "systems", "first": "first", "citations": "by citations"}, ""
    systems = _systems()[of_kind[kind]]
    groups: Mapping[str, Mapping[str, str]] = {"": systems}
    if kind == "scores":
        columns = {f"{corpus}, {each}": (corpus, each) for corpus in corpora for each in (RANDOM, MATCHED, SEARCH)}
        labels = {group: of_group.items() for group, of_group in systems.items()}
        groups = {f"**{group}**": {name: f"`{name}`: {of}" for name, of in named} for group, named in labels.items()}
    elif kind == "first":
        columns, first = {corpus: (corpus, SEARCH) for corpus in corpora}, "cited / co-cited papers among the first 20"
    else:
        headings = {"0": "never cited", "over 10": "cited over 10 times"}
        columns = {headings.get(each, f"cited {each} times"): (corpora[0], each) for each in CITATION_CLASSES}
    yield [first, *columns]
    yield ["---"] * (1 + len(columns))
    for group, named in groups.items():
        rows = []
        for name, label in named.items():
            cells = [_cell(found, corpus, benchmark, measure, name) for corpus, measure in columns.values()]
            if any(cells):
                rows.append([label, *cells])
        if group and rows:
            yield [group, *[""] * len(columns)]
        yield from rows


def _answer_table(found: Found, question: str, corpora: Sequence[str]) -> Iterator[list[str]]:
    """The differences between the pairs of a question, in each hold-out of these corpora."""
    measures = [RANDOM, MATCHED, SEARCH]
    yield ["", "corpus", "held out", *measures]
    yield ["---"] * (3 + len(measures))
    for model, other in _systems()["questions"][question]:
        for corpus, benchmark in product(corpora, HELD_OUT):
            cells = [_cell(found, corpus, benchmark, measure, model, other) for measure in measures]
            if any(cells):
                yield [f"`{model}` − `{other}`", corpus, HELD_OUT[benchmark], *cells]


def _cell(found: Found, corpus: str, benchmark: str, measure: str, model: str, other: str | None = None) -> str:
    """Both kinds of relevant papers; empty if neither was measured."""
    *tasks, metric = MEASURES[measure]
    rows = [found.get((corpus, benchmark, task, metric, model, other)) for task in tasks]
    return " / ".join(_number(row) if row and row["value"] is not None else "–" for row in rows) if any(rows) else ""


def _number(row: Mapping[str, Any]) -> str:
    if row["low"] is not None:
        return f"{row['value']:+.1f} ({row['low']:.1f} to {row['high']:.1f})".replace("-", "−")
    deviation = "" if row["deviation"] is None else f" ± {row['deviation']:.1f}"
    return f"{row['value']:.1f}{deviation}"
