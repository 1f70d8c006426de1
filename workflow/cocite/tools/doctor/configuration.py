"""The configuration, the folders that it writes to, and the source of its corpus."""

import os
import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from cocite.config.configuration import resolve_or_explain, results_folder
from cocite.config.corpus import Corpus
from cocite.config.folders import folders_of, nearest, obstacle
from cocite.config.settings import entry_of
from cocite.config.source import Source
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.words import byte_size
from cocite.corpus.release.plan import KEYS
from cocite.tools.doctor import TIMEOUT, Finding

LITTLE_ROOM = 10**9
"""Bytes of free space that logs alone may soon fill."""
Configuration = Mapping[str, Any]


def examine_configuration(
    configfile: Path,
) -> Generator[Finding, None, tuple[Configuration | None, Configuration | None]]:
    """The findings on a configuration.

    Returns the resolved configuration and the part of it that the corpus depends on; None for what is wrong.
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
        yield Finding("failed", fault.rstrip("."), f"correct it in {configfile}")
    corpus, of_corpus = resolve_or_explain({key: entry for key, entry in written.items() if key in KEYS})
    return None, None if of_corpus else corpus


def examine_places(config: Configuration) -> Iterator[Finding]:
    """The findings on the folders of results, logs and benchmarks, and on the working folder."""
    folders = {**{f"pathvars.{name}": folder for name, folder in folders_of(config).items()}, "here": Path()}
    for key, folder in folders.items():
        where = f"the working folder {folder.absolute()}" if key == "here" else f"{key}, {folder}"
        reason = obstacle(folder)
        if reason:
            yield Finding(
                "failed", f"{where}: nothing can be written there ({reason})", "change that, or name another folder"
            )
            continue
        free = shutil.disk_usage(nearest(folder)).free
        if free < LITTLE_ROOM:
            yield Finding("warning", f"{where}: {byte_size(free)} free", "make room, or name a folder on another disk")
        else:
            yield Finding("ok", f"{where}: writable, {byte_size(free)} free")


def examine_source(config: Configuration) -> Iterator[Finding]:
    """The findings on the machine that the release comes from, the key that it may ask for, and the disk."""
    answered = key(config)
    yield answered
    if answered.verdict == "ok":
        yield disk(config)


def key(config: Configuration) -> Finding:
    """Whether the machine that the release comes from answers, and accepts the key where it asks for one."""
    import requests

    from cocite.corpus.release.client import KEY_HEADER, KEY_VARIABLE, has_key

    source: Source = entry_of(config["corpus"], Corpus)
    url = source.first_asked(config["release"])
    if url is None:
        return Finding("ok", f"the source {source.source} needs no key")
    if source.needs_key and not has_key():
        to_do = f"run `export {KEY_VARIABLE}=…`; keys are given at https://www.semanticscholar.org/product/api"
        return Finding("failed", f"{KEY_VARIABLE} is not set", to_do)
    headers = {KEY_HEADER: os.environ[KEY_VARIABLE].strip()} if source.needs_key else {}
    where = source.origin(results_folder(config))
    try:
        status = requests.get(
            url, headers=headers, timeout=TIMEOUT, allow_redirects=not source.needs_key, stream=True
        ).status_code
    except (requests.RequestException, ValueError) as error:
        return Finding("failed", f"{where} cannot be reached ({type(error).__name__})", "check the network")
    return _of_status(status, where, config["release"], needs_key=source.needs_key)


def _of_status(status: int, where: str, release: str, *, needs_key: bool) -> Finding:
    """What an answer with this status means."""
    from cocite.corpus.release.client import KEY_VARIABLE

    if not needs_key:
        answers = {
            200: Finding("ok", f"{where} answers, and needs no key"),
            404: Finding(
                "failed", f"{where} has no manifest", "check `corpus.url` and `corpus.format`, or leave out the former"
            ),
        }
    else:
        answers = {
            200: Finding("ok", f"{where} accepts the key"),
            401: Finding("failed", f"{where} refuses the key", f"copy {KEY_VARIABLE} again"),
            403: Finding("failed", f"{where} refuses the key", f"copy {KEY_VARIABLE} again, or ask for a new one"),
            404: Finding("failed", f"{where} has no release {release}", "check `release` and `corpus.api`"),
        }
    return answers.get(status, Finding("warning", f"{where} answers with status {status}", "try again later"))


def disk(config: Configuration) -> Finding:
    """Whether the disk of the results has room for the corpus, as `cocite corpus plan` estimates it."""
    from cocite.corpus.release.plan import plan_corpus

    try:
        plan = plan_corpus(config)
    except InputError as error:
        return Finding("failed", "the corpus cannot be planned", str(error))
    need = max(plan.at_peak - plan.there, 0)
    what = f"disk: {byte_size(plan.free)} free, about {byte_size(need)} needed for the corpus"
    return Finding("ok", what) if plan.free >= need else Finding("failed", what, "put pathvars.results on another disk")
