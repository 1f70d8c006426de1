"""A plan in words: a small table, the time of the download, the disk, the jobs to configure, and the next command."""

import shlex
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Annotated

import typer

from cocite.config.configuration import read_configuration
from cocite.config.remaking import program
from cocite.config.source import Source
from cocite.core.words import about, byte_size
from cocite.corpus.release.client import KEY_VARIABLE, has_key
from cocite.corpus.release.plan import KEYS, Need, Plan, plan_corpus

WIDTHS = {"shards": 8, "packed": 12, "downloaded": 12, "ingested": 10, "to download": 13, "as Parquet": 12}
"""Column → characters, in the order of the fields of `Need`; the names of datasets stand before them."""
RATES = (10, 100)
"""Rates of a connection for which the time of the download is given, MB a second."""


def print_plan(
    configfile: Annotated[Path, typer.Option(help="The configuration of the run.")] = Path("config.yaml"),
) -> None:
    """Report what a corpus needs before any of it is fetched: shards, downloads, disk space, and what is there."""
    plan = plan_corpus(read_configuration(configfile, KEYS))
    paragraphs = [
        f"Release {plan.release}, {plan.known_from}:",
        _table(plan.needs) + _time_in_words(plan.needs),
        _disk_in_words(plan),
        plan.source.jobs_in_words({name: need.shards for name, need in plan.needs.items()}),
        *plan.source.remarks(),
        _next_step(plan.source, configfile),
    ]
    typer.echo("\n\n".join(paragraphs))


def _table(needs: Mapping[str, Need]) -> str:
    """A line for each dataset, and one for all of them together."""
    rows = {name: astuple(need) for name, need in needs.items()}
    rows["together"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    texts = {"": WIDTHS, **{name: map(_cell, WIDTHS, row) for name, row in rows.items()}}
    return "\n".join(
        f"{name:<10}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS.values(), strict=True))
        for name, cells in texts.items()
    )


def _time_in_words(needs: Mapping[str, Need]) -> str:
    """How long the download takes, at two rates; nothing where there is none."""
    missing = sum(need.to_download for need in needs.values())
    times = [f"{about(missing / rate / 1e6)} at {rate} MB/s" for rate in RATES]
    return f"\n\nThe download takes {' or '.join(times)}." if missing else ""


def _cell(column: str, value: int) -> str:
    if column in ("shards", "ingested"):
        return str(value)
    return byte_size(value) if value else "-"


def _disk_in_words(plan: Plan) -> str:
    missing = plan.at_peak - plan.there - plan.free
    verdict = f"{byte_size(missing)} too little; pathvars.results can be on another disk" if missing > 0 else "enough"
    peak, end, free = map(byte_size, (plan.at_peak, plan.at_end, plan.free))
    there = f"{byte_size(plan.there)} of it" if plan.there else "nothing of it"
    return (
        f"On the disk: about {peak} at the peak, while citations are merged, and {end} in the end\n"
        f"In {plan.results}: {there} so far, {free} free, {verdict}\n"
        "What becomes Parquet is estimated. Graphs, embeddings and models come on top."
    )


def _next_step(source: Source, configfile: Path) -> str:
    arguments = ["--cores", "all", "--configfile", str(configfile), "--replace-workflow-config", "corpus"]
    command = f"{program('snakemake', Path.cwd())} {shlex.join(arguments)}"
    steps = [f"export {KEY_VARIABLE}=…", command] if source.needs_key and not has_key() else [command]
    return "\n    ".join(
        ["Go on with (--profile slurm in place of --cores all on a cluster; interrupted work resumes)", *steps]
    )
