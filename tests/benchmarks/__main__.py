"""Measures something beside its rival: `python -m tests.benchmarks NAME .bench`, with what the function NAME takes.

It is `main` in a file of that name, or a function in a file of its stage. A parameter with a default is an option. One
whose first parameter is `folder` works in a folder of its name in `.bench`, which is new and goes away; `kept` is
`.bench` itself. `FILE:FUNCTION` calls another function, in a process that holds nothing else.
"""

import json
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

STAGES = {
    "baselines": "baselines brought",
    "corpus": "ingest works merge",
    "engines": "engines warm_start engine_memory large_graph",
    "engine_quality": "engine_quality walks_quality",
    "importing": "importing learning leakage",
    "probes": "probe_agreement masked_negatives",
    "rehearse": "whole_plans from_query",
    "retrieval": "corpus_search index serve",
    "searching": "searching mining walks",
    "training": "training static_encoder examples embedding probing",
    "triplets": "triplets pairs",
}
"""Files with more than one benchmark, and the names of these."""
FILES = {name: file for file, names in STAGES.items() for name in names.split()}


def main(name: str, *words: str) -> None:
    """Run a benchmark, or call a function and print what it returns as JSON."""
    called = function_of(name)
    arguments, options = parsed(called, words)
    if ":" in name:
        print(json.dumps(called(*arguments, **options), default=str))  # noqa: T201
    elif next(iter(signature(called).parameters)) != "folder":
        called(*arguments, **options)
    else:
        folder = arguments[0] / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        called(folder, *arguments[1:], **options)
        shutil.rmtree(folder)


def function_of(name: str) -> Callable[..., Any]:
    """The function of a benchmark, or the one that is named with its file."""
    file, _, function = name.partition(":")
    module = import_module(f"tests.benchmarks.{file if function else FILES.get(file, file)}")
    found: Callable[..., Any] = getattr(module, function or (name if name in FILES else "main"))
    return found


def parsed(function: Callable[..., Any], words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a function and its options, from the words of a command."""
    parser = ArgumentParser(description=function.__doc__ or sys.modules[function.__module__].__doc__)
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
