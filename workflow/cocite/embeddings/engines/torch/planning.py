"""How many partitions a training takes, and the memory that follows: by figures that were measured."""

from math import ceil, inf

from cocite.ground.errors import InputError

FIXED_MB = 700
"""torch, Numba, a stretch of edges, the batches, and the edges that link prediction is measured on."""
BYTES_OF_PAPER = 45
"""A paper's id while the table is written, its place among the measured ones, and whether an edge trained it."""
BYTES_OF_SQUARES = 4
MOST_PARTITIONS = 64


def vectors_mb(papers: float, dimension: int, bytes_of_number: int) -> float:
    """Size of all vectors with the state of their optimiser, MB."""
    return papers * (dimension * bytes_of_number + BYTES_OF_SQUARES) / 1e6


def beside_vectors_mb(papers: float) -> float:
    """Memory that a training takes on the machine beside its vectors, MB."""
    return FIXED_MB + papers * BYTES_OF_PAPER / 1e6


def partitions_within(
    bound_mb: float | None, vectors: float, *, beside: float = 0, papers: int, devices: int = 1
) -> int:
    """The fewest partitions of which each device holds two within the bound, or of all the only one.

    `vectors` and what lies `beside` them are sizes in MB. Raises `InputError` where even the smallest partitions are
    too large.
    """
    room = inf if bound_mb is None else bound_mb - beside
    if devices == 1 and vectors <= room:
        return 1
    most = min(MOST_PARTITIONS, papers)
    fewest = max(2 * devices, 3)
    needed = beside + 2 * vectors / most
    if room * most < 2 * vectors or fewest > most:
        raise InputError(
            f"--settings: {papers:,} papers take {ceil(needed):,} MB at least, in {most} partitions, and {devices} "
            f"devices need {fewest}; memory_mb is {bound_mb or 'not bounded'}: raise it, or lower dimension or gpus."
        )
    return max(fewest, ceil(2 * vectors / room))
