"""Which works a corpus takes: the first reason that holds is why a work is left out, and is counted."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cocite.config.works import WorkFilters
from cocite.corpus.ingest.accounting import KEPT, Tally

RETRACTED = "retracted works"
PARATEXT = "paratext"
YEAR = "works of another year than corpus asks for, or without one"
TYPE = "works of another type than corpus asks for, or without one"
LANGUAGE = "works in another language than corpus asks for, or without one"
FIELD = "works of another field than corpus asks for, or without one"


def is_taken(works: pa.RecordBatch, filters: WorkFilters, tally: Tally) -> NDArray[np.bool_]:
    """Which works are taken; all of them are counted, those that are not by the reason."""
    taken = np.ones(len(works), dtype=np.bool_)
    for reason, left_out in _left_out(works, filters).items():
        holds = taken & left_out.to_numpy(zero_copy_only=False)
        tally.outcomes[reason] += int(np.count_nonzero(holds))
        taken &= ~holds
    tally.outcomes[KEPT] += int(np.count_nonzero(taken))
    return taken


def _left_out(works: pa.RecordBatch, filters: WorkFilters) -> dict[str, pa.BooleanArray]:
    """Reason → which works it holds for, of the reasons that this corpus asks about."""
    reasons = {}
    if not filters.retracted:
        reasons[RETRACTED] = works.column("retracted")
    if not filters.paratext:
        reasons[PARATEXT] = works.column("paratext")
    if filters.from_year is not None or filters.to_year is not None:
        year, first, last = works.column("year"), filters.from_year or 0, filters.to_year or 9999
        within = pc.and_(pc.greater_equal(year, first), pc.less_equal(year, last))
        reasons[YEAR] = pc.invert(pc.fill_null(within, False))
    for reason, column, wanted in ((TYPE, "type", filters.types), (LANGUAGE, "language", filters.languages)):
        if wanted:
            reasons[reason] = pc.invert(pc.is_in(works.column(column), pa.array(wanted)))
    if filters.fields:
        reasons[FIELD] = pc.invert(_has_one_of(works.column("fields"), pa.array(filters.fields)))
    return reasons


def _has_one_of(lists: pa.ListArray, wanted: pa.StringArray) -> pa.BooleanArray:
    rows = pc.list_parent_indices(lists).filter(pc.is_in(lists.flatten(), wanted))
    found = np.zeros(len(lists), dtype=np.bool_)
    found[rows.to_numpy()] = True
    return pa.array(found)
