"""Pages made of what is declared once: the schema of the configuration, the tables, the commands, the lock."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from typer import Context

PYTHON = "3.11"
Row = tuple[str, str, str, str, str]
"""The kind of entry that has a key, empty where all kinds do; then the key, its type, default and meaning."""


def configuration_page() -> str:
    """Every key of the configuration with type, default and description, a section for each top key, as Markdown."""
    from cocite.config.configuration import load_schema

    schema = load_schema()
    sections = {name: entry for name, entry in schema["properties"].items() if _has_keys(schema, entry)}
    plain = {name: entry for name, entry in schema["properties"].items() if name not in sections}
    lines = [
        "# Configuration",
        "",
        "<!-- Generated from workflow/schemas/config.schema.yaml by `make docs`. -->",
        "",
        schema["description"].strip(),
        "",
        *_table(_rows(schema, {"properties": plain}, "")),
    ]
    for name, entry in sections.items():
        lines += [f"## {name}", "", " ".join(entry["description"].split()), ""]
        lines += _table(_rows(schema, {"properties": {name: entry}}, ""), without=name)
    return "\n".join(lines)


def tables_page() -> str:
    """Every table with its columns, as Markdown."""
    from cocite.tables import TABLES

    lines = ["# Tables", "", "<!-- Generated from workflow/cocite/tables/declarations by `make docs`. -->", ""]
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


def _table(rows: Iterator[Row], *, without: str = "") -> list[str]:
    """The rows as a table, without that of one key; a key of several kinds has one row, with their names."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for kind, *cells in rows:
        if cells[0] != f"`{without}`":
            kinds.setdefault(tuple(cells), []).append(kind)
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for row, of_kinds in kinds.items():
        names = ", ".join(f"`{kind}`" for kind in dict.fromkeys(of_kinds) if kind)
        *others, meaning = row
        lines.append(f"| {' | '.join(others)} | {f'({names}) ' if names else ''}{meaning} |")
    return [*lines, ""]


def _has_keys(schema: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return {**_referred(schema, entry), **entry}.get("type") == "object"


def _rows(schema: Mapping[str, Any], node: Mapping[str, Any], prefix: str, kind: str = "") -> Iterator[Row]:
    """A row for each key below a node of the schema; `<name>` stands for a name that the user chooses."""
    for name, written in node.get("properties", {}).items():
        if written is True:
            continue
        key = f"{prefix}{name}"
        entry = {**_referred(schema, written), **written}
        if entry.get("type") == "object":
            yield kind, f"`{key}`", "names and settings", "", cell(entry.get("description", ""))
        else:
            yield kind, f"`{key}`", _type(entry), _default(entry), cell(entry.get("description", ""))
        yield from _rows(schema, entry, f"{key}.", kind)
        if isinstance(entry.get("additionalProperties"), dict):
            named = _referred(schema, entry["additionalProperties"])
            yield from _rows(schema, named, f"{key}.<name>.")
    for name in ("then", "else"):
        if name in node:
            branch = _referred(schema, node[name])
            yield from _rows(schema, branch, prefix, branch.get("title", ""))


def _referred(schema: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return dict(node)
    referred: dict[str, Any] = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    return referred


def _type(entry: Mapping[str, Any]) -> str:
    if "enum" in entry:
        return " or ".join(f"`{choice}`" for choice in entry["enum"])
    kinds = entry.get("type", "")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _default(entry: Mapping[str, Any]) -> str:
    if "default" not in entry:
        return ""
    default = entry["default"]
    return f"`{default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)}`"


def cell(text: str) -> str:
    """A text escaped for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


INTRODUCTION = """\
# Commands

<!-- Generated from the commands themselves by `make docs`. -->

A rule of the pipeline does no work itself: it calls one of these commands, which works by hand as well. Made for people
are `cocite show`, `cocite search`, `cocite check`, `cocite doctor` and `cocite corpus plan`. Every command
has `--help`. Where the environment is not active, put `.venv/bin/` before it.
"""


def commands_page(command_line: Any) -> str:
    """Every command with its arguments, options and defaults, as Markdown."""
    return "\n".join([INTRODUCTION, *_described(command_line, "cocite", level=1)])


def _described(command: Any, name: str, *, level: int) -> Iterator[str]:
    """The lines on a command, or on a group and the commands in it; `level` is that of the heading."""
    if level > 1:
        yield from ("#" * level + f" `{name}`", "", " ".join(command.help.split()), "")
    if hasattr(command, "commands"):
        for step, inner in command.commands.items():
            yield from _described(inner, f"{name} {step}", level=level + 1)
        return
    context = Context(command, info_name=name)
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
