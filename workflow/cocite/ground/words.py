"""Durations and sizes in words, for pages and terminals."""

UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}


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
