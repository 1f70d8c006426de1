"""The configuration: all that is wrong with it, and what of it the doctor can still go by."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from cocite.config.configuration import resolve_or_explain, written_configuration
from cocite.corpus.release.plan import KEYS
from cocite.ground.errors import InputError
from cocite.people.doctor.finding import Finding

Configuration = Mapping[str, Any]


def examine_configuration(
    configfile: Path,
) -> Generator[Finding, None, tuple[Configuration | None, Configuration | None]]:
    """The findings on a configuration.

    Returns the whole resolved configuration and the part of it that a corpus depends on; none of what is wrong.
    """
    try:
        written = written_configuration(configfile)
    except InputError as error:
        yield Finding("failed", str(error).rstrip("."))
        return None, None
    config, faults = resolve_or_explain(written)
    if not faults:
        yield Finding("ok", f"{configfile} can be run")
        return config, config
    for fault in faults:
        yield Finding("failed", fault.rstrip("."), f"mend it in {configfile}")
    corpus, of_corpus = resolve_or_explain({key: entry for key, entry in written.items() if key in KEYS})
    return None, None if of_corpus else corpus
