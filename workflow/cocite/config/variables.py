"""Variables of the environment, and ~ for the user's home, in the paths of a configuration."""

import os
from pathlib import Path
from typing import Any

from cocite.ground.errors import InputError

TAKEN = "{}<>"
"""What Snakemake reads as wildcards and path variables."""

Places = list[tuple[Any, Any, str]]
"""Paths: what holds each, under which name or number, and the key that a message names."""


def fill_in_variables(config: dict[str, Any]) -> list[str]:
    """Fill in the variables in all paths but those of `pathvars`, which Snakemake reads; return what is wrong there."""
    faults = []
    for entry, name, key in _places(config):
        try:
            entry[name] = _filled_in(entry[name], key)
        except InputError as error:
            faults.append(str(error))
    for name, path in config.get("pathvars", {}).items():
        try:
            _check_characters(path, f"pathvars.{name}")
        except InputError as error:
            faults.append(str(error))
    return faults


def _places(config: dict[str, Any]) -> Places:
    places: Places = [
        (config["corpus"], "path", "corpus.path"),
        (config["corpus"], "base", "corpus.base"),
        (config["queries"], "path", "queries.path"),
        (config["queries"], "dataset", "queries.dataset"),
        *((entry, "model", f"encoders.{name}.model") for name, entry in config["encoders"].items()),
        *((entry, "path", f"triplets.{name}.path") for name, entry in config["triplets"].items()),
        *((entry, "folder", f"benchmarks.{name}.folder") for name, entry in config["benchmarks"].items()),
    ]
    excluded: Places = [(config["exclude"], number, f"exclude[{number}]") for number in range(len(config["exclude"]))]
    return [place for place in places if place[1] in place[0]] + excluded


def _filled_in(path: str, key: str) -> str:
    filled = os.path.expandvars(path)
    if "$" in filled:
        raise InputError(f"Configuration key {key} is {filled!r}, but that variable is not set.")
    _check_characters(filled, key)
    return _below_home(filled, key) if filled.startswith("~") else filled


def _check_characters(path: str, key: str) -> None:
    """Raise `InputError` for a path with a character that Snakemake takes for something else, or no file can have."""
    for character in path:
        if character in TAKEN or not character.isprintable():
            raise InputError(
                f"Configuration key {key} is {path!r}; a path must not have the character {character!r}, so rename it."
            )


def _below_home(path: str, key: str) -> str:
    try:
        return str(Path(path).expanduser())
    except RuntimeError:
        raise InputError(f"Configuration key {key} is {path!r}, but there is no such home; write it out.") from None
