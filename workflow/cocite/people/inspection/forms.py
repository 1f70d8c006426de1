"""The ways to print an answer; apart from `answers.py`, so that `cocite --help` need not import what prints."""

from typing import Literal

Form = Literal["text", "csv", "json"]
