"""How many partitions a training takes, and the memory that follows: by figures that were measured."""

from math import ceil, inf

from cocite.core.errors import InputError

FIXED_MB = 700
"""torch, Numba, a stretch of edges, and the edges that link prediction is measured on."""
BYTES_OF_PAPER = 45
"""A paper's id while the table is written, its place among the measured ones, and whether an edge trained it."""
BYTES_OF_SQUARES = 4
BYTES_OF_BATCH_VALUE = 8
"""A number of a vector of a batch and of its gradient, in float32."""
MOST_PARTITIONS = 64
"""More would be swapped more often than trained."""


def vectors_mb(papers: float, dimension: int, bytes_of_number: int) -> float:
    """Size of all vectors with the state of their optimiser, MB."""
    return papers * (dimension * bytes_of_number + BYTES_OF_SQUARES) / 1e6


def overhead_mb(papers: float, values_of_batch: int) -> float:
    """Memory that a training takes on the machine beside its vectors, MB."""
    return FIXED_MB + (papers * BYTES_OF_PAPER + values_of_batch * BYTES_OF_BATCH_VALUE) / 1e6


def partitions_within(
    bound_mb: float | None, vectors: float, *, overhead: float = 0, papers: int, devices: int = 1
) -> int:
    """The fewest partitions of which each device holds two within the bound, or of all the only one.

    `vectors` and the `overhead` beside them are sizes in MB. Raises `InputError` where even the smallest partitions are
    too large, or the papers too few for the devices.
    """
    room = inf if bound_mb is None else bound_mb - overhead
    if devices == 1 and vectors <= room:
        return 1
    most = min(MOST_PARTITIONS, papers)
    fewest = max(2 * devices, 3)
    if fewest > most:
        raise InputError(
            f"--settings: {devices} GPUs take {fewest} partitions, but there are {papers} papers; lower gpus."
        )
    if room * most < 2 * vectors:
        raise InputError(
            f"--settings: {papers:,} papers take {ceil(overhead + 2 * vectors / most):,} MB at least, in {most} "
            f"partitions, and {bound_mb:,.0f} MB are allowed or free; raise memory_mb or lower dimension."
        )
    return max(fewest, ceil(2 * vectors / room))
