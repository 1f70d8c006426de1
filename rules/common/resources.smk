"""What jobs ask for: memory and time by the size of what they read, and more of either with each attempt.

Comments in the rules tell what was measured, processor time and peak memory of a job on a machine with two cores, start
included, for generated releases of so many papers and for hci (experiments/hci.yaml). Asked for is some times as much.
A command that is told its memory keeps within it whatever it reads, and spills to the disk: its memory is a constant.
Where an input is not made yet, Snakemake asks again once it is.
"""

from math import ceil
from pathlib import Path

A_DAY = 24 * 60  # minutes: what most clusters grant


def size_mb(paths):
    """Size of a file or of several, MB. Snakemake takes a folder for an empty file; here its files count."""
    given = [Path(path) for path in ([paths] if isinstance(paths, str) else paths)]
    files = [file for path in given for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if not file.is_dir()) / 1e6


def by_size(least, every=0, **of_inputs):
    """This much, and so much for each MB of these inputs, or of every input; all of it once more with each attempt."""

    def asked(wildcards, input, attempt):
        of_some = sum(factor * size_mb(input[name]) for name, factor in of_inputs.items())
        of_all = every * size_mb(input) if every else 0
        return ceil(least + of_some + of_all) * attempt

    return asked


megabytes = by_size  # of memory
minutes = by_size
