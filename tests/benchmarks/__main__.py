"""Measures something beside its rival: `python -m tests.benchmarks NAME .bench`, with what `main` of that module takes.

A parameter with a default is an option. `main` works in a folder of its name in `.bench`, which is new and goes away,
unless the module says that it is `KEPT`. `NAME:FUNCTION` calls another function, in a process that holds nothing else.
"""

import json
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, signature
from typing import Any


def main(name: str, *words: str) -> None:
    """Run a benchmark, or call a function and print what it returns as JSON."""
    module, _, function = name.partition(":")
    measured = import_module(f"tests.benchmarks.{module}")
    called = getattr(measured, function or "main")
    arguments, options = parsed(called, words)
    if function:
        print(json.dumps(called(*arguments, **options), default=str))  # noqa: T201
    elif next(iter(signature(called).parameters)) != "folder" or hasattr(measured, "KEPT"):
        called(*arguments, **options)
    else:
        folder = arguments[0] / module
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        called(folder, *arguments[1:], **options)
        shutil.rmtree(folder)


def parsed(function: Callable[..., Any], words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a function and its options, from the words of a command."""
    parser = ArgumentParser(description=sys.modules[function.__module__].__doc__)
    parameters = signature(function).parameters
    for name, parameter in parameters.items():
        default, option = parameter.default, f"--{name.replace('_', '-')}"
        if default is Parameter.empty:
            several = {"nargs": "+"} if parameter.kind is Parameter.VAR_POSITIONAL else {}
            parser.add_argument(name, type=parameter.annotation, **several)
        elif isinstance(default, bool):
            parser.add_argument(option, action="store_true")
        elif isinstance(default, tuple):
            parser.add_argument(option, nargs="+", type=type(default[0]), default=default)
        else:
            parser.add_argument(option, type=type(default), default=default)
    given = vars(parser.parse_args(words))
    arguments: list[Any] = []
    for name, parameter in parameters.items():
        if parameter.default is Parameter.empty:
            arguments += given.pop(name) if parameter.kind is Parameter.VAR_POSITIONAL else [given.pop(name)]
    return arguments, given


if __name__ == "__main__":
    main(*sys.argv[1:])
