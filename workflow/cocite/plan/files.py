"""Files of jobs and their options: many from one pattern, those that a user brings, and folders of sharded tables."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake.io import expand as expanded

from cocite.config.entries import as_json

if TYPE_CHECKING:
    from cocite.config.configuration import Configuration
    from cocite.plan.plan import Plan


class StagePlan:
    """What the plans of all stages have."""

    def __init__(self, plan: "Plan") -> None:
        """`plan` has the configuration, and the plans of the other stages."""
        self.plan: Plan = plan
        self.config: Configuration = plan.config
        self.buckets = plan.buckets


def expand(path: str, **wildcards: Any) -> list[str]:
    """A file for every combination of the values of some wildcards."""
    files: list[str] = expanded(path, **wildcards)
    return files


def as_text(entry: Any, *without: str, **further: Any) -> str:
    """An entry as JSON for an option, without some of its keys and with further ones."""
    kept = {key: value for key, value in as_json(entry).items() if key not in without}
    return json.dumps(kept | further, sort_keys=True)


def folders_of(inputs: str) -> Callable[[Any, Any], list[Path]]:
    """The folders of some files, each once: one folder for all files of a sharded table."""

    def folders(wildcards: Any, input: Any) -> list[Path]:
        files: Sequence[str] = [input[inputs]] if isinstance(input[inputs], str) else input[inputs]
        return list(dict.fromkeys(Path(file).parent for file in files))

    return folders


def folders_of_buckets(inputs: str) -> Callable[[Any, Any], list[str]]:
    """The tables among some files: the folder of each sharded one, the file of any other."""

    def tables(wildcards: Any, input: Any) -> list[str]:
        paths = map(Path, input[inputs])
        return sorted({str(path.parent if path.stem.isdigit() else path) for path in paths})

    return tables


def option(name: str, *, of_folder: bool = False) -> Callable[[Any, Any], list[str]]:
    """An option with the path of the input of its name, or the folder of its files; nothing if a job has none."""

    def words(wildcards: Any, input: Any) -> list[str]:
        path = input[name.removeprefix("--")]
        if not path:
            return []
        return [name, str(Path(path[0]).parent if of_folder else path)]

    return words
