"""A rule whose code changes gets another version, unless its results stay the same."""

import ast
from pathlib import Path

import pytest
from tests.workflow.versions import code_of, current, digest, recorded

RECORD = "then record it with `.venv/bin/python -m tests.workflow.versions` (docs/developing.md)"
BEFORE = '''
def mean(values: list[float]) -> float:
    """The mean."""
    if not values:
        raise InputError("no values")
    return sum(values) / len(values)
'''


def test_code_that_changed_is_recorded_with_the_version_that_its_rule_then_has():
    now, before = current(), recorded()
    changed = [rule for rule, version in now.items() if rule in before and version.code != before[rule].code]
    same = sorted(rule for rule in changed if now[rule].number == before[rule].number)
    assert not same, (
        f"The code behind {', '.join(same)} has changed. If the same input now gives another result, raise `version=` "
        f"in the rule; {RECORD}."
    )
    assert now == before, f"The versions of some rules differ from tests/workflow/versions.txt: {RECORD}."


def test_a_version_never_goes_down():
    before = recorded()
    assert not [rule for rule, version in current().items() if rule in before and version.number < before[rule].number]


def test_every_rule_has_a_version_and_code_of_its_own_stage():
    assert all(version.number >= 1 for version in current().values())
    assert len({version.code for version in current().values()}) > len(current()) / 2


def of(text: str) -> str:
    return digest(ast.parse(text).body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum(values) / len(values)", "(sum(values)\n        / len(values))  # by hand"),
        ('"""The mean."""', '"""Arithmetic mean."""'),
        ("values: list[float]", "values: Sequence[float]"),
        ('"no values"', '"There are no values."'),
        ("def mean", "import math\n\n\ndef mean"),
    ],
)
def test_what_cannot_change_a_result_does_not_count(old, new):
    assert of(BEFORE.replace(old, new)) == of(BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/ len(values)", "/ (len(values) - 1)"),
        ("not values", "len(values) < 2"),
        ("def mean", "LEAST = 2\n\n\ndef mean"),
    ],
)
def test_what_can_change_a_result_counts(old, new):
    assert of(BEFORE.replace(old, new)) != of(BEFORE)


@pytest.fixture
def package(tmp_path):
    """A package with one command that reaches two of three modules."""
    files = {
        "graph/commands.py": "@app.command()\ndef pair_edges():\n"
        "    from cocite.graph.pairs import pairs\n    pairs(_all())\n"
        "\n\ndef _all():\n    return 1\n\n\n@app.command()\ndef show():\n    return 1\n",
        "graph/pairs.py": "from cocite.graph.counting import count\n\n\ndef pairs():\n    return count()\n",
        "graph/counting.py": "def count():\n    return 1\n",
        "graph/other.py": "def other():\n    return 2\n",
    }
    (tmp_path / "graph").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def edited(package: Path, name: str, old: str, new: str) -> str:
    file = package / "graph" / name
    file.write_text(file.read_text().replace(old, new))
    return code_of("graph", "pair-edges", package)


def test_a_module_counts_where_the_command_reaches_it(package):
    before = code_of("graph", "pair-edges", package)
    assert edited(package, "other.py", "2", "3") == before
    assert edited(package, "counting.py", "1", "2") != before


def test_a_function_counts_that_the_command_calls_and_another_command_does_not(package):
    before = code_of("graph", "pair-edges", package)
    assert edited(package, "commands.py", "show():\n    return 1", "show():\n    return 2") == before
    assert edited(package, "commands.py", "_all():\n    return 1", "_all():\n    return 2") != before


def test_a_definition_may_move_within_what_a_command_reaches(package):
    before = code_of("graph", "pair-edges", package)
    (package / "graph/counting.py").unlink()
    text = "def count():\n    return 1\n\n\ndef pairs"
    edited(package, "pairs.py", "from cocite.graph.counting import count\n\n\n", "")
    assert edited(package, "pairs.py", "def pairs", text) == before


def test_every_module_of_a_package_counts_that_is_imported_as_a_whole(package):
    (package / "graph/signals").mkdir()
    (package / "graph/signals/cosine.py").write_text("def weight():\n    return 1\n")
    before = edited(package, "pairs.py", "def pairs", "from cocite.graph import signals\n\n\ndef pairs")
    (package / "graph/signals/cosine.py").write_text("def weight():\n    return 2\n")
    assert code_of("graph", "pair-edges", package) != before
