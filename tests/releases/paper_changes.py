"""Which papers and abstracts change between two releases, and how: all that real diffs are known to do.

Papers and abstracts come and go apart: an abstract may be there before its paper and stay after it. Some keys were
in the last diff already, so that what it updated is deleted, and what it deleted comes back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from tests.releases.revision import Ints, Lots, Revision, Touched, choose_models, keep, sample, with_fields

from cocite.demo.shards import Record


@dataclass(frozen=True, kw_only=True)
class PaperChanges:
    """What becomes of the papers, and what abstracts and citations must know of it."""

    revision: Revision
    withdrawn: list[int]
    """Papers that are gone with all that belongs to them."""
    models: dict[int, int]
    """New paper → the older one that it goes on with."""


def choose_paper_changes(
    papers: Ints,
    abstracts: Ints,
    touched: Touched,
    *,
    fresh: Iterator[int],
    year: int,
    share: float,
    rng: np.random.Generator,
) -> PaperChanges:
    """Changes of papers, each kind of this share of them; a new paper is of this year and has a key of `fresh`.

    `papers` and `abstracts` are the keys of the older release, `touched` those of papers in the diff that led to it.
    """
    lots = Lots(papers, share, rng)
    withdrawn = lots.draw()
    alone = lots.draw(np.isin(papers, abstracts)) + lots.draw(np.isin(papers, list(touched.updated)))
    edits = {key: edit for edit in (retitle, redate, recount, keep) for key in lots.draw()}
    revision = Revision(edits=edits, removed={*withdrawn, *alone}, absent=list(islice(fresh, lots.count)))

    new = list(islice(fresh, 2 * lots.count))
    late = sample({*abstracts.tolist()} - {*papers.tolist()} - touched.deleted, lots.count, rng)
    again = sample(touched.deleted - {*papers.tolist()}, lots.count, rng)
    added = [*new, *late, *again]
    models = choose_models(np.intersect1d(papers, abstracts), added, rng)
    revision.add(models, [partial(new_paper, corpusid=key, year=year) for key in added])
    return PaperChanges(revision=revision, withdrawn=withdrawn, models=dict(zip(new, models[: len(new)], strict=True)))


def choose_abstract_changes(
    abstracts: Ints,
    papers: Ints,
    changes: PaperChanges,
    touched: Touched,
    *,
    fresh: Iterator[int],
    share: float,
    rng: np.random.Generator,
) -> Revision:
    """Changes of abstracts, each kind of this share of them; every second new paper gets one."""
    lots = Lots(abstracts, share, rng)
    withdrawn = np.isin(abstracts, changes.withdrawn)
    lots.withhold(withdrawn | np.isin(abstracts, list(changes.revision.removed)))
    removed = {*abstracts[withdrawn].tolist(), *lots.draw(), *lots.draw(np.isin(abstracts, list(touched.updated)))}
    edits = {key: edit for edit in (correct_abstract, keep) for key in lots.draw()}
    revision = Revision(edits=edits, removed=removed, absent=list(islice(fresh, lots.count)))

    with_abstract = dict(list(changes.models.items())[::2])
    again = sample(touched.deleted - {*abstracts.tolist()}, lots.count, rng)
    without = {*papers.tolist()} - {*abstracts.tolist(), *again} - changes.revision.removed
    others = [*islice(fresh, lots.count), *again, *sample(without, lots.count, rng)]
    revision.add(
        [*with_abstract.values(), *choose_models(abstracts, others, rng)],
        [partial(with_fields, corpusid=key) for key in [*with_abstract, *others]],
    )
    return revision


def retitle(row: Record) -> Record:
    """A paper under another title."""
    return {**row, "title": f"{row['title'] or 'Untitled'}, corrected"}


def redate(row: Record) -> Record:
    """A paper of another year."""
    return {**row, "year": (row["year"] or 2000) - 1}


def recount(row: Record) -> Record:
    """A paper that was cited three times more and is influential once more."""
    more = {"citationcount": 3, "influentialcitationcount": 1}
    return {**row, **{name: row[name] + count for name, count in more.items()}}


def new_paper(model: Record, corpusid: int, year: int) -> Record:
    """A paper that goes on with the work of another one, cites as much and is not cited."""
    return {
        **model,
        "corpusid": corpusid,
        "externalids": {**dict.fromkeys(model["externalids"]), "CorpusId": str(corpusid)},
        "url": f"https://example.org/paper/{corpusid}",
        "title": f"{model['title'] or 'Untitled'}, continued",
        "year": year,
        "publicationdate": None,
        "citationcount": 0,
        "influentialcitationcount": 0,
    }


def correct_abstract(row: Record) -> Record:
    """An abstract with one sentence more."""
    return {**row, "abstract": f"{row['abstract']} An error in an earlier version has been corrected."}
