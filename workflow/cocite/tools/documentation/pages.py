"""Pages made of what is declared once: the tables, the commands, the lock, the queries of docs/cookbook.md."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from typer import Context

from cocite.config.described import cell

if TYPE_CHECKING:
    import duckdb

PYTHON = "3.11"
RECIPE = re.compile(
    r"(?P<asked>^## (?P<question>.+)\n(?:(?!## |```).*\n)*```sql\n(?P<query>(?:(?!```).*\n)+)```\n)"
    r"(?P<output>\n(?:\|.*\n)+)?",
    re.MULTILINE,
)
"""A question of the cookbook: a heading, what it means, a query in a block of SQL, and its output on the demo."""


def tables_page() -> str:
    """Every table with its columns, as Markdown."""
    from cocite.core.tables import TABLES

    lines = ["# Tables", "", "<!-- Generated from workflow/cocite/core/tables/declarations by `make docs`. -->", ""]
    lines += ["Every table is Parquet; paths are relative to the results folder.", ""]
    for table in TABLES.values():
        key = ", ".join(f"`{name}`" for name in table.key)
        lines += [f"## {table.name}", "", f"`{table.path}`", "", table.description, "", f"Primary key: {key}.", ""]
        lines += ["| column | type | null | meaning |", "|---|---|---|---|"]
        for name, column in table.columns.items():
            nullable = "yes" if column.nullable else ""
            lines.append(f"| `{name}` | {column.type} | {nullable} | {cell(column.meaning)} |")
        lines.append("")
    return "\n".join(lines)


def conda_environment(lock: str) -> str:
    """The lock as a conda environment, for those who run with `--sdm conda`."""
    pins = [line for line in lock.splitlines() if line and not line.startswith("#")]
    lines = [
        "# Generated from envs/lock.txt by `make docs`; pipeline.post-deploy.sh installs CoCite itself.",
        "channels: [conda-forge]",
        "dependencies:",
        f"  - python ={PYTHON}",
        "  - pip",
        "  - pip:",
        *(f"      - {pin}" for pin in pins),
    ]
    return "\n".join(lines) + "\n"


INTRODUCTION = """\
# Commands

<!-- Generated from the commands themselves by `make docs`. -->

A rule of the pipeline does no work itself: it calls one of these commands, which works by hand as well. Made for people
are `cocite show`, `cocite search`, `cocite serve`, `cocite check`, `cocite doctor` and `cocite corpus plan`. Every
command has `--help`. Where the environment is not active, put `.venv/bin/` before it.
"""


def commands_page(command_line: Any) -> str:
    """Every command with its arguments, options and defaults, as Markdown."""
    return "\n".join([INTRODUCTION, *_described(command_line, "cocite", level=1)])


def _described(command: Any, name: str, *, level: int) -> Iterator[str]:
    """The lines on a command, or on a group and the commands in it; `level` is that of the heading."""
    if level > 1:
        yield from ("#" * level + f" `{name}`", "", " ".join(command.help.split()), "")
    context = Context(command, info_name=name)
    if hasattr(command, "get_command"):
        for step in command.list_commands(context):
            yield from _described(command.get_command(context, step), f"{name} {step}", level=level + 1)
        return
    yield from (f"    {command.get_usage(context).removeprefix('Usage: ')}", "")
    if command.params:
        yield from ("| argument or option | type | default | meaning |", "|---|---|---|---|")
        yield from (_row(parameter, context) for parameter in command.params)
        yield ""


def _row(parameter: Any, context: Context) -> str:
    written = parameter.secondary_opts and f"`{parameter.opts[0]}` or `{parameter.secondary_opts[0]}`"
    kind = parameter.display_type(context).strip("<>").replace("|", "` or `")
    default = "required" if parameter.required else _option_default(parameter)
    cells = (written or f"`{parameter.opts[0]}`", f"`{kind}`", default, cell(parameter.help or ""))
    return f"| {' | '.join(cells)} |"


def _option_default(parameter: Any) -> str:
    if parameter.default is None:
        return ""
    if parameter.secondary_opts:
        return f"`{(parameter.opts if parameter.default else parameter.secondary_opts)[0]}`"
    return f"`{parameter.default}`"


def cookbook_page(page: str, db: "duckdb.DuckDBPyConnection") -> str:
    """The cookbook, whose queries are written by hand, with the output that they give on these results."""
    from cocite.tools.inspection.answers import as_text, fetched

    def with_output(recipe: re.Match[str]) -> str:
        header, rows = fetched(db.execute(recipe["query"]))
        cells = [[as_text(value).replace("|", r"\|") for value in row] for row in rows]
        lines = [header, ["---"] * len(header), *cells]
        return recipe["asked"] + "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    return RECIPE.sub(with_output, page)
