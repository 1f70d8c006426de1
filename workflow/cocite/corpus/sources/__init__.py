"""Where a corpus comes from: one module a source, with all that is particular to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cocite.corpus.release.client import SCHEMES
from cocite.corpus.release.manifest import Manifest
from cocite.corpus.sources.source import Source


def source_of(config: Mapping[str, Any], results: Path) -> Source:
    """The source that a resolved configuration names."""
    from cocite.corpus.sources.demo import Demo
    from cocite.corpus.sources.directory import Directory
    from cocite.corpus.sources.s2 import S2

    sources: dict[str, type[Source]] = {"s2": S2, "directory": Directory, "demo": Demo}
    return sources[config["corpus"]["source"]](config, results)


def list_release(origin: str, release: str, *, turns: Path) -> Manifest:
    """The manifest of a release, with every dataset that the pipeline needs; `latest` is resolved here and pinned.

    `origin` is the API's base URL, whose rate limit all jobs keep through the file `turns`, or a folder. Raises
    `InputError` for a release that the origin does not have, a dataset that the release lacks, and a key that is
    missing or refused.
    """
    if origin.startswith(SCHEMES):
        from cocite.corpus.sources.s2 import list_api

        return list_api(origin, release, turns=turns)
    from cocite.corpus.sources.directory import list_folder

    return list_folder(Path(origin), release)
