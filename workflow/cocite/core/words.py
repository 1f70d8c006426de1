"""Durations and sizes in words, and texts that a terminal shows and does not obey."""

import re

UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, except tab and newline; what reverses the order of a line; and halves of surrogate pairs."""


def clock_time(seconds: float) -> str:
    """A duration as hours, minutes and seconds, such as 25:01:01; a day counts as 24 hours."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def about(seconds: float) -> str:
    """A duration in the unit that fits, such as 4 min."""
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"


def byte_size(size: float, figures: str = ",.1f") -> str:
    """A number of bytes in the unit that fits, such as 44.1 GB; `figures` is how the number before it is written."""
    for unit, length in UNITS.items():
        if size >= length:
            return f"{size / length:{figures}} {unit}"
    return f"{size:.0f} B"


def printable(text: str) -> str:
    """A text with each character that a terminal would obey written as its escape, such as \\x1b."""
    return OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)
