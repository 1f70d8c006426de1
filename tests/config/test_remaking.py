"""A command that is printed works as it is printed: from the folder and with the configuration that the run had."""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from cocite.config.started import FILE, Start, program, remaking_command
from cocite.core.errors import InputError

SNAKEMAKE = f"{Path(sys.executable).parent}/snakemake"
TARGET = "corpus/papers/{0..1}.parquet"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start(folder):
    """A function that records a run in the current folder, whose results lie in `results` there."""

    def write(**others):
        told = {"time": 0.0, "directory": str(folder), "results": "results", "snakefile": str(folder / "Snakefile")}
        told |= {"configfiles": ["config.yaml"], "log": None, "cores": 2, "host": "", "process": 1}
        path = folder / "results" / FILE
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(asdict(Start(**{**told, "process_started": None, "jobs": [], **others}))))

    return write


def test_where_no_run_is_known_the_command_is_given_as_it_would_be_here(folder):
    assert remaking_command(Path("results"), [TARGET]) == f"{SNAKEMAKE} --cores 2 results/{TARGET}"


def test_the_program_is_named_from_the_folder_that_the_environment_lies_in():
    environment = Path(sys.executable).parents[1]
    assert program("cocite", environment.parent) == f"{environment.name}/bin/cocite"


def test_a_configuration_that_is_given_is_named(folder):
    command = remaking_command(Path("out"), ["a", "b"], Path("my run.yaml"))
    assert command == f"{SNAKEMAKE} --cores 2 out/a out/b --configfile 'my run.yaml' --replace-workflow-config"


def test_the_configuration_of_the_run_is_named_unless_it_is_the_default(start):
    start(configfiles=["my.yaml"])
    command = remaking_command(Path("results"), [TARGET])
    assert command == f"{SNAKEMAKE} --cores 2 results/{TARGET} --configfile my.yaml --replace-workflow-config"


@pytest.mark.parametrize("name", ["config.yaml", "{folder}/config.yaml"])
def test_the_default_configuration_goes_without_saying(start, folder, name):
    start(configfiles=[name.format(folder=folder)])
    assert remaking_command(Path("results"), [TARGET]) == f"{SNAKEMAKE} --cores 2 results/{TARGET}"


def test_from_another_folder_the_command_goes_to_that_of_the_run_first(start, folder, monkeypatch):
    start()
    monkeypatch.chdir("/")
    command = remaking_command(folder / "results", [TARGET])
    assert command == f"cd {folder} && {SNAKEMAKE} --cores 2 results/{TARGET}"


def test_a_workflow_that_lies_elsewhere_is_named(start):
    start(snakefile="/a clone/Snakefile")
    assert remaking_command(Path("results"), ["a"]).endswith(" results/a --snakefile '/a clone/Snakefile'")
    given = remaking_command(Path("results"), ["a"], Path("my.yaml"))
    assert given.endswith(" --configfile my.yaml --replace-workflow-config --snakefile '/a clone/Snakefile'")


def test_of_a_copy_it_says_that_no_run_makes_files_there(start):
    start()
    shutil.copytree("results", "copy")
    with pytest.raises(InputError, match=r"copy is a copy.*`pathvars: {results: copy}` by --configfile"):
        remaking_command(Path("copy"), [TARGET])
