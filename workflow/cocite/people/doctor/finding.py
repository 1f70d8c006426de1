"""What the doctor says of one thing."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's."""

    verdict: Literal["ok", "warning", "failed"]
    what: str
    """What was looked at, and how it is."""
    to_do: str = ""
    """What helps; empty where all is well."""

    def __str__(self) -> str:
        """The line that is printed."""
        return " — ".join(part for part in (f"{self.verdict:7}", self.what, self.to_do) if part)
