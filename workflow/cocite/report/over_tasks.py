"""How models differ over tasks, as further questions of the matrix of differences.

A question of this kind has a remark of its own: what its interval and its stars are about, and whether there can be
any stars at all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from cocite.report.differences import LEVEL, packed, sure
from cocite.report.labels import with_mode

GROUP = "over tasks"
"""What these questions stand under."""
REMARK = (
    "over {tasks}: the interval says what other tasks would change, and stars are by Wilcoxon's signed-rank test over "
    "the tasks, with all pairs taken together"
)
NO_STAR = "; so few tasks cannot give a star among {pairs} pairs, however large the differences are"


def questions_over_tasks(
    compared: pl.DataFrame, models: Sequence[str], configuration: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A question for the tasks of each benchmark in each mode, as configured, and for those of all benchmarks last."""
    order = list(configuration["benchmarks"])
    parts = compared.partition_by("over", "mode", as_dict=True, include_key=False)
    ordered = sorted(parts, key=lambda of: (order.index(of[0]) if of[0] in order else len(order), of[1]))
    return [
        {
            "benchmark": GROUP,
            "measure": with_mode(f"{over}, mean over its tasks" if over in order else f"{over}, mean over tasks", mode),
            "remark": _remark(parts[over, mode]),
            "sure": sure(parts[over, mode], models),
            "packed": packed(parts[over, mode], models),
        }
        for over, mode in ordered
    ]


def _remark(part: pl.DataFrame) -> str:
    """Over how many tasks it is; that there can be no star where the smallest p-value of all is too large for one.

    A p-value is raised for the pairs that can have one as small.
    """
    as_small = pl.col("least_p_value").rank("max")
    [(fewest, most, least)] = part.select(
        pl.min("tasks").alias("fewest"), pl.max("tasks").alias("most"), (pl.col("least_p_value") * as_small).min()
    ).rows()
    tasks = f"{most} tasks" if fewest == most else f"{fewest} to {most} tasks"
    has_none = least >= LEVEL
    return REMARK.format(tasks=tasks) + (NO_STAR.format(pairs=len(part)) if has_none else "")
