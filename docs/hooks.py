"""Hooks of MkDocs, which calls them by their names: the site has two pages more, and adapted links."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from typer.main import get_command

from cocite.cli import app
from cocite.tools.documentation import as_shown, commands_page, tables_page


def on_files(files: Any, config: Any) -> Any:
    """The files of the site with the pages of all tables and all commands."""
    files.append(File.generated(config, "tables.md", content=tables_page()))
    files.append(File.generated(config, "reference/commands.md", content=commands_page(get_command(app))))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The text of a page as the site shows it."""
    documentation = Path(config.docs_dir)
    return as_shown(markdown, documentation / page.file.src_uri, documentation=documentation)
