"""One interface to every sampler: a module of `samplers`, which is asked for the triplets of some queries at a time.

In come the tables that a sampler draws from, the queries and the papers that have a text; out go the table `triplets`
and what was left out. A sampler is a module with `Settings`, a frozen dataclass, and `sample`, which sees a block of
queries and reads its sources from front to back; what it makes of a query depends on the query and the seed alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Protocol, cast

import pyarrow as pa

from cocite.config.choices import check_choice
from cocite.config.settings import parse_settings, settings_as_dict
from cocite.ground.errors import InputError
from cocite.ground.progress import report
from cocite.tables import splits
from cocite.tables.files import write_json, write_omissions, write_table
from cocite.triplets import samplers
from cocite.triplets.sampled import Block, Sampled, read_papers

QUERIES_AT_ONCE = 250_000
"""Queries of a block: some hundred bytes of memory each, against one more reading of the sources a block."""


class Sampler(Protocol):
    """What a module of `samplers` holds."""

    Settings: type[Any]

    def sample(self, block: Block, settings: Any) -> Sampled:
        """The triplets of the queries of a block, and what was left out, by reason."""


def sampler_named(name: str) -> Sampler:
    """The module of a sampler. Raises `InputError`, which names the others, where there is none."""
    check_choice(name, [module.name for module in iter_modules(samplers.__path__)], "--sampler")
    return cast(Sampler, import_module(f"{samplers.__name__}.{name}"))


def sample_triplets(
    sampler: str,
    sources: Sequence[Path],
    *,
    queries: Path,
    papers: Path,
    settings: str,
    seed: int,
    threads: int,
    output: Path,
    omissions: Path,
    written_settings: Path,
) -> None:
    """Write the table `triplets`, what was left out and the settings; `papers` is the folder of the table papers.

    Raises `InputError` where no query could be served.
    """
    module = sampler_named(sampler)
    chosen = parse_settings(module.Settings, settings)
    blocks = _blocks(sources, queries, papers, seed, threads)
    counts: Counter[str] = Counter()
    written = write_table(output, "triplets", _triplets(module, blocks, chosen, counts, output))
    report(f"{written:,} triplets; left out: {_told(counts)}")
    write_omissions(omissions, counts)
    read = list(dict.fromkeys(str(source.parent if source.stem.isdigit() else source) for source in sources))
    write_json(written_settings, {"sampler": sampler, "sources": read, "seed": seed, **settings_as_dict(chosen)})


def _blocks(sources: Sequence[Path], queries: Path, papers: Path, seed: int, threads: int) -> Iterator[Block]:
    asked = splits.read_queries(queries)
    listed = read_papers(papers, queries)
    for first in range(0, len(asked), QUERIES_AT_ONCE):
        some = asked.slice(first, QUERIES_AT_ONCE)
        yield Block(
            queries=some["corpusid"].to_numpy(),
            splits=some["split"],
            papers=listed,
            sources=sources,
            seed=seed,
            threads=threads,
            is_first=first == 0,
        )


def _triplets(
    module: Sampler, blocks: Iterator[Block], settings: Any, counts: Counter[str], output: Path
) -> Iterator[pa.RecordBatch]:
    """The triplets of the blocks one after the other; counts what was left out."""
    written = 0
    for block in blocks:
        sampled = module.sample(block, settings)
        counts.update(sampled.omissions)
        written += len(sampled.triplets)
        yield from sampled.triplets.to_batches()
    if written == 0:
        raise InputError(f"{output}: no query could be served with a triplet ({_told(counts)}).")


def _told(counts: Counter[str]) -> str:
    return "; ".join(f"{reason}: {count:,}" for reason, count in counts.items() if count) or "nothing"
