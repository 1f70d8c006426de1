"""What the page says of a run: what was trained on what, what is generated, and what it took."""

import re
import time
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from cocite.config.configuration import Configuration
from cocite.config.origins import corpus_in_words, encoder_in_words, generated_benchmarks, has_generated_corpus
from cocite.config.runs import scored_in
from cocite.config.started import Start, is_alive
from cocite.core.progress import clock_time, last_usage
from cocite.core.tables.files import write_table
from cocite.report.results import configuration_in

KINDS = {
    "holdout": "papers held out of everything",
    "aspects": "aspects of the citations of papers held out",
    **{name.lower(): name for name in ("SciRepEval", "SciDocs", "MDCR", "BEIR", "S2AND", "CSFCube", "LitSearch")},
    "doris_mae": "DORIS-MAE",
}
"""What each known kind of benchmark is called; others go by the name of their kind."""

SNAKEMAKE = "snakemake"
"""The row of the table `costs` for the process that starts the jobs; no rule has this name."""
OF_ALL = "all together"
SCHEMA = {"rule": pl.String} | dict.fromkeys(("seconds", "cpu_seconds", "peak_mb", "ended"), pl.Float64)


def what_is_generated(provenance: Mapping[str, Any]) -> str:
    """What is generated, and what that means for the scores, in sentences; empty if it concerns none of them."""
    configuration, made_up = configuration_in(provenance), generated_benchmarks(provenance)
    real = [name for name in configuration.benchmarks if name not in made_up]
    made_up_ones, real_ones = (f"the benchmark{'s' * (len(of) > 1)} {' and '.join(of)}" for of in (made_up, real))
    is_corpus = has_generated_corpus(provenance)
    built = any(entry.is_built for entry in configuration.encoders.values())
    of_corpus = any(entry.trained_on for entry in configuration.baselines.values())
    learns = bool(not configuration.benchmarks or configuration.models or built or of_corpus)
    parts = ["the corpus with its citations"] if is_corpus and (learns or made_up) else []
    if made_up:
        parts.append(made_up_ones)
    if not parts:
        return ""
    said = [f"A program made up {' and '.join(parts)}: no such papers exist."]
    if not real:
        said += ["The scores show that the pipeline works.", "They say nothing about real papers,"]
        return f"{' '.join(said)} and are not compared with published scores."
    if made_up:
        said.append(f"The scores on {made_up_ones} say nothing about real papers.")
    said.append(f"The documents of {real_ones} are not generated.")
    if is_corpus and learns:
        said.append("What this run trained learned from generated papers, also if it is scored on those documents.")
    return " ".join(said)


def facts(
    provenance: Mapping[str, Any],
    statistics: pl.DataFrame,
    costs: pl.DataFrame,
    seconds_at_work: float,
    trained_in: Mapping[str, str],
) -> dict[str, str]:
    """The run in a few lines, by what each is about; `trained_in` has the precision that each model was trained in."""
    configuration, machine = configuration_in(provenance), provenance["machine"]
    generated = generated_benchmarks(provenance)
    counted = dict(statistics.select("measure", "value").iter_rows())
    largest = costs.filter(pl.col("rule") != SNAKEMAKE).sort("peak_mb", "rule").rows(named=True)[-1:]
    lines = {
        "Corpus": f"{corpus_in_words(provenance)}; release {provenance['release']}, {counted['papers']:,} papers "
        f"({counted['papers with text']:,} with text), {counted['citations']:,} citations",
        "Models": _models_in_words(configuration),
        "Base encoders": "; ".join(f"{name}: {encoder_in_words(name, provenance)}" for name in configuration.encoders),
        "Baselines": "; ".join(
            name if name == entry.kind else f"{name}: {entry.kind}" for name, entry in configuration.baselines.items()
        ),
        "Benchmarks": "; ".join(
            f"{name}: {KINDS.get(entry.kind, entry.kind)} ({len(entry.scored_tasks)} "
            f"task{'s' if len(entry.scored_tasks) > 1 else ''}{', generated' if name in generated else ''})"
            for name, entry in configuration.benchmarks.items()
        ),
        "Precision": _precision_in_words(configuration, trained_in),
        "Time (h:mm:ss)": f"{clock_time(seconds_at_work)} from start to end, without pauses",
        "Processor time": f"{clock_time(sum(costs['cpu_seconds']))} of all steps together",
        "Largest memory": "".join(f"{row['peak_mb']:,.0f} MB, a job of the rule {row['rule']}" for row in largest),
        "Machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory_mb'] / 1000:.0f} GB of memory, "
        + (", ".join(machine["gpus"]) or "no GPU"),
    }
    return {name: text for name, text in lines.items() if text}


def _models_in_words(configuration: Configuration) -> str:
    seeds = [entry.seeds for entry in configuration.models.values()]
    if not seeds:
        return "none were trained"
    if len(set(seeds)) > 1:
        used = ", ".join(map(str, sorted({seed for of_model in seeds for seed in of_model})))
        return f"{len(seeds)}, in {sum(map(len, seeds))} trainings with the seeds {used}"
    each = "each " if len(seeds) > 1 else ""
    plural = "s" if len(seeds[0]) > 1 else ""
    return f"{len(seeds)}, {each}trained with seed{plural} {', '.join(map(str, seeds[0]))}"


def _precision_in_words(configuration: Configuration, trained_in: Mapping[str, str]) -> str:
    """What encoders computed in when documents were embedded, and when models were trained."""
    if not configuration.encoders:
        return ""
    models = {number: [name for name, used in trained_in.items() if used == number] for number in trained_in.values()}
    if len(models) > 1:
        trained = "; trained: " + "; ".join(f"{', '.join(names)} in {number}" for number, names in models.items())
    else:
        trained = "".join(f"; models were trained in {number}" for number in models)
    return f"documents of benchmarks were embedded in {scored_in(configuration)}{trained}"


def read_jobs(logs: Mapping[str, str], start: Start | None) -> pl.DataFrame:
    """The last run of each finished job, and Snakemake if it runs on this machine; `ended` is by the system's clock.
    `logs` is the path of each rule's logs, with names in braces; `start` is the current run."""
    rules: dict[str, list[str]] = {}
    for rule, path in logs.items():
        rules.setdefault("*".join(map(escape, re.split(r"\{[^}]*\}", path))), []).append(rule)
    counted, rows = set[Path](), []
    # A log that two patterns match belongs to the rule whose pattern is longer.
    for pattern, names in sorted(rules.items(), key=lambda item: -len(item[0].replace("*", ""))):
        root = Path(Path(pattern).anchor)
        found = set(root.glob(str(Path(pattern).relative_to(root)))) - counted
        counted |= found
        for file in sorted(found):
            if took := last_usage(file):
                rows.append({"rule": " or ".join(sorted(names)), **vars(took), "ended": file.stat().st_mtime})
    if start is not None and is_alive(start):
        process, now = psutil.Process(start.process), time.time()
        used = process.cpu_times()
        of_process = {"seconds": now - process.create_time(), "cpu_seconds": used.user + used.system}
        rows.append({"rule": SNAKEMAKE, **of_process, "peak_mb": process.memory_info().rss / 1e6, "ended": now})
    return pl.DataFrame(rows, schema=SCHEMA)


def write_costs(jobs: pl.DataFrame, output: Path) -> None:
    """Write the table `costs`."""
    times = {"seconds": pl.sum("seconds"), "longest_seconds": pl.max("seconds"), "cpu_seconds": pl.sum("cpu_seconds")}
    costs = jobs.group_by("rule").agg(jobs=pl.len().cast(pl.Int64), **times, peak_mb=pl.max("peak_mb"))
    write_table(output, "costs", costs.sort("rule").to_arrow())


def time_at_work(jobs: pl.DataFrame) -> float:
    """Seconds in which Snakemake or at least one job ran; pauses between two starts of a run do not count."""
    seconds, until = 0.0, 0.0
    for start, end in jobs.select(start=pl.col("ended") - pl.col("seconds"), end="ended").sort("start").rows():
        seconds += max(0.0, end - max(start, until))
        until = max(until, end)
    return seconds


def costs_of_rules(costs: pl.DataFrame, seconds_at_work: float) -> pl.DataFrame:
    """The table `costs` as text, the rule that took the longest first and all of them, in parallel, last."""
    of_rules = pl.col("rule") != SNAKEMAKE
    number, longest = pl.col("jobs").filter(of_rules).sum(), pl.col("longest_seconds").filter(of_rules).max()
    times = {"seconds": pl.lit(seconds_at_work), "longest_seconds": longest, "cpu_seconds": pl.sum("cpu_seconds")}
    of_all = costs.select(rule=pl.lit(OF_ALL), jobs=number, **times, peak_mb=pl.max("peak_mb"))
    rows = pl.concat([costs.select(of_all.columns).sort("seconds", "rule", descending=[True, False]), of_all])
    shown = {
        "jobs": ("jobs", "{:,}".format),
        "time": ("seconds", clock_time),
        "longest job": ("longest_seconds", clock_time),
        "processor time": ("cpu_seconds", clock_time),
        "largest memory, MB": ("peak_mb", "{:,.0f}".format),
    }
    cells = {name: pl.col(of).map_elements(to_text, return_dtype=pl.String) for name, (of, to_text) in shown.items()}
    return rows.select("rule", **cells)
