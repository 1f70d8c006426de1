"""The report's tables, as text, of the inputs of models, what was checked and left out, and how models were trained."""

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import polars as pl

from cocite.config.configuration import Configuration
from cocite.core.tables.files import read_table
from cocite.plan.recorded import is_configured
from cocite.report.labels import GRAPH_METRICS, RELATIONS, loss_of, rows_or, sets_in_words, with_commas
from cocite.report.published import read_published
from cocite.report.results import read, read_each

SHARES = {"corpus": r"-\d+$", "graph": r"-\d+$", "neighbours": r"_\d+$"}
"""The end of the name of a step that several jobs share, by stage; names of configured entries may end in numbers."""
ANSWERS = "answers of"
"""The column of the table of leaks with the benchmarks whose answers an oracle contains."""
SPLITS = {
    "validation": "validation queries",
    "holdout": "held-out papers",
    "holdout-by-time": "papers held out by time",
    "later": "other papers from the cut on",
    "excluded": "excluded papers",
}
CHECKS = {
    "collision": "colliding {}",
    "no text": "{} papers without text",
    "in benchmark": "papers of {}",
    "not matched": "unmatched ids of {}",
    "served": "queries with {}",
    "false negative": "mined negatives {}",
}
SOURCES = ("embedding", "graph", "of", "benchmark")


def graph_embeddings(scores: Mapping[str, pl.DataFrame], configuration: Configuration) -> pl.DataFrame:
    """Two rows per graph embedding: link prediction on its hold-out after the last epoch, raw and filtered. The
    published values follow if the corpus is Semantic Scholar's; they are for its graph, with raw negatives."""
    rows = []
    for name, table in scores.items():
        last = table.filter(pl.col("epoch") == pl.col("epoch").max())
        row = {"embedding": name, "graph": configuration.embeddings[name].graph, "epochs": str(last["epoch"][0])}
        for filtered in (False, True):
            values = dict(last.filter(filtered=filtered).select("metric", "value").iter_rows())
            shown = {label: f"{values[metric]:.3f}" for metric, label in GRAPH_METRICS.items() if metric in values}
            kind = "filtered" if filtered else "raw"
            rows.append({**row, "held-out edges": f"{last['edges'][0]:,}", "negatives": kind, **shown})
    if rows and configuration.corpus.source == "s2":
        # The table that the published values are from takes the place of a graph.
        published = read_published("link_prediction").rename({"reference": "graph"})
        for row in published.iter_rows(named=True):
            rows.append({name: value for name, value in row.items() if value is not None} | {"negatives": "raw"})
    return rows_or(rows, "embedding", "epochs")


def searches(results: Path, configuration: Configuration) -> pl.DataFrame:
    """The share of the true neighbours that each approximate search finds, and its time and that of the exact one."""
    kinds = {name: entry.neighbours.index.kind for name, entry in configuration.embeddings.items()}
    approximate = [name for name, kind in kinds.items() if kind != "flat"]
    shown = {"queries": ",", "k": ",", "recall": ".3f", "seconds": ".1f", "exact_seconds": ".1f"}
    rows = [
        {"embedding": name, "index": row["index"], "metric": row["metric"]}
        | {column.removesuffix("_seconds"): format(row[column], spec) for column, spec in shown.items()}
        for name, table in read_each(results, "search_quality", "embedding", approximate).items()
        for row in table.iter_rows(named=True)
    ]
    return rows_or(rows, "embedding", "recall")


def band_quality(bands: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Two rows per embedding or walks: the share of the neighbours of some ranks that are related to the query, %."""
    rows, ranks = [], dict[str, int]()
    for (name, table), (column, label) in product(bands.items(), RELATIONS.items()):
        row = {"embedding": name, "neighbours": label}
        for band in table.iter_rows(named=True):
            shown = f"ranks {band['first_rank']}–{band['last_rank']}"
            ranks[shown] = band["last_rank"]
            row[shown] = f"{100 * band[column] / band['papers']:.1f}"
        rows.append(row)
    columns = ["embedding", "neighbours", *sorted(ranks, key=ranks.__getitem__)]
    return pl.DataFrame(rows, schema=columns, orient="row").fill_null("–")


def intents(counts: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per graph: its citations, and the share of them with each intent."""
    rows = []
    for graph, table in counts.items():
        citations, numbers = table["citations"].sum(), table.select("intent", "citations").iter_rows()
        cells = {intent: f"{number / max(citations, 1):.1%} ({number:,})" for intent, number in numbers}
        rows.append({"graph": graph, "citations": f"{citations:,}", **cells})
    return rows_or(rows, "graph")


def triplet_sets(per_query: Mapping[str, pl.DataFrame], checks: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per set of triplets: its size, the queries it serves, and what should not be in it."""
    rows = []
    for name, counts in per_query.items():
        served = counts.filter(pl.col("count") > 0)["queries"].sum()
        row = {
            "triplets": name,
            "number": f"{(counts['count'] * counts['queries']).sum():,}",
            "queries served": f"{served:,} of {counts['queries'].sum():,}",
        }
        for check, part, found, among in checks[name].select("check", "part", "found", "among").rows():
            row[CHECKS[check].format(part)] = f"{found:,} of {among:,}"
        rows.append(row)
    return rows_or(rows, "triplets")


def leaks(results: Path) -> pl.DataFrame:
    """Where excluded papers were looked for, and how many of them were found."""
    numbers = {"rows": "rows", "papers looked for": "kept_out", "papers found": "leaked"}
    found = read(results, "leaks")
    written = {name: with_commas(of) for name, of in numbers.items()}
    if "answers_of" in found.columns and not found["answers_of"].is_null().all():
        written[ANSWERS] = pl.col("answers_of").fill_null("–")
    return found.select(table="path", column="column_name", **written)


def leaks_by_text(results: Path) -> pl.DataFrame:
    """What training reads of the papers that are kept out, of validation queries and of benchmarks."""
    counts = {"number": "texts", "by id": "by_id", "by twin": "by_twin", "by title": "by_title"}
    counts["title too common"] = "common_title"
    of = pl.when(pl.col("kind") == "benchmark").then("documents of " + pl.col("name"))
    return read(results, "leaks_by_text").select(
        of.otherwise(pl.col("name").replace(SPLITS)).alias("looked for"),
        *(with_commas(count).alias(name) for name, count in counts.items()),
        pl.col("examples").list.join("; ").alias("for example"),
    )


def omissions(results: Path, configuration: Configuration) -> pl.DataFrame:
    """What all configured steps left out, by step and reason; the jobs of one, per shard or bucket, count together."""
    rows = [
        {"stage": path.parts[-3], "step": re.sub(SHARES.get(path.parts[-3], "$"), "", path.stem), **row}
        for path in sorted(results.glob("*/omissions/*.parquet"))
        if is_configured({"stage": path.parts[-3], "step": path.stem}, configuration)
        for row in read_table(path, "omissions").to_pylist()
        if row["count"]
    ]
    schema = dict.fromkeys(("stage", "step", "reason"), pl.String) | {"count": pl.Int64}
    counted = pl.DataFrame(rows, schema=schema).group_by("stage", "step", "reason", maintain_order=True)
    return counted.agg(pl.col("count").sum())


def leaks_in_words(found: pl.DataFrame) -> str:
    """The table of leaks in one sentence."""
    numbers = [int(number.replace(",", "")) for number in found["papers found"]]
    tables = found["table"].n_unique()
    searched = f"{len(found)} columns of {tables} tables were searched for papers that are kept out"
    said = f"{searched}: {sum(numbers):,} were found." if sum(numbers) else f"{searched}, and none was found."
    if ANSWERS not in found.columns:
        return said
    given_away = found.filter(pl.col(ANSWERS) != "–")
    answers, tables = ", ".join(given_away[ANSWERS].unique().sort()), given_away["table"].n_unique()
    return f"{said} Tables of oracles, which contain the answers of {answers} on purpose: {tables}."


def trained_models(configuration: Configuration) -> pl.DataFrame:
    """One row per model: what it learns from, what it starts from, and how it is trained."""
    rows = []
    for name, entry in configuration.models.items():
        learned = [configuration.triplets[of] for of in entry.learns_from]
        sources = [next(filter(None, (getattr(of, key, None) for key in SOURCES)), "–") for of in learned]
        named = dict.fromkeys(each if isinstance(each, str) else ", ".join(each) for each in sources)
        row = {
            "model": name,
            "triplets": sets_in_words(entry),
            "sampler": ", ".join(dict.fromkeys(each.sampler for each in learned)),
            "sampled from": ", ".join(named),
            "encoder": entry.from_ or entry.encoder,
            "loss": loss_of(entry),
            "weights that learn": entry.trainable.kind,
            "epochs": str(entry.epochs),
            "training seeds": ", ".join(map(str, entry.seeds)),
        }
        rows.append(row)
    return rows_or(rows, "model")
