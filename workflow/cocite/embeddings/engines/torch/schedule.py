"""In which order the buckets of an epoch are trained: two partitions at a time on each device.

With one device, the next two partitions share one with the last two, so that one is swapped at a time. With several,
all devices train at once on partitions of their own, a round of a tournament in which everybody meets everybody.
"""

from itertools import pairwise

from cocite.core.randomness import generator

Bucket = tuple[int, int]
Pair = tuple[int, ...]
"""Partitions that are on a device at one time: two, or the only one there is."""


def rounds_of_epoch(partitions: int, devices: int, *, seed: int, epoch: int) -> list[list[Pair]]:
    """Rounds of at most `devices` pairs without a partition in common; each two partitions meet in one of them."""
    if partitions == 1:
        return [[(0,)]]
    names = generator(seed, "torch", "order of partitions", epoch).permutation(partitions).tolist()
    rounds = _tournament(partitions, devices) if devices > 1 else [[pair] for pair in _walk(partitions)]
    return [[tuple(names[part] for part in pair) for pair in pairs] for pairs in rounds]


def buckets_of_round(rounds: list[list[Pair]], number: int) -> list[list[Bucket]]:
    """The buckets of each pair of a round: one partition to the other and back, and once an epoch each to itself."""
    met = {part for pairs in rounds[:number] for pair in pairs for part in pair}
    return [
        [(first, second) for first in pair for second in pair if first != second or first not in met]
        for pair in rounds[number]
    ]


def _walk(partitions: int) -> list[Pair]:
    """All pairs, each of which shares a partition with the one before."""
    walk: list[Pair] = []
    for first in range(partitions - 1):
        others = range(first + 1, partitions)
        walk += [(first, other) for other in (others if first % 2 == 0 else reversed(others))]
    return walk


def _tournament(partitions: int, devices: int) -> list[list[Pair]]:
    """The circle method: one stays, the others move on by one seat a round; with an odd number one rests."""
    seats = list(range(partitions + partitions % 2))
    rounds = []
    for _ in seats[1:]:
        facing = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        pairs: list[Pair] = [pair for pair in facing if max(pair) < partitions]
        cuts = [*range(0, len(pairs), devices), len(pairs)]
        rounds += [pairs[start:stop] for start, stop in pairwise(cuts)]
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds
