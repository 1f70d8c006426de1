"""A map as the page holds it: compressed, a part for each model and label, so that ten thousand papers stay light.

Coordinates are whole numbers of 16 bits: a 65,535th of the map is finer than a pixel. The script
`workflow/report/scripts/map.js` unpacks a part when it is asked for.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

LARGEST = 65_534
ABSENT = 65_535
"""Stands for a paper that a model does not place, and for one in no cluster or without a class."""
UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class MapData:
    """What is on a map."""

    titles: Sequence[str]
    years: Sequence[int | None]
    classes: Mapping[str, Sequence[str | None]]
    """The class of each paper by each label."""
    layouts: Mapping[str, NDArray[np.float64]]
    """The points of each model (papers × 2), NaN where it does not place a paper."""
    clusters: Mapping[str, Sequence[int | None]]
    """The cluster of each paper on the map of each model."""


def packed(data: MapData) -> dict[str, Any]:
    """A map as plain JSON values.

    The maps of all models are turned and mirrored onto the first, which changes no distance: so papers move no farther
    than they must where models are switched.
    """
    first = next(iter(data.layouts.values()), np.empty((0, 2)))
    turned = {name: aligned(points, first) for name, points in data.layouts.items()}
    return {
        "papers": len(data.titles),
        "texts": _compressed(json.dumps({"titles": list(data.titles), "years": list(data.years)}, ensure_ascii=False)),
        "labels": [_packed_label(name, classes) for name, classes in data.classes.items()],
        "models": [
            {"name": name, "points": _packed_points(points), "clusters": _packed_numbers(data.clusters[name])}
            for name, points in turned.items()
        ],
    }


def aligned(points: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (papers × 2) around their mean, turned and mirrored so that they lie nearest to those of a reference.

    Orthogonal Procrustes (Schönemann, 1966), over the papers that both place.
    """
    in_both = np.isfinite(points).all(axis=1) & np.isfinite(reference).all(axis=1)
    if not in_both.any():
        return points
    centred = points - points[in_both].mean(axis=0)
    target = reference[in_both] - reference[in_both].mean(axis=0)
    left, _, right = np.linalg.svd(centred[in_both].T @ target)
    turned: NDArray[np.float64] = centred @ left @ right
    return turned


def quantised(points: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Points as whole numbers from 0 to `LARGEST`: the longer side of the box around them has all, the other its share
    in the middle. Points that are not there are `ABSENT`."""
    is_there = np.isfinite(points).all(axis=1)
    numbers = np.full(points.shape, ABSENT, dtype=np.uint16)
    if is_there.any():
        low, high = points[is_there].min(axis=0), points[is_there].max(axis=0)
        middle, side = (low + high) / 2, max(float((high - low).max()), np.finfo(np.float32).tiny)
        numbers[is_there] = np.rint(((points[is_there] - middle) / side + 0.5) * LARGEST).astype(np.uint16)
    return numbers


def _packed_points(points: NDArray[np.float64]) -> str:
    """All x, then all y."""
    return _compressed(quantised(points).T.astype("<u2").tobytes())


def _packed_label(name: str, classes: Sequence[str | None]) -> dict[str, Any]:
    """The classes by how frequent they are, and the number of each paper's."""
    counts = (
        pl.Series(classes, dtype=pl.String)
        .drop_nulls()
        .value_counts()
        .sort(["count", pl.first()], descending=[True, False])
    )
    names = counts.to_series(0).to_list()
    numbers = {value: number for number, value in enumerate(names)}
    return {
        "name": name,
        "classes": names,
        "unknown": UNKNOWN,
        "values": _packed_numbers([None if value is None else numbers[value] for value in classes]),
    }


def _packed_numbers(numbers: Sequence[int | None]) -> str:
    filled = [ABSENT if number is None else min(number, LARGEST) for number in numbers]
    return _compressed(np.array(filled, dtype="<u2").tobytes())


def _compressed(content: str | bytes) -> str:
    raw = content.encode() if isinstance(content, str) else content
    return b64encode(gzip.compress(raw, mtime=0)).decode()
