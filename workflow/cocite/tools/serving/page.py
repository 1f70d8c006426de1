"""The page: one file with its style and its script in it, and a policy that lets nothing else run in it."""

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from string import Template

FOLDER = Path(__file__).parents[3] / "report"
"""The templates of pages; this one looks like the report."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page and the header that goes with it."""

    content: bytes
    policy: str
    """Content-Security-Policy: only this style and this script, and requests to this server alone."""


def read_page() -> Page:
    """The page from its templates. It holds no data: its script asks for them and shows them as text."""
    template, style, script = (
        "".join((FOLDER / name).read_text(encoding="utf-8") for name in names)
        for names in (["search/page.html"], ["style.css", "search/style.css"], ["search/map.js", "search/search.js"])
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(content=Template(template).substitute(style=style, script=script).encode(), policy=policy)


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
