"""Random choices that depend on the run's seed and on what is chosen, not on threads, jobs, shards or order.

A sequence of draws has its own generator (`generator`), and a choice among many papers is made by ranking a hash of
each (`priorities`), which is the same in every job and in any order.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What SplitMix64 adds before each number that it mixes in: 2⁶⁴ divided by the golden ratio."""


def derive_seed(seed: int, *names: str | int) -> int:
    """A 63-bit seed for one use of randomness, named by the step and by what distinguishes it from other uses."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """A NumPy generator for one use of randomness (see `derive_seed`)."""
    return np.random.default_rng(derive_seed(seed, *names))


def priorities(seed: int, name: str, *ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One pseudo-random 64-bit number for each row of some columns of ids; the smallest n are a uniform sample of n."""
    state = np.full(len(ids[0]), derive_seed(seed, name), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in ids:
            state = mix(state + GOLDEN + column.astype(np.int64).view(np.uint64))
    return state


def smallest(ids: NDArray[np.int64], count: int, seed: int, name: str) -> NDArray[np.int64]:
    """A uniform sample of so many of the ids, or all if there are fewer: those of the smallest priorities, in order."""
    return ids[np.argsort(priorities(seed, name, ids))[:count]]


def fractions(numbers: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Random 64-bit numbers as numbers from 0 on and below 1."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea & Flood, 2014), for NumPy's arrays and, in Numba, for single numbers."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
