"""What results hold: `cocite show`, `cocite search`, and the page of questions, docs/cookbook.md.

It makes nothing that a rule knows. What it reads are the tables that a folder of results holds, and the folders of
trained models.
"""

from typing import Literal

Form = Literal["text", "csv", "json"]
"""The ways to print an answer."""
