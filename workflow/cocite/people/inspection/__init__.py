"""Inspect results: `cocite show`, `cocite search`, and the page of questions, docs/cookbook.md.

It reads the tables in a folder of results and the folders of trained models, and makes no output of a rule.
"""

from typing import Literal

Form = Literal["text", "csv", "json"]
"""The ways to print an answer."""
