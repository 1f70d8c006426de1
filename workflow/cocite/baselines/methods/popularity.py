"""The baseline `popularity`."""

from typing import Literal

from cocite.config.baseline import Baseline


class Popularity(Baseline):
    """Ranks papers by how often training sees them cited, without reading a word; scored on held-out papers only.

    It shows how much of a score is popularity: relevant papers are cited more often than random ones.
    """

    kind: Literal["popularity"]
    ranks_alone = True
    about_held_out = True
