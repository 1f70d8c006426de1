"""What the stage report writes: how large the corpus is, how often papers are paired, and what the rules took."""

import pyarrow as pa

from cocite.tables.declarations.columns import COUNT, TEXT, Table, required

TABLES = [
    Table(
        name="corpus_statistics",
        path="report/corpus_statistics.parquet",
        description="How large the corpus is that everything else is made from.",
        key=("measure",),
        columns={
            "measure": required(TEXT, "what is counted"),
            "value": required(COUNT, "how many there are"),
        },
        ordered=False,
    ),
    Table(
        name="pair_counts",
        path="report/pair_counts.parquet",
        description="How many pairs of papers are cited together, or cite the same papers, how often.",
        key=("graph", "count"),
        columns={
            "graph": required(TEXT, "name of the graph whose edges the pairs become"),
            "count": required(COUNT, "how often a pair is cited together or, in coupling, cites the same paper"),
            "pairs": required(COUNT, "pairs that are that often"),
        },
    ),
    Table(
        name="costs",
        path="report/costs.parquet",
        description="What the finished jobs of each rule took, each in its last run, and Snakemake beside them.",
        key=("rule",),
        columns={
            "rule": required(
                TEXT,
                "name of the rule; of several that write the same logs, all names; `snakemake` is what starts the jobs",
            ),
            "jobs": required(COUNT, "jobs that were measured"),
            "seconds": required(pa.float64(), "their time together, seconds"),
            "longest_seconds": required(pa.float64(), "time of the longest, seconds"),
            "cpu_seconds": required(pa.float64(), "processor time of all, seconds"),
            "peak_mb": required(pa.float64(), "largest resident memory of one, MB"),
        },
    ),
]
