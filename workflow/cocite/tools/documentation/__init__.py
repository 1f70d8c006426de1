"""Generated files, which a test keeps in step with what they are made from.

docs/config.md and workflow/schemas come from the configuration's entries, docs/tables.md from the declarations,
docs/reference/commands.md from the command line, and envs/pipeline.yaml from the lock.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True)

ROOT = Path(__file__).parents[4]
COOKBOOK = ROOT / "docs" / "cookbook.md"


@app.command()
def write(context: typer.Context) -> None:
    """Write docs/config.md, docs/tables.md, docs/reference/commands.md and envs/pipeline.yaml."""
    from cocite.core.tables.files import write_text

    for path, text in generated(context.find_root().command).items():
        write_text(ROOT / path, text)


@app.command()
def cookbook(results: Annotated[Path, typer.Option(help="Folder of the demo's results.")] = Path("results")) -> None:
    """Run the queries of docs/cookbook.md again, and write their output below them."""
    from cocite.core.tables.files import write_text
    from cocite.tools.documentation.pages import cookbook_page
    from cocite.tools.inspection.opening import open_results

    with open_results(results) as database:
        write_text(COOKBOOK, cookbook_page(COOKBOOK.read_text(encoding="utf-8"), database))


def generated(command_line: Any) -> dict[str, str]:
    """The generated files, by their path from the project's root; `command_line` is that of all commands."""
    from cocite.config.described import configuration_page, json_schema
    from cocite.tools.documentation.pages import commands_page, conda_environment, tables_page

    return {
        "docs/config.md": configuration_page(),
        "workflow/schemas/config.schema.json": json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n",
        "docs/tables.md": tables_page(),
        "docs/reference/commands.md": commands_page(command_line),
        "envs/pipeline.yaml": conda_environment((ROOT / "envs" / "lock.txt").read_text(encoding="utf-8")),
    }
