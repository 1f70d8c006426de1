"""What jobs ask for: memory and time by the size of their input, and more of both with each attempt.

The comments in the rules give measured peak memory and processor time of a job, its start included, on a machine with
two cores, for generated releases of the given number of papers and for hci (experiments/hci.yaml). The requests are
several times as large. "Bounded" marks a command that is given its memory (`--memory-mb`) and spills to disk rather
than exceed it: its request is a constant. Where an input does not exist yet, Snakemake evaluates the request later.
"""

from math import ceil
from pathlib import Path

from snakemake.resources import Resource

A_DAY = 24 * 60  # minutes: what most clusters grant


def size_mb(paths):
    """Size of a file or of several, MB. A folder counts as the files in it, which Snakemake takes for an empty file."""
    given = [Path(path) for path in ([paths] if isinstance(paths, str) else paths)]
    files = [file for path in given for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if not file.is_dir()) / 1e6


def by_size(least, every=0, **of_inputs):
    """A constant, plus a factor for each MB of the named inputs, or of every input; times the number of the attempt.

    A factor may be a function of the wildcards.
    """

    def asked(wildcards, input, attempt):
        factors = {name: given(wildcards) if callable(given) else given for name, given in of_inputs.items()}
        of_some = sum(factor * size_mb(input[name]) for name, factor in factors.items())
        of_all = every * size_mb(input) if every else 0
        return ceil(least + of_some + of_all) * attempt

    return asked


megabytes = by_size  # of memory
minutes = by_size


def warned(name, asked):
    """A function that gives what a resource does, and warns, once, where a job of this name is granted less of it."""
    said = []

    def amount(wildcards, **given):
        value, granted = asked.evaluate(wildcards, **given).value, workflow.global_resources[asked.name].value
        if isinstance(value, int) and value > granted and not said:
            said.append(value)
            logger.warning(
                f"{name} asks for {value:,} MB of memory, and all jobs together are granted {granted:,} MB (--resources "
                "mem_mb, or MEMORY_MB of make). It is started all the same, and may take more than it is granted."
            )
        return value

    return amount


def warn_of_memory():
    """Let jobs that ask for more memory than there is say so before they start: Snakemake lowers requests in silence."""
    for each in workflow.rules if "mem_mb" in workflow.global_resources else ():
        asked = each.resources.get("mem_mb")
        if asked is not None and asked.is_evaluable():
            each.resources["mem_mb"] = Resource("mem_mb", warned(each.name, asked))
