"""The pairs of a co-citation graph, passed on to the queries among their papers."""

from numba import njit

from cocite.ground.id_sets import contains, place_of
from cocite.triplets.drawing import strike
from cocite.triplets.picking import offer


@njit(nogil=True, cache=True)
def pass_on(pairs, queries, listed, min_count, required, positives, easy, is_known):  # type: ignore[no-untyped-def]
    """Offer each query among a pair's papers the other one, which is no easy negative of it then."""
    papers, others, counts = pairs
    for row in range(len(papers)):
        for query, paper in ((papers[row], others[row]), (others[row], papers[row])):
            place = place_of(queries, query)
            if place >= 0:
                is_known[place] = True
                strike(easy, place, paper)
                if counts[row] >= min_count and (not required or contains(listed, paper)):
                    offer(positives, place, query, paper, 0, papers[:0])
