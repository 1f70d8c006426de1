"""What is generated is in step, pages hold together, and every command that they tell is one that its program takes."""

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest
import typer
import yaml
from jsonschema import Draft202012Validator
from snakemake.cli import get_argument_parser

from cocite.cli import app
from cocite.config.configuration import read_configuration
from cocite.config.described import json_schema
from cocite.core.tables import TABLES
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.release_shards import IngestSettings, ingest_shards
from cocite.corpus.sources.directory import list_folder
from cocite.tools.documentation import ROOT, as_shown, cookbook_page, generated

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = generated()
SHARED = yaml.safe_load((ROOT / "docs/figures.yaml").read_text())


@pytest.mark.parametrize("path", sorted(GENERATED))
def test_generated_files_are_in_step(path):
    assert (ROOT / path).read_text() == GENERATED[path], "run `make docs`"


def test_the_lock_pins_every_dependency_exactly_and_torch_without_a_build():
    pins = (ROOT / "envs/lock.txt").read_text().split()
    assert all(re.fullmatch(r"[\w.\-]+==[\w.]+", pin) for pin in pins)
    assert "torch==2.13.0" in pins


def test_every_key_of_a_table_is_a_column_that_is_never_null():
    for table in TABLES.values():
        for name in table.key:
            assert not table.columns[name].nullable, (table.name, name)


def test_every_link_of_the_documentation_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("figure", SHARED, ids=lambda figure: figure["name"])
def test_pages_that_share_a_figure_give_the_same_value(figure):
    assert len(figure["pages"]) > 1
    for page in figure["pages"]:
        text = " ".join((ROOT / "docs" / f"{page}.md").read_text().split())
        for value in figure["values"]:
            places = [match.span() for match in re.finditer(rf"(?<![\d.,]){re.escape(value)}(?![\d]|[.,]\d)", text)]
            close = [re.search(figure["near"], text[max(0, start - 300) : end + 300]) for start, end in places]
            assert any(close), f"{page}.md lacks {value} for {figure['name']}"


def test_a_file_of_the_project_is_named_on_the_site_and_a_page_is_linked_by_its_title(tmp_path):
    for name in ("docs/how-to/page.md", "docs/map.svg", "config.yaml", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "docs/other.md").write_text("<!-- made -->\n\n# Another page\n\n## A part\n")

    def shown(text: str) -> str:
        return as_shown(text, tmp_path / "docs/how-to/page.md", documentation=tmp_path / "docs")

    assert shown("see [config.yaml](../../config.yaml) and") == "see `config.yaml` and"
    assert shown("[`test_a.py`](../../tests/test_a.py)") == "`tests/test_a.py`"
    assert shown("[its test](../../tests/test_a.py) says") == "its test (`tests/test_a.py`) says"
    assert shown("in [other.md](../other.md#a-part)") == "in [Another page](../other.md#a-part)"
    assert shown("the table `papers` has") == "the table [`papers`](../tables.md#papers) has"
    untouched = ["the table `no_such`", "the key `papers`"]
    untouched += ["[this](../other.md#a-part)", "[gone](../../gone.yaml)", "![map](../map.svg)", "[w](https://a.b/c)"]
    assert [shown(link) for link in untouched] == untouched


@pytest.mark.long
def test_a_link_that_leads_nowhere_stops_the_site(tmp_path):
    links = ["../experiments/gone.yaml", "gone.md", "index.md#no-such-part"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# A page\n\n" + "".join(f"[gone]({link})\n" for link in links))
    # The project's own configuration, but for its pages and what takes long.
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT}/mkdocs.yml\nplugins: []\nextra_css: []\nnav: [index.md]\nhooks: [{ROOT}/docs/hooks.py]\n"
    )
    built = build_site(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert built.returncode == 1
    warnings = [line for line in built.stderr.splitlines() if line.startswith("WARNING")]  # each of which stops it
    for complaint in ("gone.yaml", "gone.md", "no-such-part"):
        assert any(complaint in line for line in warnings), built.stderr


@pytest.mark.end_to_end
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    built = build_site(tmp_path / "site", "--config-file", str(ROOT / "mkdocs.yml"))
    assert built.returncode == 0, built.stderr[-3000:]
    assert "WARNING" not in built.stdout + built.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(PAGES)  # all but the README, and the one for addresses that do not exist
    for page in pages:
        fetched = Fetched()
        fetched.feed(page.read_text())
        assert [address for address in fetched.addresses if re.match(r"(https?:)?//", address)] == [], page
        assert 'class="mermaid"' not in page.read_text(), f"{page}: the theme would load a library for its diagrams"
    for sheet in (tmp_path / "site").rglob("*.css"):
        assert re.findall(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//[^)\"']*", sheet.read_text()) == [], sheet


class Fetched(HTMLParser):
    """The addresses that a browser fetches for a page by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        names = ("src", "srcset", "data", "poster", *(("href",) if tag in ("link", "use", "image") else ()))
        self.addresses += [value for name, value in attrs if name in names and value]


def build_site(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder), *options]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


PAGE = """# Page

```sql
SELECT 'no recipe: it has no question';
```

## 1. What is one?

A sentence.

```sql
SELECT 1 AS number, E'a|b\\nc' AS letters;
```

## 2. What is two?

```sql
SELECT 2.5 AS number,
    [1, 2] AS list;
```

| of | old |
| --- | --- |
| 7 | 8 |

The end.
"""

WRITTEN = PAGE.replace(
    "AS letters;\n```\n", "AS letters;\n```\n\n| number | letters |\n| --- | --- |\n| 1 | a\\|b c |\n"
).replace("| of | old |\n| --- | --- |\n| 7 | 8 |\n", "| number | list |\n| --- | --- |\n| 2.5 | 1, 2 |\n")


def test_output_is_put_below_its_query_in_place_of_what_was_there():
    with duckdb.connect() as database:
        assert cookbook_page(PAGE, database) == cookbook_page(WRITTEN, database) == WRITTEN


SCHEMA = Draft202012Validator(json_schema())
ASKED = {"encoder": "e", "triplets": "t"}


@pytest.mark.parametrize(
    ("section", "name", "entry"),
    [
        ("maps", "m", {"benchmark": "b", "models": []}),
        ("maps", "m", {"benchmark": "b", "labels": ["field", "field"]}),
        ("graphs", "A b", {"signal": "citation"}),
        ("models", "m", ASKED | {"objectives": []}),
        ("models", "m", ASKED | {"objectives": [{"loss": "supco"}]}),
        ("models", "m", ASKED | {"loss": "distillation"}),
    ],
)
def test_the_schema_refuses_what_the_configuration_refuses(section, name, entry):
    assert [error.path[0] for error in SCHEMA.iter_errors({section: {name: entry}}) if error.path] == [section]


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
