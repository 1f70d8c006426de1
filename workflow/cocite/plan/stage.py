"""Shared code of the plans of the stages: files, options and resources of jobs.

Jobs request memory and time by the size of their input, and more of both with each attempt: several times the measured
peak memory and processor time that the comments in the rules give, on two cores, for generated releases of the given
number of papers and for hci (experiments/hci.yaml). "Bounded" marks a command that spills to disk rather than exceed
its `--memory-mb`: its request is a constant. If an input does not exist yet, Snakemake evaluates the request later.
"""

import json
from collections.abc import Callable, Iterable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from snakemake.logging import logger
from snakemake.resources import Resource

from cocite.config.entries import as_json

if TYPE_CHECKING:
    from cocite.config.configuration import Configuration
    from cocite.plan.plan import Plan

A_DAY = 24 * 60  # minutes: what most clusters grant
PRODUCTS = 3e10  # products of two numbers that a thread computes in a second
PAPER_MB = 4e-4  # what a paper with an abstract takes in its table, MB; others take less
PLANNED = dict[str, float]()  # path → MB of files that may not exist yet, while a run's cost is planned; else empty
Request = Callable[[Any, Any, int], int]  # from wildcards, input and the number of the attempt to megabytes or minutes


class StagePlan:
    """What the plans of all stages have."""

    def __init__(self, plan: "Plan") -> None:
        """`plan` has the configuration, and the plans of the other stages."""
        self.plan: Plan = plan
        self.config: Configuration = plan.config
        self.buckets = plan.buckets


def as_text(entry: Any, *without: str, **further: Any) -> str:
    """An entry as JSON for an option, without some of its keys and with further ones."""
    kept = {key: value for key, value in as_json(entry).items() if key not in without}
    return json.dumps(kept | further, sort_keys=True)


def folders_of(inputs: str) -> Callable[[Any, Any], list[Path]]:
    """The folders of some files, each once: one folder for all files of a sharded table."""

    def folders(wildcards: Any, input: Any) -> list[Path]:
        files = [input[inputs]] if isinstance(input[inputs], str) else input[inputs]
        return list(dict.fromkeys(Path(file).parent for file in files))

    return folders


def folders_of_buckets(inputs: str) -> Callable[[Any, Any], list[str]]:
    """The tables among some files: the folder of each sharded one, the file of any other."""

    def tables(wildcards: Any, input: Any) -> list[str]:
        paths = map(Path, input[inputs])
        return sorted({str(path.parent if path.stem.isdigit() else path) for path in paths})

    return tables


def option(name: str, *, of_folder: bool = False) -> Callable[[Any, Any], list[str]]:
    """An option with the path of the input of its name, or the folder of its files; nothing if a job has none."""

    def words(wildcards: Any, input: Any) -> list[str]:
        path = input[name.removeprefix("--")]
        return [name, str(Path(path[0]).parent if of_folder else path)] if path else []

    return words


def size_mb(paths: str | Path | Iterable[str | Path]) -> float:
    """Size of a file or of several, MB. A folder counts as the files in it, which Snakemake takes for an empty file."""
    planned, there = 0.0, 0
    for path in map(Path, [paths] if isinstance(paths, str | Path) else paths):
        if str(path) in PLANNED:
            planned += PLANNED[str(path)]
        else:
            files = path.rglob("*") if path.is_dir() else [path]
            there += sum(file.stat().st_size for file in files if not file.is_dir())
    return planned + there / 1e6


def whole(amount: float) -> int:
    """A request rounded up; while a cost is planned, the exact one, from which is seen how it grows with the inputs."""
    return cast(int, amount) if PLANNED else ceil(amount)


def by_size(least: Any, every: float = 0, **of_inputs: Any) -> Request:
    """A constant, plus a factor for each MB of the named inputs, or of every input; times the number of the attempt.
    Constant and factors may be functions of the wildcards."""

    def asked(wildcards: Any, input: Any, attempt: int) -> int:
        constant, *factors = (each(wildcards) if callable(each) else each for each in (least, *of_inputs.values()))
        of_some = sum(factor * size_mb(input[name]) for name, factor in zip(of_inputs, factors, strict=True))
        return whole(constant + of_some + (every * size_mb(input) if every else 0)) * attempt

    return asked


megabytes = by_size  # of memory
minutes = by_size


def within_a_day(needed: float, attempt: int) -> int:
    """Minutes, no more than a day at the first attempt: a stopped job resumes."""
    return whole(needed if PLANNED else min(A_DAY, needed)) * attempt


def warn_of_memory(workflow: Any) -> None:
    """Warn of jobs that request more memory than there is, since Snakemake lowers requests silently."""
    for rule in workflow.rules if "mem_mb" in workflow.global_resources else ():
        asked = rule.resources.get("mem_mb")
        if asked is not None and asked.is_evaluable():
            granted = workflow.global_resources["mem_mb"].value
            rule.resources["mem_mb"] = Resource("mem_mb", _warned(rule.name, asked, granted))


def _warned(name: str, asked: Any, granted: int) -> Callable[..., Any]:
    """What a resource gives; it warns once if a job of this name is granted less of it."""
    said = False

    def amount(wildcards: Any, **given: Any) -> Any:
        nonlocal said
        value = asked.evaluate(wildcards, **given).value
        if isinstance(value, int) and value > granted and not said:
            said = True
            logger.warning(
                f"{name} requests {value:,} MB of memory, but all jobs together get {granted:,} MB "
                "(--resources mem_mb, or MEMORY_MB of make). It starts nevertheless, and may exceed that limit."
            )
        return value

    return amount
