"""What every rule has, also in the profile for Slurm; and that a changed table or parameter is a decision.

Then the rule gets another version, and the record says so.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.workflow.conftest import ROOT
from tests.workflow.record import read_record, record_of, versions
from typer import Context
from typer.main import get_command

from cocite.cli import app
from cocite.tools.cluster import rule_files

AGAIN = "Then record it with `.venv/bin/python -m tests.workflow.record` (docs/developing.md)."


@pytest.mark.end_to_end
def test_a_finished_run_made_what_is_recorded(finished):
    before = read_record()
    made = record_of(finished.folder)  # and by tests that had more made there
    now = {key: made.get(key, "missing") for key in before}
    # The rule and its version come before the digest of the rows.
    changed = [key for key in before if key[0] == "table" and now[key] != before[key]]
    unraised = [name for _, name in changed if now["table", name].split()[:2] == before["table", name].split()[:2]]
    assert not unraised, f"{', '.join(unraised)} changed, but no `version=` of their rules. Raise it. {AGAIN}"
    assert now == before, f"Parameters of jobs, tables or versions differ from tests/workflow/record.txt. {AGAIN}"


@pytest.mark.end_to_end
def test_a_job_has_at_most_two_bare_numbers_for_parameters(finished):
    """Snakemake compares the values of all parameters as one set: of three numbers one can take another's value."""
    files = filter(Path.is_file, (finished.folder / ".snakemake/metadata").rglob("*"))
    jobs = [json.loads(file.read_text()) for file in files]
    numbers = [(job["rule"], [each for each in job["params"] if re.fullmatch(r"[0-9.]+", each)]) for job in jobs]
    assert ("ingest", [str(versions()["ingest"])]) in numbers
    assert not [(rule, found) for rule, found in numbers if len(found) > 2]


def test_every_rule_has_a_version_that_never_goes_down():
    recorded = {name: int(rest.split()[0]) for (kind, name), rest in read_record().items() if kind == "rule"}
    assert not [rule for rule, version in versions().items() if version < recorded.get(rule, 1)]


def test_the_profile_names_only_rules_and_resources_that_exist():
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    text = "".join(path.read_text() for path in rule_files())
    rules = set(re.findall(r"^ *(?:rule|use rule \w+ as) (\w+)", text, re.MULTILINE))
    assert set(profile.get("set-resources", {})) | set(profile["set-threads"]) <= rules
    assert set(profile["resources"]) <= set(re.findall(r"^ +(\w+)=\d", text, re.MULTILINE))
    assert profile["executor"] == "slurm"
    assert (ROOT / "slurm").resolve() == ROOT / "profiles/slurm"


def test_every_rule_has_a_log_a_benchmark_an_environment_and_costs_and_states_no_default():
    for path in rule_files():
        assert not re.search("^ *threads: 1$", path.read_text(), re.MULTILINE), path.name
        for rule in re.split(r"^ *(?:use )?rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            if " with:" in rule.partition("\n")[0]:
                continue  # it has those of the rule that it uses
            for directive in ("output", "log", "benchmark", "params", "conda", "resources", "shell"):
                assert f"    {directive}:" in rule, (path.name, rule.split(":")[0], directive)
            assert "version=" in rule


def test_every_rule_calls_a_step_with_its_options_and_all_that_it_requires():
    group = get_command(app)
    context = Context(group)
    blocks = (each for path in rule_files() for each in re.split(r"^ *(?:use )?rule ", path.read_text(), flags=re.M))
    found = ((re.search(r"^ +cocite (\w+) ([\w-]+) ", block, re.MULTILINE), block) for block in blocks)
    calls = [(*call.groups(), block) for call, block in found if call]
    assert len(calls) > 60
    for stage, step, given in calls:
        command = group.get_command(context, stage).get_command(context, step)
        options = {name: option for option in command.params for name in [*option.opts, *option.secondary_opts]}
        used = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", given))
        assert used <= options.keys(), (stage, step)
        needed = (each for each in command.params if each.required and not each.secondary_opts)  # which params choose
        assert {each.opts[0] for each in needed if each.opts[0].startswith("-")} <= used, (stage, step)
