"""The folders that a run writes to: whether this user may, and whether there is room."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cocite.config.folders import folders_of, nearest, obstacle
from cocite.ground.words import byte_size
from cocite.people.doctor.finding import Finding

LITTLE_ROOM = 10**9
"""Bytes below which a disk will soon be full, be it of logs alone."""


def examine_places(config: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings on the folders of results, logs and benchmarks, and on the working folder."""
    folders = {**{f"pathvars.{name}": folder for name, folder in folders_of(config).items()}, "here": Path()}
    for key, folder in folders.items():
        where = f"the working folder {folder.absolute()}" if key == "here" else f"{key}, {folder}"
        reason = obstacle(folder)
        if reason:
            yield Finding("failed", f"{where}: nothing can be written there ({reason})", "mend that, or name another")
            continue
        free = shutil.disk_usage(nearest(folder)).free
        if free < LITTLE_ROOM:
            yield Finding("warning", f"{where}: {byte_size(free)} free", "make room, or name a folder on another disk")
        else:
            yield Finding("ok", f"{where}: can be written to, {byte_size(free)} free")
