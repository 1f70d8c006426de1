"""The checks of `cocite doctor` before a run: the configuration, and the place that it is to run in. `failed` would
stop the run; `warning` may surprise. Nothing is written, and the key is sent to the API's host only."""

import os
import re
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import requests

from cocite.config.configuration import Corpus, resolve_or_explain, results_folder
from cocite.config.folders import folders_of, nearest, obstacle
from cocite.config.settings import entry_of
from cocite.config.source import ApiKey, Source
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.memory import total_memory
from cocite.core.progress import byte_size
from cocite.corpus.release.plan import KEYS, plan_corpus
from cocite.corpus.release.query import NothingMatchesError
from cocite.tools.cluster import TIMEOUT, Configuration, Finding, examine_cluster, least_requests

LOCK = Path(__file__).parents[3] / "envs" / "lock.txt"


def examine(configfile: Path, profile: Path | None, memory_mb: int) -> Iterator[Finding]:
    """All findings on a run with this configuration and, where a profile is given, on that cluster."""
    config, corpus = yield from examine_configuration(configfile)
    yield python(sys.version_info[:2])
    yield from libraries(LOCK.read_text(encoding="utf-8"))
    yield gpu(wanted=bool(config and config["gpu"]), on_cluster=profile is not None)
    yield faiss()
    if profile is None:
        yield memory(config, memory_mb)
    yield from examine_places(corpus or {})
    if corpus:
        yield from examine_source(corpus)
    if profile is not None:
        yield from examine_cluster(profile, config)


def examine_configuration(configfile: Path) -> Generator[Finding, None, list[Configuration | None]]:
    """The findings on a configuration. Returns it, resolved, and its part about the corpus; None for what is wrong."""
    try:
        written = written_configuration(configfile)
    except InputError as error:
        yield Finding("failed", str(error).rstrip("."))
        return [None, None]
    config, faults = resolve_or_explain(written)
    if not faults:
        yield Finding("ok", f"{configfile} can be run")
        return [config, config]
    for fault in faults:
        yield Finding("failed", fault.rstrip("."), f"correct it in {configfile}")
    corpus, of_corpus = resolve_or_explain({key: entry for key, entry in written.items() if key in KEYS})
    return [None, None if of_corpus else corpus]


def examine_places(config: Configuration) -> Iterator[Finding]:
    """The findings on the folders of results, logs and benchmarks, and on the working folder."""
    places = {f"pathvars.{name}, {folder}": folder for name, folder in folders_of(config).items()}
    for where, folder in {**places, f"the working folder {Path.cwd()}": Path()}.items():
        if reason := obstacle(folder):
            what = f"{where}: nothing can be written there ({reason})"
            yield Finding("failed", what, "change that, or name another folder")
        elif (free := shutil.disk_usage(nearest(folder)).free) < 10**9:  # which logs alone may soon fill
            yield Finding("warning", f"{where}: {byte_size(free)} free", "make room, or name a folder on another disk")
        else:
            yield Finding("ok", f"{where}: writable, {byte_size(free)} free")


def examine_source(config: Configuration) -> Iterator[Finding]:
    """The findings on the machine that the release comes from, the key that it may ask for, and the disk."""
    yield (answered := access(config))
    if answered.verdict == "ok":
        yield disk(config)


def access(config: Configuration) -> Finding:
    """Whether the machine that the release comes from answers, and accepts the key where it asks for one."""
    source: Source = entry_of(config["corpus"], Corpus)
    url = source.first_asked(config["release"])
    if url is None:
        return Finding("ok", f"the source {source.source} needs no key")
    needed = source.api_key
    if needed and not needed.is_set:
        to_do = f"run `export {needed.variable}=…`; keys are given at {needed.page}"
        return Finding("failed", f"{needed.variable} is not set", to_do)
    sent: dict[str, Any] = {needed.sent_in: {needed.name: os.environ[needed.variable].strip()}} if needed else {}
    where = source.origin(results_folder(config))
    try:
        status = requests.get(url, timeout=TIMEOUT, allow_redirects=not needed, stream=True, **sent).status_code
    except (requests.RequestException, ValueError) as error:
        return Finding("failed", f"{where} cannot be reached ({type(error).__name__})", "check the network")
    match status, needed:
        case 200, _:
            return Finding("ok", f"{where} {'accepts the key' if needed else 'answers, and needs no key'}")
        case 404, None:
            to_do = "check `corpus.url` and `corpus.format`, or leave out the former"
            return Finding("failed", f"{where} has no manifest", to_do)
        case 404, _:
            return Finding("failed", f"{where} has no release {config['release']}", "check `release` and `corpus.api`")
        case 401 | 403, ApiKey(variable=variable):
            to_do = f"copy {variable} again{', or ask for a new one' if status == 403 else ''}"
            return Finding("failed", f"{where} refuses the key", to_do)
    return Finding("warning", f"{where} answers with status {status}", "try again later")


def disk(config: Configuration) -> Finding:
    """Whether the disk of the results has room for the corpus, as `cocite corpus plan` estimates it."""
    try:
        plan = plan_corpus(config)
    except InputError as error:
        return Finding("failed", "the corpus cannot be planned", str(error))
    need = max(plan.at_peak - plan.there, 0)
    what = f"disk: {byte_size(plan.free)} free, about {byte_size(need)} needed for the corpus"
    return Finding("ok", what) if plan.free >= need else Finding("failed", what, "put pathvars.results on another disk")


def cost_of_papers(config: Configuration) -> list[str]:
    """Sentences on what the papers of a query or list cost. A list is counted; for a query, the API is asked if it
    answers at once and there is a key. Raises `NothingMatchesError`, and `InputError` if a list cannot be read."""
    source: Source = entry_of(config["corpus"], Corpus)
    if source.list_of_papers is None and (answered := access(config)).verdict != "ok":
        return [f"What it costs is not known yet: {answered.what}."]
    try:
        plan = plan_corpus(config)
    except InputError as error:
        if isinstance(error, NothingMatchesError) or source.list_of_papers is not None:
            raise
        return [str(error)]
    return [source.cost_in_words(plan.manifest), f"On the disk, it takes about {byte_size(plan.at_peak)}."]


def python(version: tuple[int, ...]) -> Finding:
    """Whether this Python is new enough."""
    name = f"Python {version[0]}.{version[1]}"
    return Finding("ok", name) if version >= (3, 11) else Finding("failed", name, "use Python 3.11 or newer")


def libraries(lock: str) -> Iterator[Finding]:
    """Whether the libraries that CoCite needs have the locked versions."""
    locked = dict(line.split("==") for line in lock.splitlines() if "==" in line)
    needed = (line for line in metadata.requires("cocite") or () if "extra ==" not in line)
    names = [re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in needed]
    found = {name: _version(name) for name in names if name in locked}
    missing = [name for name, version in found.items() if not version]
    others = [f"{name} {it}" for name, it in found.items() if it and it.partition("+")[0] != locked[name]]
    if missing:
        yield Finding("failed", f"libraries missing: {', '.join(missing)}", "`make run` installs them")
    if others:
        what = f"not as in envs/lock.txt: {', '.join(others)}"
        yield Finding("warning", what, "the last digits of results may differ")
    if not missing and not others:
        yield Finding("ok", f"{len(found)} libraries as in envs/lock.txt")


def gpu(*, wanted: bool, on_cluster: bool) -> Finding:
    """Whether PyTorch sees a GPU."""
    import torch

    if torch.cuda.is_available():
        return Finding("ok", f"GPU: {torch.cuda.get_device_name(0)}")
    if wanted and not on_cluster:
        return Finding("warning", "no GPU found, which `gpu: true` asks for", "fine-tuning will use the CPU")
    return Finding("ok", "no GPU here; the cluster's nodes have their own" if wanted else "no GPU, and none requested")


def faiss() -> Finding:
    """Whether FAISS loads, and whether it is built for GPUs."""
    try:
        import faiss as library
    except ImportError as error:
        return Finding("failed", f"FAISS does not load ({error})", "`make run` installs it")
    device = "GPUs" if hasattr(library, "StandardGpuResources") else "CPUs"
    return Finding("ok", f"FAISS {library.__version__} for {device}")


def memory(config: Configuration | None, granted: int) -> Finding:
    """Whether this machine has the memory that all jobs together may take, and that the largest asks for; both MB."""
    requests = {rule: request["memory_mb"] for rule, request in (least_requests(config) if config else {}).items()}
    rule, most = max(requests.items(), key=lambda request: request[1], default=("", 0))
    total, free = total_memory(), available_memory()
    largest, together = f"memory: {rule} asks for {most} MB", f"memory: jobs may take {granted} MB together"
    if most > total:
        to_do = "use a larger machine, or lower models.<name>.memory_mb if a training asks for it"
        return Finding("failed", f"{largest}, and this machine has {total}", to_do)
    if granted > total:
        to_do = f"run with MEMORY_MB={total * 3 // 4}, or --resources mem_mb={total * 3 // 4}"
        return Finding("failed", f"{together}, and this machine has {total}", to_do)
    if most > granted:
        to_do = f"run with MEMORY_MB={most}; else the job is given less than it needs"
        return Finding("warning", f"{largest}, and all jobs together may take {granted}", to_do)
    if granted > free:
        return Finding("warning", f"{together}, and {free} are free", "close other programs")
    return Finding("ok", f"memory: {free} of {total} MB free, of which jobs may take {granted} together")


def available_memory() -> int:
    """Memory that programs can still allocate, MB."""
    return min(total_memory(), psutil.virtual_memory().available // 10**6)


def _version(name: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return ""
