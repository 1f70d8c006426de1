"""Screening in a finished run of experiments/synergy-screening.yaml, beside ASReview's default on the same starts.

`python -m tests.benchmarks screening .bench --asreview PYTHON`, where PYTHON is that of a separate environment, since
ASReview 3 needs an older pandas: `python -m venv E && E/bin/pip install "asreview==3.*"`. What ASReview has screened is
kept in the folder.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
from tests.benchmarks.measuring import say

from cocite.core.tables.files import read_table
from cocite.evaluation.comparisons import error_of, interval_of, variance_of_mean
from cocite.evaluation.screening import METRICS, start_of

RIVAL, ASREVIEW = Path(__file__).with_name("rivals.py"), "ASReview (ELAS u4)"


def main(kept: Path, results: str = "results/synergy-screening", asreview: str = "python", starts: int = 30) -> None:
    tables = Path(results, "evaluation/screening")
    folder = kept / "screening"
    folder.mkdir(parents=True, exist_ok=True)
    papers, labels = _labels(tables)
    reviews, screened = folder / "reviews.json", folder / "asreview.jsonl"
    reviews.write_text(json.dumps(_with_texts(tables, papers, labels, starts)), encoding="utf-8")
    # It leaves a cache in the folder that it is called in.
    subprocess.run([asreview, RIVAL, "screen", reviews.name, str(starts), screened.name], check=True, cwd=folder)
    values = _of_run(tables, starts)
    for line in screened.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if found["start"] <= starts:
            places, number = 1 + np.array(found["places"]), len(labels[found["review"]])
            for metric, measure in METRICS.items():
                of = values.setdefault((ASREVIEW, "screening", metric), {})
                of.setdefault(found["review"], []).append(measure(places, number))
    for (model, task, metric), of in sorted(values.items(), key=lambda each: each[0][::-1]):
        means = np.array([np.mean(of[review]) for review in labels])
        low, high = interval_of(float(means.mean()), error_of(variance_of_mean(means)))
        each = ", ".join(f"{mean:.1f}" for mean in means)
        say(f"{metric} {task} {model}: {means.mean():.1f} ({low:.1f} to {high:.1f}); {each}")
    _differences(values, list(labels))


def _labels(tables: Path) -> tuple[dict[str, list[str]], dict[str, list[int]]]:
    """The papers of each review in the order of their names, and their labels."""
    rows = read_table(tables / "judgements.parquet", "judgements").to_pylist()
    judged: dict[str, dict[str, int]] = {}
    for row in rows:
        judged.setdefault(row["query"], {})[row["candidate"]] = row["relevance"]
    papers = {review: sorted(of) for review, of in sorted(judged.items())}
    return papers, {review: [judged[review][paper] for paper in of] for review, of in papers.items()}


def _with_texts(
    tables: Path, papers: Mapping[str, list[str]], labels: Mapping[str, list[int]], starts: int
) -> dict[str, object]:
    texts = {row["document"]: row for row in read_table(tables / "documents.parquet", "documents").to_pylist()}
    return {
        review: {
            "title": [texts[paper]["title"] or "" for paper in of],
            "abstract": [texts[paper]["abstract"] or "" for paper in of],
            "labels": labels[review],
            "starts": [start_of(review, np.array(labels[review]) > 0, seed) for seed in range(1, starts + 1)],
        }
        for review, of in papers.items()
    }


def _of_run(tables: Path, starts: int) -> dict[tuple[str, str, str], dict[str, list[float]]]:
    """The values of each review, by model, task and metric: those of all training seeds and starts."""
    files = str(tables / "outcomes/small/*.parquet")
    rows = duckdb.sql(f"FROM '{files}' WHERE evaluation_seed <= {starts} ORDER BY ALL").fetchall()
    values: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for model, _, _, task, metric, _, _, review, value, *_ in rows:
        values.setdefault((model, task, metric), {}).setdefault(review, []).append(value)
    return values


def _differences(values: Mapping[tuple[str, str, str], Mapping[str, list[float]]], reviews: list[str]) -> None:
    """How much better each is than ASReview, over reviews."""
    for (model, task, metric), of in values.items():
        rival = values[ASREVIEW, "screening", metric]
        if model != ASREVIEW:
            apart = np.array([np.mean(of[review]) - np.mean(rival[review]) for review in reviews])
            low, high = interval_of(float(apart.mean()), error_of(variance_of_mean(apart)))
            better = f"better on {int((apart > 0).sum())} of {len(reviews)} reviews"
            say(f"{metric} {task} {model} - ASReview: {apart.mean():+.1f} ({low:+.1f} to {high:+.1f}), {better}")
