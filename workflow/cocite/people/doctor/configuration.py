"""The configuration, the folders that it writes to, and the source of its corpus."""

import os
import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from cocite.config.configuration import resolve_or_explain
from cocite.config.folders import folders_of, nearest, obstacle
from cocite.config.yaml_files import written_configuration
from cocite.corpus.release.plan import KEYS
from cocite.ground.errors import InputError
from cocite.ground.words import byte_size
from cocite.people.doctor import TIMEOUT, Finding

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
    """The findings on the key and, where the API accepts it, on the disk."""
    accepted = key(config)
    yield accepted
    if accepted.verdict == "ok":
        yield disk(config)


def key(config: Configuration) -> Finding:
    """Whether the API accepts the key, where the corpus comes from one."""
    import requests

    from cocite.corpus.release.client import KEY_HEADER, KEY_VARIABLE, has_key

    corpus = config["corpus"]
    if corpus["source"] != "s2":
        return Finding("ok", f"the source {corpus['source']} needs no key")
    if not has_key():
        to_do = f"run `export {KEY_VARIABLE}=…`; keys are given at https://www.semanticscholar.org/product/api"
        return Finding("failed", f"{KEY_VARIABLE} is not set", to_do)
    url = f"{corpus['api'].rstrip('/')}/release/{config['release']}/dataset/papers"
    headers = {KEY_HEADER: os.environ[KEY_VARIABLE].strip()}
    try:
        status = requests.get(url, headers=headers, timeout=TIMEOUT, allow_redirects=False).status_code
    except (requests.RequestException, ValueError) as error:
        return Finding("failed", f"{corpus['api']} cannot be reached ({type(error).__name__})", "check the network")
    answers = {
        200: Finding("ok", f"{corpus['api']} accepts the key"),
        401: Finding("failed", f"{corpus['api']} refuses the key", f"copy {KEY_VARIABLE} again"),
        403: Finding("failed", f"{corpus['api']} refuses the key", f"copy {KEY_VARIABLE} again, or ask for a new one"),
        404: Finding(
            "failed", f"{corpus['api']} has no release {config['release']}", "check `release` and `corpus.api`"
        ),
    }
    return answers.get(status, Finding("warning", f"{corpus['api']} answers with status {status}", "try again later"))


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
