"""Which columns of a work in Parquet a corpus needs, and what each holds."""

from cocite.config.works import WorkFilters

TITLES = ("title", "display_name")
"""Columns of which either will do."""
INDEX = "abstract_inverted_index"
NAMES_OF_AUTHORS = "authorships.author.display_name"
"""The column that is needed as well where the names of authors are kept."""
MAG = "ids.mag"
"""The column that is needed as well where works are matched with Semantic Scholar's papers; it is downloaded in any
case, so that a match that is added later does not mean other files."""
_ALWAYS = {
    **dict.fromkeys(("id", "doi", INDEX), "text"),
    **dict.fromkeys(("publication_year", "cited_by_count"), "whole numbers"),
    "referenced_works": "lists of text",
    "primary_location.source.display_name": "text in structures",
    "primary_topic.field.display_name": "text in structures",
    "topics.field.display_name": "text in lists of structures",
}
_OF_AUTHORS = {NAMES_OF_AUTHORS: "text in lists of structures"}
_FLAGS, _TEXTS = ("is_retracted", "is_paratext"), ("type", "language")


def columns_read(filters: WorkFilters, *, authors: bool, mag: bool = False) -> dict[str, str]:
    """The columns that are read, and what each holds, but for the titles; filters ask for some more."""
    asked = {
        **dict(zip(_FLAGS, (not filters.retracted, not filters.paratext), strict=True)),
        **dict(zip(_TEXTS, (bool(filters.types), bool(filters.languages)), strict=True)),
    }
    return {
        **_ALWAYS,
        **(_OF_AUTHORS if authors else {}),
        **({MAG: "whole numbers or text"} if mag else {}),
        **{name: "true or false" if name in _FLAGS else "text" for name, is_asked in asked.items() if is_asked},
    }


def columns_downloaded(*, authors: bool) -> frozenset[str]:
    """The columns that are downloaded: those of any filters, so that other filters do not mean other files."""
    return frozenset({*_ALWAYS, *TITLES, *_FLAGS, *_TEXTS, MAG, *(_OF_AUTHORS if authors else {})})
