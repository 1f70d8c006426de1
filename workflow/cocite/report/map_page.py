"""A finished map as data for the page, and its table: agreement of clusters and labels, with published values.

A map is compressed, a part for each model and label; coordinates are whole numbers of 16 bits.
`workflow/report/scripts/map.js` unpacks a part when needed.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cocite.config.configuration import Configuration
from cocite.config.origins import Provenance, generated_benchmarks
from cocite.report.labels import PUBLISHED, rows_or
from cocite.report.map_layout import read_labels
from cocite.report.results import configuration_in, read, read_mapped
from cocite.report.topics import names_of

UNTITLED = "no title"
LARGEST = 65_534
ABSENT = 65_535
"""The value of a paper that a model does not place, and of one in no cluster or without a class."""
UNKNOWN = "unknown"
AGREEMENT = {"homogeneity": "homogeneity", "completeness": "completeness", "v_measure": "V-measure"}
OF_MAG = {"SPECTER": (0.41, 0.72), "SciBERT": (0.19, 0.63)}
"""Homogeneity and completeness against the classes of SciDocs' task MAG (Cohan et al., 2020)."""
MAG = {"scidocs": "mag", "scirepeval": "scidocs_mag"}
"""The name of that task in each kind of benchmark that has it."""


class MapData(NamedTuple):
    """What is on a map."""

    titles: Sequence[str]
    years: Sequence[int | None]
    classes: Mapping[str, Sequence[str | None]]
    layouts: Mapping[str, NDArray[np.float64]]
    """The points of each model (papers × 2), NaN for papers that it does not place."""
    clusters: Mapping[str, Sequence[int | None]]


def read_map(results: Path, configuration: Configuration, name: str) -> MapData:
    """The papers, labels, points and clusters of a map."""
    papers = read(results, "map_papers", map=name)
    labels = read_labels(papers, read(results, "map_labels", map=name))
    mapped = read_mapped(results, configuration, "map_points", name).items()
    placed = {model: papers.join(of, on="document", how="left", maintain_order="left") for model, of in mapped}
    points = pl.col("x", "y").cast(pl.Float64).fill_null(float("nan"))
    return MapData(
        titles=papers["title"].fill_null(UNTITLED).to_list(),
        years=papers["year"].to_list(),
        classes={label: values.to_list() for label, values in labels.items()},
        layouts={model: table.select(points).to_numpy() for model, table in placed.items()},
        clusters={model: table["cluster"].to_list() for model, table in placed.items()},
    )


def by_frequency(classes: Sequence[str | None]) -> list[str]:
    """The classes, the most frequent first."""
    counts = pl.Series(classes, dtype=pl.String).drop_nulls().value_counts()
    return counts.sort(["count", pl.first()], descending=[True, False]).to_series(0).to_list()


def packed(data: MapData) -> dict[str, Any]:
    """A map as plain JSON values. The maps of all models are turned and mirrored onto the first, which changes no
    distance, so that papers move as little as possible if models are switched."""
    first = next(iter(data.layouts.values()), np.empty((0, 2)))
    turned = {name: quantised(aligned(points, first)) for name, points in data.layouts.items()}
    texts = json.dumps({"titles": list(data.titles), "years": list(data.years)}, ensure_ascii=False)
    return {
        "papers": len(data.titles),
        "texts": compressed(texts.encode()),
        "labels": [
            {"name": name, "classes": names, "unknown": UNKNOWN, "values": _packed_numbers(classes, names)}
            for name, classes in data.classes.items()
            for names in [by_frequency(classes)]
        ],
        "models": [
            {
                "name": name,
                "points": compressed(points.T.astype("<u2").tobytes()),  # all x, then all y
                "clusters": _packed_numbers(data.clusters[name]),
                "names": _names(data.titles, data.clusters[name]),
            }
            for name, points in turned.items()
        ],
    }


def aligned(points: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (papers × 2) around their mean, turned and mirrored to be nearest to a reference (Schönemann, 1966)."""
    in_both = np.isfinite(points).all(axis=1) & np.isfinite(reference).all(axis=1)
    if not in_both.any():
        return points
    centred = points - points[in_both].mean(axis=0)
    target = reference[in_both] - reference[in_both].mean(axis=0)
    left, _, right = np.linalg.svd(centred[in_both].T @ target)
    return np.asarray(centred @ left @ right)


def quantised(points: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Points as whole numbers; the longer side of the box around them goes from 0 to `LARGEST`. NaN is `ABSENT`."""
    is_placed = np.isfinite(points).all(axis=1)
    numbers = np.full(points.shape, ABSENT, dtype=np.uint16)
    if is_placed.any():
        low, high = points[is_placed].min(axis=0), points[is_placed].max(axis=0)
        middle, side = (low + high) / 2, max(float((high - low).max()), np.finfo(np.float32).tiny)
        numbers[is_placed] = np.rint(((points[is_placed] - middle) / side + 0.5) * LARGEST).astype(np.uint16)
    return numbers


def _names(titles: Sequence[str], clusters: Sequence[int | None]) -> list[str]:
    """What the clusters of a model are called, by number."""
    numbers = np.array([-1 if number is None else number for number in clusters], np.int64)
    named = names_of([None if title == UNTITLED else title for title in titles], numbers, numbers.max(initial=-1) + 1)
    return [", ".join([f"cluster {at}", *words[:3]]) for at, words in enumerate(named, start=1)]


def _packed_numbers(values: Sequence[Any], names: Sequence[str] | None = None) -> str:
    """Whole numbers, or the places of values among these names."""
    places = None if names is None else {name: place for place, name in enumerate(names)}
    numbers = values if places is None else map(places.get, values)
    filled = [ABSENT if number is None else min(number, LARGEST) for number in numbers]
    return compressed(np.array(filled, dtype="<u2").tobytes())


def compressed(content: bytes) -> str:
    """Bytes as a text that `MapView.numbers` of the page unpacks."""
    return b64encode(gzip.compress(content, mtime=0)).decode()


def agreement_table(name: str, scores: Mapping[str, pl.DataFrame], provenance: Provenance) -> pl.DataFrame:
    """One row per label and model of the map `name`, then published values; `scores` are those of each model."""
    configuration = configuration_in(provenance)
    benchmark = configuration.maps[name].benchmark
    rows = [{"model": model, "source": benchmark, **row} for model, table in scores.items() for row in table.to_dicts()]
    mag = MAG.get(configuration.benchmarks[benchmark].kind)
    if benchmark not in generated_benchmarks(provenance) and any(row["label"] == mag for row in rows):
        for model, (homogeneity, completeness) in OF_MAG.items():
            together = 2 * homogeneity * completeness / (homogeneity + completeness)
            values = zip(AGREEMENT, (homogeneity, completeness, together), strict=True)
            rows.append({"model": model, "source": PUBLISHED, "label": mag, **dict(values)})
    labels = list(dict.fromkeys(row["label"] for row in rows))
    counts = {"clusters": "clusters", "in none": "unclustered", "papers": "papers", "with the label": "labelled"}
    counts |= {"classes": "classes", "without a vector": "missing"}
    shown = [
        {column: row[column] for column in ("model", "label", "source")}
        | {column: "–" if row[key] is None else f"{row[key]:.2f}" for key, column in AGREEMENT.items()}
        | {column: f"{row[key]:,}" if key in row else "–" for column, key in counts.items()}
        for row in sorted(rows, key=lambda row: labels.index(row["label"]))
    ]
    return rows_or(shown, "model")
