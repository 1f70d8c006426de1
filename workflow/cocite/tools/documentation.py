"""Generated files, which a test keeps in step with their sources, and what `docs/hooks.py` changes for the site."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import duckdb

app = typer.Typer(no_args_is_help=True)

ROOT = Path(__file__).parents[3]
COOKBOOK = ROOT / "docs" / "cookbook.md"
CONDA_ENVIRONMENT = """\
# Generated from envs/lock.txt by `make docs`; pipeline.post-deploy.sh installs CoCite itself.
channels: [conda-forge]
dependencies:
  - python =3.11
  - pip
  - pip:
"""
RECIPE = re.compile(
    r"(?P<asked>^## (?P<question>.+)\n(?:(?!## |```).*\n)*```sql\n(?P<query>(?:(?!```).*\n)+)```\n)"
    r"(?P<output>\n(?:\|.*\n)+)?",
    re.MULTILINE,
)
"""A question of the cookbook: a heading, its explanation, a query in a block of SQL, and its output on the demo."""
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
"""Text, path and place of a link with a path: neither a picture, nor an address, nor a place on the same page."""
TABLE = re.compile(r"(?<=\btable\s)`(\w+)`")
"""The name of a table in a sentence."""
INTRODUCTION = """\
# Commands

The first commands look at a run, prepare one or share one. The others are the steps of the pipeline: a rule does no
work itself, but calls one of them, which also works by hand. Every command has `--help`. If the environment is not
active, put `.venv/bin/` before it.
"""


@app.command()
def write() -> None:
    """Write docs/config.md, the schema of the configuration, envs/pipeline.yaml and the tables of results."""
    from cocite.core.atomic import write_text

    for path, text in generated().items():
        write_text(ROOT / path, text)


@app.command()
def cookbook(results: Annotated[Path, typer.Option(help="Folder of the demo's results.")] = Path("results")) -> None:
    """Run the queries of docs/cookbook.md again, and write their output below them."""
    from cocite.core.atomic import write_text
    from cocite.tools.contents import open_results

    with open_results(results) as database:
        write_text(COOKBOOK, cookbook_page(COOKBOOK.read_text(encoding="utf-8"), database))


@app.command()
def study(
    corpora: Annotated[list[str], typer.Argument(help="Corpora of docs/study.yaml whose runs have ended.")],
) -> None:
    """Write the scores of the study on these corpora to docs/study.csv, and the tables of all pages from it."""
    from cocite.tools.study import renew

    renew(corpora)


def generated() -> dict[str, str]:
    """The generated files, by their path from the project's root."""
    from cocite.config.described import configuration_page, json_schema
    from cocite.tools.study import pages

    lock = (ROOT / "envs" / "lock.txt").read_text(encoding="utf-8").splitlines()
    pins = "".join(f"      - {line}\n" for line in lock if line and not line.startswith("#"))
    return pages() | {
        "docs/config.md": configuration_page(),
        "workflow/schemas/config.schema.json": json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n",
        "envs/pipeline.yaml": CONDA_ENVIRONMENT + pins,
    }


def tables_page() -> str:
    """Every table with its columns, as Markdown: a page of the site only, as `cocite show` prints them, too."""
    from cocite.config.described import cell
    from cocite.core.tables import TABLES

    lines = ["# Tables", "", "Every table is Parquet; paths are relative to the results folder.", ""]
    for table in TABLES.values():
        key = ", ".join(f"`{name}`" for name in table.key)
        lines += [f"## {table.name}", "", f"`{table.path}`", "", table.description, "", f"Primary key: {key}.", ""]
        lines += ["| column | type | null | meaning |", "|---|---|---|---|"]
        for name, column in table.columns.items():
            nullable = "yes" if column.nullable else ""
            lines.append(f"| `{name}` | {column.type} | {nullable} | {cell(column.meaning)} |")
        lines.append("")
    return "\n".join(lines)


def commands_page(command_line: Any) -> str:
    """Every command with its options, as Markdown; `command_line` is the group of all commands."""
    return "\n".join([INTRODUCTION, *_described(command_line, "cocite", level=1)])


def _described(command: Any, name: str, *, level: int) -> Iterator[str]:
    from cocite.config.described import cell

    if level > 1:
        yield from ("#" * level + f" `{name}`", "", " ".join(command.help.split()), "")
    context = typer.Context(command, info_name=name)
    if hasattr(command, "get_command"):
        for step in command.list_commands(context):
            yield from _described(command.get_command(context, step), f"{name} {step}", level=level + 1)
        return
    yield from (f"    {command.get_usage(context).removeprefix('Usage: ')}", "")
    if command.params:
        yield from ("| argument or option | type | default | meaning |", "|---|---|---|---|")
    for parameter in command.params:
        names = [f"`{options[0]}`" for options in (parameter.opts, parameter.secondary_opts) if options]
        kind = parameter.display_type(context).strip("<>").replace("|", "` or `")
        default = "required" if parameter.required else ""
        if parameter.default is not None and parameter.secondary_opts:
            default = names[0] if parameter.default else names[1]
        elif parameter.default is not None:
            default = f"`{parameter.default}`"
        yield f"| {' or '.join(names)} | `{kind}` | {default} | {cell(parameter.help or '')} |"
    yield from [""] if command.params else []


def cookbook_page(page: str, db: "duckdb.DuckDBPyConnection") -> str:
    """The cookbook, whose queries are written by hand, with the output that they give on these results."""
    from cocite.tools.answers import as_markdown, fetched

    return RECIPE.sub(lambda of: f"{of['asked']}\n{as_markdown(*fetched(db.execute(of['query'])))}", page)


def as_shown(markdown: str, page: Path, *, documentation: Path) -> str:
    """The text of a page for the site, whose pages are below `documentation`. Names of tables become links to them, and
    links to files of the project that are no pages become their names; a link whose text is the file name of a page
    shows its title. A link to a file that does not exist stays: MkDocs reports it, and the build fails."""
    from cocite.core.tables import TABLES

    pages = documentation.resolve()
    reference = Path(os.path.relpath(pages / "tables.md", page.resolve().parent)).as_posix()

    def written(link: re.Match[str]) -> str:
        text, target, place = link.groups(default="")
        path = (page.parent / target).resolve()
        if not path.is_relative_to(pages.parent) or not path.exists():
            return link[0]
        is_its_name = path.name == Path(text.strip("`")).name
        if path.is_relative_to(pages) and not (is_its_name and path.suffix == ".md"):
            return link[0]
        if path.is_relative_to(pages):
            heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            return f"[{heading[1] if heading else path.stem}]({target}{place})"
        name = f"`{path.relative_to(pages.parent)}`"
        return name if is_its_name else f"{text} ({name})"

    def linked(table: re.Match[str]) -> str:
        return f"[`{table[1]}`]({reference}#{table[1]})" if table[1] in TABLES else table[0]

    return TABLE.sub(linked, LINK.sub(written, markdown))
