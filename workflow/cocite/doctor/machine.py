"""The machine that the doctor runs on: Python, libraries, GPU."""

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from cocite.doctor.finding import Finding

LOCK = Path(__file__).parents[3] / "envs" / "lock.txt"


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
    """The libraries that CoCite asks for, beside the versions that the lock has."""
    locked = dict(line.split("==") for line in lock.splitlines() if "==" in line)
    asked = [line for line in metadata.requires("cocite") or () if "extra ==" not in line]
    names = [re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in asked]
    found = {name: _version(name) for name in names if name in locked}
    missing = [name for name, version in found.items() if version is None]
    others = [f"{name} {version}" for name, version in found.items() if version and not _same(version, locked[name])]
    if missing:
        yield Finding("failed", f"libraries missing: {', '.join(missing)}", "run `make run`, which installs them")
    if others:
        yield Finding(
            "warning", f"not as in envs/lock.txt: {', '.join(others)}", "the last digits of results may differ"
        )
    if not missing and not others:
        yield Finding("ok", f"{len(found)} libraries as in envs/lock.txt")


def gpu(*, wanted: bool, on_cluster: bool) -> Finding:
    """Whether PyTorch sees a GPU."""
    import torch

    if torch.cuda.is_available():
        return Finding("ok", f"GPU: {torch.cuda.get_device_name(0)}")
    if wanted and not on_cluster:
        return Finding("warning", "no GPU in sight, which `gpu: true` asks for", "fine-tuning will run on the CPU")
    return Finding("ok", "no GPU here; the nodes have their own" if wanted else "no GPU, and none asked for")


def faiss() -> Finding:
    """Whether FAISS loads, and for what it is built."""
    try:
        import faiss as library
    except ImportError as error:
        return Finding("failed", f"FAISS does not load ({error})", "run `make run`, which installs it")
    device = "GPUs" if hasattr(library, "StandardGpuResources") else "CPUs"
    return Finding("ok", f"FAISS {library.__version__} for {device}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _same(version: str, locked: str) -> bool:
    return version.partition("+")[0] == locked.partition("+")[0]
