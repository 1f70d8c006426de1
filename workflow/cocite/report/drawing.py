"""All figures of the report but the map, from the results that a configuration names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cocite.report import results as read
from cocite.report.figures import draw_link_prediction, draw_pair_counts, draw_validation_curves
from cocite.report.triplet_figures import draw_band_quality, draw_triplets
from cocite.tables.files import read_table


def draw_figures(
    results: Path, configuration: Mapping[str, Any], pairs: Mapping[str, str], counts: Path, output: Path
) -> None:
    """Draw them into a folder; `pairs` names the table of pairs of each graph that is made of them."""
    losses = {name: entry["loss"] for name, entry in configuration["models"].items()}
    draw_pair_counts(pl.DataFrame(read_table(counts, "pair_counts")), pairs, output / "pair_counts.svg")
    draw_validation_curves(read.read_curves(results, configuration), losses, output / "validation_curves.svg")
    draw_link_prediction(read.read_graph_scores(results, configuration), output / "link_prediction.svg")
    draw_band_quality(read.read_bands(results, configuration), output / "band_quality.svg")
    draw_triplets(
        read.read_sets(results, configuration, "collisions"),
        read.read_sets(results, configuration, "triplets_per_query"),
        _last_ranks(configuration),
        output / "triplets.svg",
    )


def _last_ranks(configuration: Mapping[str, Any]) -> dict[str, int]:
    """The last rank of the hard negatives of each set of triplets that takes them by rank."""
    ranks = {name: entry["k_negative"] for name, entry in configuration["triplets"].items() if "k_negative" in entry}
    return {name: rank[-1] if isinstance(rank, list) else rank for name, rank in ranks.items()}
