"""The section `corpus`: where the release comes from, and how it is cut for work."""

from typing import TYPE_CHECKING

from cocite.config.plugins import one_of
from cocite.config.source import Source

SOURCES = "cocite.corpus.sources"

if TYPE_CHECKING:
    Corpus = Source
else:
    Corpus = one_of(SOURCES, "source")
