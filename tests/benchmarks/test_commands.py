"""The commands that benchmarks run are commands of the program, and functions that there are."""

from contextlib import suppress
from importlib import import_module

import pytest
from tests.benchmarks import measuring
from tests.benchmarks.__main__ import parsed
from typer import Context
from typer.main import get_command

from cocite.cli import app
from cocite.core.errors import InputError

COST = measuring.Cost(wall=1.0, cpu=1.0, peak_mb=1.0)


def check(command):
    """Raise where the words of a command would not be taken."""
    program, *words = map(str, command)
    if program.endswith("/cocite"):
        step, context = get_command(app), None
        while hasattr(step, "get_command"):
            context = Context(step, parent=context)
            step = step.get_command(context, words.pop(0))
        step.make_context(step.name, words)
    else:
        module, _, function = words[2].partition(":")
        parsed(getattr(import_module(f"tests.benchmarks.{module}"), function), words[3:])


@pytest.mark.parametrize(
    ("name", "sizes", "commands"),
    [
        ("baselines", {}, 8),
        ("embedding", {}, 9),
        ("learning", {}, 2),
        ("merge", {"ROWS": 100}, 8),
        pytest.param("mining", {}, 8, marks=pytest.mark.long),  # whose rival has libraries that take long to import
        ("pairs", {}, 3),
        ("searching", {}, 9),
        ("triplets", {"ROUNDS": 1}, 13),
        ("twins", {}, 2),
    ],
)
def test_the_program_takes_the_commands_of_a_benchmark(tmp_path, monkeypatch, name, sizes, commands):
    module, taken = import_module(f"tests.benchmarks.{name}"), []

    def run(*given, **_):
        for command in given:
            if isinstance(command, list):
                check(command)
                taken.append(command)
            elif callable(command):
                command()
        return COST

    fakes = {
        "run": run,
        "run_and_read": lambda command: (run(command), "10 links"),
        "answer": lambda function, *arguments: (run(measuring.python(function, *arguments)), 1.0),
        "compare": lambda title, ours, rival, *_: (run(ours, rival), 1.0),
    }
    for changed, value in {**fakes, **sizes}.items():
        monkeypatch.setattr(module, changed, value, raising=changed in sizes)
    with suppress(OSError, InputError, TypeError):  # as it looks at what the commands would have written
        module.main(tmp_path)
    assert len(taken) >= commands
