"""The machine that the doctor runs on: Python, libraries, GPU, memory."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from cocite.tools.doctor import Finding
from cocite.tools.doctor.asked import asked

LOCK = Path(__file__).parents[4] / "envs" / "lock.txt"
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux states the memory limit of a container, bytes."""


def examine_machine(*, gpu_wanted: bool, on_cluster: bool) -> Iterator[Finding]:
    """The findings on what is installed here."""
    yield python(sys.version_info[:2])
    yield from libraries(LOCK.read_text(encoding="utf-8"))
    yield gpu(wanted=gpu_wanted, on_cluster=on_cluster)
    yield faiss()


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
    missing = [name for name, version in found.items() if version is None]
    versions = {name: version for name, version in found.items() if version}
    others = [f"{name} {it}" for name, it in versions.items() if it.partition("+")[0] != locked[name]]
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


def memory(config: Mapping[str, Any] | None, granted: int) -> Finding:
    """Whether this machine has the memory that all jobs together may take, and that the largest asks for; both MB."""
    requests = {rule: request["memory_mb"] for rule, request in (asked(config) if config else {}).items()}
    rule, most = max(requests.items(), key=lambda request: request[1], default=("", 0))
    total, free = total_memory(), available_memory()
    if most > total:
        what = f"memory: {rule} asks for {most} MB, and this machine has {total}"
        return Finding(
            "failed", what, "use a larger machine, or lower models.<name>.memory_mb if a training asks for it"
        )
    if granted > total:
        what = f"memory: jobs may take {granted} MB together, and this machine has {total}"
        return Finding("failed", what, f"run with MEMORY_MB={total * 3 // 4}, or --resources mem_mb={total * 3 // 4}")
    if most > granted:
        what = f"memory: {rule} asks for {most} MB, and all jobs together may take {granted}"
        return Finding("warning", what, f"run with MEMORY_MB={most}; else the job is given less than it needs")
    if granted > free:
        return Finding(
            "warning", f"memory: jobs may take {granted} MB together, and {free} are free", "close other programs"
        )
    return Finding("ok", f"memory: {free} of {total} MB free, of which jobs may take {granted} together")


def total_memory() -> int:
    """Memory of this machine, or of its container or session, MB."""
    limits = [int(text) for path in LIMITS if (text := _text(path)).isdigit()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits]) // 10**6


def available_memory() -> int:
    """Memory that programs can still allocate, MB."""
    found = re.search(r"^MemAvailable: +(\d+) kB", _text(Path("/proc/meminfo")), flags=re.MULTILINE)
    return min(total_memory(), int(found[1]) * 1024 // 10**6) if found else total_memory()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
