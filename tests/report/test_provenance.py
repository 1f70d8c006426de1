"""The provenance says what made the results: configuration, release, machine, versions, and whose the data are."""

import json
import os
import platform
from pathlib import Path

import pytest

from cocite.core.tables.files import read_json, write_json
from cocite.report import provenance
from cocite.report.provenance import describe_machine, write_provenance


def written(tmp_path, configuration, **manifest):
    datasets = {"papers": {"shards": [1, 2], "readme": "Papers of ours."}}
    write_json(tmp_path / "manifest.json", {"release": "2026-01-06", "datasets": datasets, **manifest})
    (tmp_path / "configuration.json").write_text(json.dumps(configuration))
    files = {name: tmp_path / f"{name}.json" for name in ("configuration", "manifest")}
    write_provenance(**files, spaces="[]", output=tmp_path / "provenance.json", ids=tmp_path / "id_spaces.parquet")
    return read_json(tmp_path / "provenance.json")


def test_it_keeps_the_order_of_the_configuration(tmp_path):
    found = written(tmp_path, {"models": {"second": {"seeds": [1]}, "first": {"seeds": [1]}}})
    assert list(found["configuration"]["models"]) == ["second", "first"]
    assert (found["release"], found["shards"]) == ("2026-01-06", {"papers": 2})
    assert found["versions"]["python"] == platform.python_version()


def test_it_keeps_what_the_release_says_of_its_datasets(tmp_path):
    assert written(tmp_path, {})["readmes"] == {"papers": "Papers of ours."}


def test_it_names_the_files_that_say_whose_a_release_in_a_folder_is(tmp_path):
    release = tmp_path / "mine"
    (release / "papers").mkdir(parents=True)
    for name in ("release.json", "ATTRIBUTION.md", "README.md", "labels.tsv"):
        (release / name).touch()
    found = written(tmp_path, {"corpus": {"source": "directory", "path": str(release)}})
    assert found["release_files"] == ["ATTRIBUTION.md", "README.md", "release.json"]


def test_it_has_the_version_and_the_licence_of_a_package_that_carries_an_encoder(tmp_path):
    found = written(tmp_path, {"encoders": {"e": {"package": "pytest"}, "f": {"package": "no_such_package"}}})
    assert found["packages"] == {"pytest": {"version": pytest.__version__, "license": "MIT"}}


def test_it_describes_the_machine(tmp_path):
    found = written(tmp_path, {})["machine"]
    assert found["cores"] == os.cpu_count()
    named = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")]
    assert found["memory_mb"] == pytest.approx(int(named[0].split()[1]) * 1024 / 1e6, rel=0.01)
    assert found["processor"]


def test_a_processor_without_a_name_is_described_by_its_architecture(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text("processor : 0\nBogoMIPS : 50.00\n")
    monkeypatch.setattr(provenance, "PROCESSORS", tmp_path / "cpuinfo")
    assert describe_machine()["processor"] == platform.machine()


def test_gpus_are_those_that_the_driver_lists(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200'\necho 'NVIDIA H200'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert describe_machine()["gpus"] == ["NVIDIA H200", "NVIDIA H200"]
    program.write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
    assert describe_machine()["gpus"] == []
