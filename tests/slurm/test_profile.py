"""What the jobs ask for: GPUs where the configuration says so, and more with each attempt."""

import re
import subprocess

import pytest
import yaml
from tests.slurm.conftest import CONFIGURATION, ROOT, command

from cocite.tools.doctor.cluster import rule_files


def planned(folder, rule, **changes):
    """The resources that a dry run shows for a rule."""
    (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIGURATION, **changes}))
    on_cluster = ["--executor", "slurm", "--jobs", "9"]
    dry = subprocess.run(
        [*command(folder), *on_cluster, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    block = re.search(rf"rule {rule}:\n(.*?)resources: (.*?)\n", dry.stdout, re.DOTALL)
    return dict(entry.split("=") for entry in block[2].split(", "))


@pytest.mark.parametrize(("gpu", "asked"), [(False, "0"), (True, "2")])
def test_a_training_asks_for_a_gpu_for_each_of_its_processes(tmp_path, gpu, asked):
    models = {"near": {**CONFIGURATION["models"]["near"], "processes": 2}}
    assert planned(tmp_path, "train_encoder", gpu=gpu, models=models)["gpu"] == asked


def test_all_resources_of_all_rules_grow_with_the_attempt_but_the_time_of_a_training_that_goes_on():
    fixed = []
    for file in rule_files():
        for rule in re.split(r"(?m)^(?=rule )", file.read_text())[1:]:
            name = re.match(r"rule (\w+)", rule)[1]
            fixed += [(name, key) for key in ("mem_mb", "runtime") if re.search(rf"^ +{key}=\d", rule, re.MULTILINE)]
            assert re.search(r"^ +mem_mb=", rule, re.MULTILINE), name
            assert re.search(r"^ +runtime=", rule, re.MULTILINE), name
    assert fixed == [("train_encoder", "runtime")]
