"""Large ids in place of the small ones of a release, in the same order and with equally many digits, and back again.

The sorted small ids lie in the file that the environment names. The n-th of them becomes 2⁴⁰ plus itself, or a random
number within the n-th of equal parts of all numbers from 10¹⁸ to 2⁶³.
"""

import os
import re

import numpy as np

FILE = "RELABELLED_IDS"
FAR, SPREAD = 2**40, 10**18
PARTS = 2**63 - 1 - SPREAD


def small_ids() -> np.ndarray:
    return np.load(os.environ[FILE])


def around_2_to_the_40(small: np.ndarray) -> np.ndarray:
    return FAR + small


def spread_over_63_bits(small: np.ndarray) -> np.ndarray:
    part = PARTS // len(small)
    large = SPREAD + np.arange(len(small)) * part + np.random.default_rng(1).integers(0, part - 1, len(small))
    return large + ((large ^ small) & 1)  # Papers stay in their bucket of two.


def back(number: int, small: np.ndarray) -> int:
    """The small id of an id; any other number is as it was. Numba compiles it as well."""
    if number >= SPREAD:
        return small[(number - SPREAD) // (PARTS // len(small))]
    return number - FAR if FAR <= number < 2 * FAR else number


def text_back(text: str, small: np.ndarray) -> str:
    """A text with the small ids in place of the large ones in it."""
    return re.sub("[0-9]{13,19}", lambda digits: str(back(int(digits[0]), small)), text)
