"""What every rule has, and what the profile for Slurm says of them."""

import re

import yaml
from tests.workflow.conftest import ROOT
from typer import Context
from typer.main import get_command

from cocite.cli import app
from cocite.tools.cluster import rule_files


def test_the_profile_names_only_rules_and_resources_that_exist():
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    text = "".join(path.read_text() for path in rule_files())
    rules = set(re.findall(r"^ *(?:rule|use rule \w+ as) (\w+)", text, re.MULTILINE))
    assert set(profile.get("set-resources", {})) | set(profile["set-threads"]) <= rules
    assert set(profile["resources"]) <= set(re.findall(r"^ +(\w+)=\d", text, re.MULTILINE))
    assert profile["executor"] == "slurm"
    assert (ROOT / "slurm").resolve() == ROOT / "profiles/slurm"


def test_every_rule_has_a_log_a_benchmark_an_environment_and_costs():
    for path in rule_files():
        for rule in re.split(r"^ *(?:use )?rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            if " with:" in rule.partition("\n")[0]:
                continue  # it has those of the rule that it uses
            for directive in ("output", "log", "benchmark", "params", "conda", "resources", "shell"):
                assert f"    {directive}:" in rule, (path.name, rule.split(":")[0], directive)
            assert "version=" in rule


def test_no_rule_states_what_is_the_default():
    assert not [path.name for path in rule_files() if re.search("^ *threads: 1$", path.read_text(), re.M)]


def test_every_rule_calls_a_step_with_its_options_and_all_that_it_requires():
    group = get_command(app)
    context = Context(group)
    calls = [
        (*call[1].groups(), block)
        for path in rule_files()
        for block in re.split(r"^ *(?:use )?rule ", path.read_text(), flags=re.MULTILINE)
        if (call := (block, re.search(r"^ +cocite (\w+) ([\w-]+) ", block, re.MULTILINE)))[1]
    ]
    assert len(calls) > 60
    for stage, step, given in calls:
        command = group.get_command(context, stage).get_command(context, step)
        options = {name: option for option in command.params for name in [*option.opts, *option.secondary_opts]}
        used = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", given))
        assert used <= options.keys(), (stage, step)
        required = {
            option.opts[0]
            for option in command.params
            if option.required and option.opts[0].startswith("-") and not option.secondary_opts  # which params choose
        }
        assert required <= used, (stage, step)
