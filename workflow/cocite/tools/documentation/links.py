"""A hook of MkDocs that adapts links written for readers of the files to the site.

A link to a file of the project that is not a page would lead nowhere, so the site shows the file's name instead. A link
whose text is the file name of a page shows the page's title. A link to a file that does not exist stays as it is:
MkDocs reports it, and the build fails.
"""

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
"""Text, path and place of a link with a path: neither a picture, nor an address, nor a place on the same page."""


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The text of a page as the site shows it; MkDocs calls this."""
    return as_shown(markdown, Path(page.file.abs_src_path), documentation=Path(config.docs_dir))


def as_shown(markdown: str, page: Path, *, documentation: Path) -> str:
    """The text of a page in which only links to pages, which are below `documentation`, stay links."""
    pages = documentation.resolve()

    def written(link: re.Match[str]) -> str:
        text, target, place = link.groups(default="")
        path = (page.parent / target).resolve()
        if not path.is_relative_to(pages.parent) or not path.exists():
            return link[0]
        is_its_name = path.name == Path(text.strip("`")).name
        if path.is_relative_to(pages):
            return f"[{_title(path)}]({target}{place})" if is_its_name and path.suffix == ".md" else link[0]
        name = f"`{path.relative_to(pages.parent)}`"
        return name if is_its_name else f"{text} ({name})"

    return LINK.sub(written, markdown)


def _title(page: Path) -> str:
    heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return heading[1] if heading else page.stem
