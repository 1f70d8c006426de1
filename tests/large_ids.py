"""Large ids in place of small ones, in the same order, so that ties break alike."""

from collections.abc import Callable

import numpy as np

Relabel = Callable[[int], int]

SMALL_IDS = 2**27
_AT_RANDOM = np.random.default_rng(1).integers(0, 2**36, 4096).tolist()


def as_they_are(paper: int) -> int:
    return paper


def around_2_to_the_40(paper: int) -> int:
    return 2**40 + paper


def spread_over_63_bits(paper: int) -> int:
    """The upper bits are those of an id below `SMALL_IDS`, the 36 lower ones are random."""
    return paper << 36 | _AT_RANDOM[paper % 4096]


def far_from_the_first(paper: int) -> int:
    """The first few papers stay where they are, and the others go to the largest ids that there are."""
    return paper if paper < 4 else 2**63 - SMALL_IDS + paper


RELABELLINGS: tuple[Relabel, ...] = (as_they_are, around_2_to_the_40, spread_over_63_bits, far_from_the_first)
LARGE = RELABELLINGS[1:]
