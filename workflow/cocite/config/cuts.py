"""Cuts by time: a year, or a day such as 2020-07-01, and which papers are on which side of one."""

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cocite.config.entries import unsuitable

Year = Annotated[int, Field(ge=0, le=9999)]


def day_of(text: str) -> date | None:
    """The day of the calendar that a text such as 2020-07-01 names; None for any other text."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None


def _checked(text: str) -> str:
    if day_of(text) is None:
        raise unsuitable("; it must be a year without quotes, or a day of the calendar such as 2020-07-01")
    return text


Cut = Year | Annotated[str, AfterValidator(_checked)]  # a year, or a day as a text


def first_day(cut: int | str) -> str:
    """The first day of a year; a day as it is. Days as texts are in the order of time."""
    return f"{cut:04}-01-01" if isinstance(cut, int) else cut


def last_day(cut: int | str) -> str:
    """The last day of a year; a day as it is."""
    return f"{cut:04}-12-31" if isinstance(cut, int) else cut


def year_of_day(cut: int | str) -> int | None:
    """The year of a day, of which papers need dates; None for a year, also as the text of a command."""
    day = day_of(str(cut))
    return day.year if day else None


def is_later(cut: int | str, than: Literal[">", ">="]) -> str:
    """SQL condition on the columns year and date: papers from after a cut, or from the cut on. Papers of the year of a
    day that have no date count as later. It is null for papers without a year."""
    year = year_of_day(cut)
    if year is None:
        return f"year {than} {int(cut)}"
    return f"(year > {year} OR (year = {year} AND coalesce(date {than} DATE '{cut}', true)))"
