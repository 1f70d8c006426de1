"""The key `corpus.filters` of a corpus from OpenAlex: which of its works are taken."""

from typing import Annotated

from pydantic import Field, model_validator

from cocite.config.entries import Entry, Names, inconsistent

Year = Annotated[int, Field(ge=0, le=9999)]


class WorkFilters(Entry):
    """Which works of OpenAlex are taken; the others are counted and left out while they are read."""

    from_year: Year | None = None
    """First year of publication. With it or to_year, works without a year are left out."""
    to_year: Year | None = None
    """Last year of publication."""
    fields: Names = ()
    """Fields as OpenAlex names them, such as Computer Science; a work has a topic of one of them. Empty, any will do,
    and so will a work without a topic."""
    languages: Names = ()
    """Languages as codes, such as en. Empty, any will do, and so will a work without one."""
    types: Names = ()
    """Types of works as OpenAlex names them, such as article, review or preprint. Empty, any will do."""
    retracted: bool = False
    """Take works that are retracted as well."""
    paratext: bool = False
    """Take what is not scholarly by itself as well, such as covers and tables of contents."""

    @model_validator(mode="after")
    def _years_rise(self) -> "WorkFilters":
        if self.from_year is not None and self.to_year is not None and self.from_year > self.to_year:
            raise inconsistent(f".from_year ({self.from_year}) must not be after to_year ({self.to_year}).")
        return self
