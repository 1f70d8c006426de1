"""Every command that the README and the documentation tell a reader to give is one that its program takes."""

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml
from jsonschema import Draft202012Validator
from snakemake.cli import get_argument_parser

from cocite.cli import app
from cocite.config.configuration import read_configuration
from cocite.config.described import json_schema
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.release_shards import IngestSettings, ingest_shards
from cocite.corpus.sources.directory import list_folder
from cocite.tools.documentation import ROOT

SCHEMA = Draft202012Validator(json_schema())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BELOW = re.compile(r"^    (?:\.venv/bin/)?((?:cocite|snakemake|make) .*)$", flags=re.MULTILINE)
"""A command in a block of its own."""
INLINE = re.compile(r"`(?:\.venv/bin/)?(cocite [a-z][^`]*)`")
"""A command within a sentence, which may leave out what the sentence does not speak of."""


def commands(pattern: re.Pattern[str], program: str) -> list:
    """The words of each command of a program, behind the program's own name, with the page that it is from."""
    found = []
    for page in PAGES:
        for command in pattern.findall(re.sub(r" *\\\n *", " ", page.read_text())):
            words = shlex.split(command, comments=True)
            if words[0] == program:
                found.append(pytest.param(words[1:], id=f"{page.name}: {' '.join(words[1:])[:60]}"))
    return found


@pytest.mark.parametrize("words", commands(BELOW, "cocite"))
def test_a_command_of_cocite_is_complete(words):
    command, rest = command_of(words)
    command.make_context("cocite", rest)  # raises where an option is not known, lacking or of another type


@pytest.mark.parametrize("words", commands(INLINE, "cocite"))
def test_a_command_within_a_sentence_exists_with_its_options(words):
    command, rest = command_of(words)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= known | {"--help"}


@pytest.mark.parametrize("words", commands(BELOW, "snakemake"))
def test_a_command_of_snakemake_has_options_that_it_knows_and_a_configuration_that_is_there(words):
    given = get_argument_parser().parse_args(words)  # exits where an option is not known
    for file in given.configfile or ():
        assert str(file) == "my.yaml" or (ROOT / file).is_file(), file
    for folder in given.profile or ():
        assert (ROOT / folder / "config.yaml").is_file(), folder
    assert not given.configfile or given.replace_workflow_config


@pytest.mark.parametrize("words", commands(BELOW, "make"))
def test_a_command_of_make_has_a_target_and_variables_of_the_makefile(words):
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        name, is_variable, _ = word.partition("=")
        assert re.search(rf"^{name} \?=" if is_variable else rf"^{name}:", makefile, flags=re.MULTILINE), word


def test_the_commands_of_the_tutorial_are_among_those_that_are_checked():
    checked = [each.id for program in ("cocite", "snakemake", "make") for each in commands(BELOW, program)]
    first_words = {name.split()[1] for name in checked if name.startswith("tutorial.md")}
    assert first_words >= {"show", "search", "run", "--cores"}


def test_the_minimal_corpus_of_the_documentation_is_read_as_documented(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/how-to/own-corpus.md").read_text()
    for file, record in re.findall(r"^(my-release/\S+) +({.*})$", page, flags=re.MULTILINE):
        Path(file).parent.mkdir(parents=True)
        Path(file).write_text(record)
    Path("my.yaml").write_text(re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)[0])
    config = read_configuration(Path("my.yaml"))
    manifest = list_folder(Path(config["corpus"]["path"]), config["release"])
    for dataset, listed in manifest.datasets.items():
        settings = IngestSettings(dataset=dataset, buckets=1, keep_ids=False, memory_mb=500, threads=1)
        files = {"output": Path(f"{dataset}/0.parquet"), "report": Path(f"{dataset}-report.parquet")}
        ingest_shards(settings, Path("my-release", dataset), list(listed.shards), **files)
    written = {"output": Path("merged.parquet"), "omissions": Path("omissions.parquet")}
    merge("papers", ingested=Path(), bucket=0, **written, memory_mb=500, threads=1)
    papers = read_table(Path("merged.parquet"), "papers")
    assert papers.select(["corpusid", "title", "has_text"]).to_pylist() == [
        {"corpusid": 1, "title": "Co-citation", "has_text": True}
    ]
    citations = read_table(Path("citations/0.parquet"), "ingested_citations")
    assert citations.select(["citing", "cited"]).to_pylist() == [{"citing": 3, "cited": 1}]


@pytest.mark.parametrize(
    "name", ["own-corpus", "own-tables", "semantic-scholar", "new-encoder", "pairs", "compare-models"]
)
def test_the_configurations_of_a_page_have_keys_and_values_that_there_are(name):
    page = (ROOT / f"docs/how-to/{name}.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)]
    assert blocks
    # A page shows parts of a configuration; the commit of an encoder is the reader's to find.
    wrong = [error for block in blocks for error in SCHEMA.iter_errors(block)]
    assert [error.message for error in wrong if error.validator != "required" and error.instance != "…"] == []


def command_of(words: list[str]):
    """The command that the first words name, and the words behind it."""
    command = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        command, words = command.get_command(typer.Context(command), words[0]), words[1:]
    return command, words
