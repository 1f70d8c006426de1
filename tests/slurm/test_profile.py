"""What the jobs ask for: GPUs where the configuration says so, and more with each attempt."""

import re

import pytest
from tests.slurm.conftest import CONFIGURATION
from tests.workflow.conftest import Run, planned

from cocite.tools.cluster import rule_files


@pytest.mark.parametrize(("gpu", "asked"), [(False, "0"), (True, "2")])
def test_a_training_asks_for_a_gpu_for_each_of_its_processes(tmp_path, gpu, asked):
    models = {"near": {**CONFIGURATION["models"]["near"], "processes": 2}}
    config = {**CONFIGURATION, "gpu": gpu, "models": models}
    plan = planned(Run(folder=tmp_path), config, options=["--executor", "slurm", "--jobs", "9"])
    assert plan.one("train_encoder").resources["gpu"] == asked


def test_all_resources_of_all_rules_grow_with_the_attempt_but_the_time_of_a_training_that_goes_on():
    fixed = []
    # A rule that is made from another one has its resources, or all of its own.
    for rule in re.split(r"(?m)^(?=rule |use rule )", "".join(file.read_text() for file in rule_files()))[1:]:
        if rule.startswith("use") and "    resources:" not in rule:
            continue
        name = re.match(r"(?:use )?rule (\w+)", rule)[1]
        for key in ("mem_mb", "runtime"):
            assert re.search(rf"^ +{key}=", rule, re.MULTILINE), name
            fixed += [(name, key)] if re.search(rf"^ +{key}=\d", rule, re.MULTILINE) else []
    assert fixed == [("train_encoder", "runtime")]
