"""A plan in words: a small table, the disk, the number of jobs to configure, and the command to continue with."""

import shlex
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from cocite.config.corpus import Corpus
from cocite.config.remaking import program
from cocite.config.settings import entry_of
from cocite.config.source import Source
from cocite.corpus.release.client import KEY_VARIABLE, has_key
from cocite.corpus.release.plan import Need, Plan
from cocite.ground.words import byte_size

WIDTHS = {"shards": 8, "packed": 12, "downloaded": 12, "ingested": 10, "to download": 13, "as Parquet": 12}
"""Column → characters, in the order of the fields of `Need`; the names of datasets stand before them."""


def describe(plan: Plan, config: Mapping[str, Any], configfile: Path) -> str:
    """What `cocite corpus plan` prints."""
    source: Source = entry_of(config["corpus"], Corpus)
    paragraphs = [
        f"Release {plan.release}, {plan.known_from}:",
        _table(plan.needs),
        _disk(plan),
        source.jobs_in_words({name: need.shards for name, need in plan.needs.items()}),
        _next_step(source, configfile),
    ]
    return "\n\n".join(paragraphs)


def _table(needs: Mapping[str, Need]) -> str:
    """A line for each dataset, and one for all of them together."""
    rows = {name: astuple(need) for name, need in needs.items()}
    rows["together"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    texts = {"": WIDTHS, **{name: map(_cell, WIDTHS, row) for name, row in rows.items()}}
    return "\n".join(
        f"{name:<10}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS.values(), strict=True))
        for name, cells in texts.items()
    )


def _cell(column: str, value: int) -> str:
    if column in ("shards", "ingested"):
        return str(value)
    return byte_size(value) if value else "-"


def _disk(plan: Plan) -> str:
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
