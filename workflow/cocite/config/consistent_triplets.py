"""What a schema cannot say of the sets of triplets: bands, and the graphs and sets that they are sampled from.

Each check takes the configuration with its defaults and raises `InputError`, one sentence that names the key.
"""

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from cocite.ground.errors import InputError

Entry = Mapping[str, Any]


def check_triplets(config: Mapping[str, Any]) -> None:
    """Check every set of triplets; the names that it refers to are known to be declared."""
    for name, entry in config["triplets"].items():
        key = f"Configuration key triplets.{name}"
        if entry.get("easy", 0) > entry.get("per_query", 0):
            raise InputError(f"{key}.easy must not exceed per_query ({entry['per_query']}).")
        check = CHECKS.get(entry["sampler"])
        if check:
            check(key, name, entry, config)


def parts_of_triplets(entry: Entry) -> list[str]:
    """The sets of triplets that a set is made of."""
    of = entry.get("of", [])
    return [of] if isinstance(of, str) else list(of)


def _check_neighbours(key: str, name: str, entry: Entry, config: Mapping[str, Any]) -> None:
    hard = entry["per_query"] - entry["easy"]
    k = config["embeddings"][entry["embedding"]]["neighbours"]["k"]
    positives = _band(key, "positive", entry, entry["per_query"])
    negatives = _band(key, "negative", entry, hard) if hard else None
    if positives and negatives:
        _check_apart(key, entry, positives, negatives, hard)
    for kind, band in (("positive", positives), ("negative", negatives)):
        if band and band[1] > k:
            raise InputError(
                f"{key}.k_{kind} ({band[1]}) must not exceed embeddings.{entry['embedding']}.neighbours.k ({k})."
            )
    if hard and entry.get("distance_negative", inf) <= entry.get("distance_positive", -inf):
        raise InputError(
            f"{key}.distance_negative ({entry['distance_negative']}) must exceed distance_positive "
            f"({entry['distance_positive']}), or hard negatives are as near as positives."
        )
    if not hard and ("k_negative" in entry or "distance_negative" in entry):
        raise InputError(f"{key} has a band of hard negatives, but as many easy negatives as triplets a query.")
    _check_easy(key, entry)


def _check_easy(key: str, entry: Entry) -> None:
    if entry["easy_negatives"] == "sorted-random" and entry["drawn"] < entry["easy"]:
        raise InputError(f"{key}.drawn ({entry['drawn']}) must be at least easy ({entry['easy']}).")
    first, last = entry.get("cluster_ranks", (1, entry["clusters"] - 1))
    if not first <= last < entry["clusters"]:
        raise InputError(
            f"{key}.cluster_ranks ([{first}, {last}]) must rise and stay below clusters ({entry['clusters']})."
        )


def _band(key: str, kind: str, entry: Entry, picked: int) -> tuple[int, int] | None:
    """First and last rank of a band; none where it ends with a distance."""
    by_rank, by_distance = f"k_{kind}", f"distance_{kind}"
    if (by_rank in entry) == (by_distance in entry):
        raise InputError(f"{key} needs exactly one of {by_rank} and {by_distance}.")
    if by_distance in entry:
        return None
    k = entry[by_rank]
    if isinstance(k, list):
        if k[1] - k[0] + 1 < picked:
            raise InputError(f"{key}.{by_rank} ({k}) must hold at least {picked} ranks, as many as are picked.")
        return k[0], k[1]
    if k < picked:
        raise InputError(f"{key}.{by_rank} ({k}) must be at least {_picked(kind)} ({picked}).")
    return k - picked + 1, k


def _picked(kind: str) -> str:
    return "per_query" if kind == "positive" else "per_query − easy"


def _check_apart(key: str, entry: Entry, positives: tuple[int, int], negatives: tuple[int, int], hard: int) -> None:
    if positives[1] >= negatives[1]:
        raise InputError(f"{key}.k_positive ({entry['k_positive']}) must be below k_negative ({entry['k_negative']}).")
    if negatives[0] <= positives[1]:
        raise InputError(
            f"{key}.k_negative ({entry['k_negative']}) must be at least k_positive + hard negatives "
            f"({positives[1]} + {hard}), or the bands overlap."
        )


def _check_citations(key: str, name: str, entry: Entry, config: Mapping[str, Any]) -> None:
    graph = config["graphs"][entry["graph"]]
    if graph["signal"] != "citation" or not graph["directed"]:
        raise InputError(f"{key}.graph: {entry['graph']!r} is not a directed citation graph.")


def _check_cocited(key: str, name: str, entry: Entry, config: Mapping[str, Any]) -> None:
    graph = config["graphs"][entry["graph"]]
    if graph["signal"] != "cocitation":
        raise InputError(f"{key}.graph: {entry['graph']!r} is not a co-citation graph.")
    if entry["min_count"] < graph["min_count"]:
        raise InputError(
            f"{key}.min_count ({entry['min_count']}) must not be below graphs.{entry['graph']}.min_count "
            f"({graph['min_count']}): what is rarer is not in the graph."
        )


def _check_brought(key: str, name: str, entry: Entry, config: Mapping[str, Any]) -> None:
    if "path" in entry:
        path = Path(entry["path"])
        if not (any(path.rglob("*.parquet")) if path.is_dir() else path.is_file()):
            raise InputError(f"{key}.path: {path} is neither a file nor a folder of Parquet files.")
    elif "revision" not in config["queries"] and not Path(config["queries"]["dataset"]).is_dir():
        raise InputError(
            f"{key} has no path, and the published triplets that it takes then need their commit in queries.revision."
        )


def _check_parts(key: str, name: str, entry: Entry, config: Mapping[str, Any]) -> None:
    left = parts_of_triplets(entry)
    found: set[str] = set()
    while left:
        part = left.pop()
        if part not in found:
            found.add(part)
            left += parts_of_triplets(config["triplets"][part])
    if name in found:
        raise InputError(f"{key}.of: a set of triplets must not be a part of itself.")


def _check_subset(key: str, name: str, entry: Entry, config: Mapping[str, Any]) -> None:
    if ("share" in entry) == ("count" in entry):
        raise InputError(f"{key} needs exactly one of share and count.")
    _check_parts(key, name, entry, config)


CHECKS = {
    "neighbours": _check_neighbours,
    "citations": _check_citations,
    "cocited": _check_cocited,
    "file": _check_brought,
    "union": _check_parts,
    "subset": _check_subset,
}
