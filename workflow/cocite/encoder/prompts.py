"""What an encoder is given before short queries and before documents, and how short queries are cut.

Both lie in the encoder's folder and travel with it: the prompts where sentence-transformers looks for them, so that
`encode(text, prompt_name="query")` puts them before its texts, and the length of queries in a file of ours.
"""

from dataclasses import dataclass
from pathlib import Path

from cocite.config.encoders import EncoderSettings
from cocite.core.tables.files import read_json, write_json

PROMPTS = "config_sentence_transformers.json"
QUERIES = "short_queries.json"
QUERY, DOCUMENT = "query", "document"


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """What texts begin with, and how long short queries are."""

    query: str = ""
    """Before a short query."""
    document: str = ""
    """Before a document, such as a title and an abstract."""
    query_max_length: int | None = None
    """Tokens of a short query at most, those of its prompt and the special ones among them; None for as many as a
    document has."""

    def of(self, *, is_query: bool) -> str:
        """What is put before a text."""
        return self.query if is_query else self.document


def write_prompts(folder: Path, settings: EncoderSettings) -> None:
    """Write what the settings say into the folder of an encoder."""
    asked = settings.prompts
    if asked is not None:
        prompts = {QUERY: asked.query or "", DOCUMENT: asked.document or ""}
        write_json(folder / PROMPTS, {"prompts": prompts, "default_prompt_name": None})
    if settings.query_max_length is not None:
        write_json(folder / QUERIES, {"max_length": settings.query_max_length})


def read_prompts(folder: Path) -> Prompts:
    """What the folder of an encoder says; nothing where it says nothing."""
    prompts = read_json(folder / PROMPTS).get("prompts", {}) if (folder / PROMPTS).is_file() else {}
    length = read_json(folder / QUERIES)["max_length"] if (folder / QUERIES).is_file() else None
    return Prompts(query=prompts.get(QUERY, ""), document=prompts.get(DOCUMENT, ""), query_max_length=length)
