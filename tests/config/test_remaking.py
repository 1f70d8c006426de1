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


@pytest.mark.parametrize(
    ("started", "asked", "command"),
    [
        (None, ("results", [TARGET]), f"results/{TARGET}"),
        (None, ("out", ["a", "b"], "my run.yaml"), "out/a out/b --configfile 'my run.yaml' --replace-workflow-config"),
        ({"configfiles": ["my.yaml"]}, ("results", ["a"]), "results/a --configfile my.yaml --replace-workflow-config"),
        ({}, ("results", ["a"]), "results/a"),
        ({"configfiles": ["{folder}/config.yaml"]}, ("results", ["a"]), "results/a"),
        ({"snakefile": "/a clone/Snakefile"}, ("results", ["a"]), "results/a --snakefile '/a clone/Snakefile'"),
        (
            {"snakefile": "/a clone/Snakefile"},
            ("results", ["a"], "my.yaml"),
            "results/a --configfile my.yaml --replace-workflow-config --snakefile '/a clone/Snakefile'",
        ),
    ],
)
def test_the_command_names_what_is_not_the_default_of_the_run_or_of_where_it_is_asked_for(
    folder, start, started, asked, command
):
    if started is not None:
        configfiles = [name.format(folder=folder) for name in started.get("configfiles", ["config.yaml"])]
        start(**{**started, "configfiles": configfiles})
    results, targets, *configfile = asked
    made = remaking_command(Path(results), targets, *map(Path, configfile))
    assert made == f"{SNAKEMAKE} --cores 2 {command}"


def test_the_program_is_named_from_the_folder_that_the_environment_lies_in():
    environment = Path(sys.executable).parents[1]
    assert program("cocite", environment.parent) == f"{environment.name}/bin/cocite"


def test_from_another_folder_the_command_goes_to_that_of_the_run_first(start, folder, monkeypatch):
    start()
    monkeypatch.chdir("/")
    command = remaking_command(folder / "results", [TARGET])
    assert command == f"cd {folder} && {SNAKEMAKE} --cores 2 results/{TARGET}"


def test_of_a_copy_it_says_that_no_run_makes_files_there(start):
    start()
    shutil.copytree("results", "copy")
    with pytest.raises(InputError, match=r"copy is a copy.*`pathvars: {results: copy}` by --configfile"):
        remaking_command(Path("copy"), [TARGET])
