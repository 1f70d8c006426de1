"""Makes the next release of a release: a folder that holds the newer one whole, and the diffs that lead to it.

Everything that real diffs do to papers, abstracts and citations happens to some records (see `paper_changes` and
`citation_changes`); what changes is drawn by primary key, so that it does not depend on the number of shards. The
newer release can have a successor in turn; its folder keeps the diffs of all steps (see `diffs`), and its
`release.json` names the earlier releases. Memory holds keys and what changes; records are streamed.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from tests.releases.citation_changes import CitationColumns, choose_citation_changes
from tests.releases.diffs import DELETES, PRIMARY_KEYS, UPDATES, read_keys, write_diff
from tests.releases.paper_changes import choose_abstract_changes, choose_paper_changes
from tests.releases.revision import Ints, Revision, Touched, revise

from cocite.core.errors import InputError
from cocite.core.randomness import generator
from cocite.core.tables.files import atomic_path, write_json
from cocite.corpus.sources.demo.catalogue import read_release
from cocite.demo.release import parse_date
from cocite.demo.shards import Record, read_rows, shard_paths, write_rows

_FEWEST_PAPERS = 3
_MOST_SHARE = 0.05


def generate_successor(older: Path, output: Path, *, release: str, share: float, seed: int) -> None:
    """Write the release `release` (a date) that follows the one in `older`, and the diffs that lead to it.

    Each kind of change concerns this share of the records of a dataset, rounded up; with 0, nothing changes.
    Raises `InputError` where the release is no later date, the share is out of range, or `older` is no release of
    papers, abstracts and citations, or has too few of them.
    """
    described = read_release(older)
    day = parse_date(release)
    if str(day) <= described["release_id"]:
        raise InputError(f"--release: {release} is not later than {described['release_id']}, which it follows.")
    if not 0 <= share <= _MOST_SHARE:
        raise InputError(f"--share: is {share}, must be from 0 to {_MOST_SHARE}: there are many kinds of changes.")
    revisions = _choose_revisions(older, described, day, share, seed)
    with atomic_path(output) as folder:
        for kind in (UPDATES, DELETES):
            if (older / kind).exists():
                shutil.copytree(older / kind, folder / kind)
        counts = {
            name: _write_dataset(older, folder, name, described["release_id"], day, revision)
            for name, revision in revisions.items()
        }
        earlier = [*described.get("earlier_releases", []), described["release_id"]]
        write_json(
            folder / "release.json",
            {"release_id": str(day), "earlier_releases": earlier, "datasets": list(revisions), **counts},
        )


def _choose_revisions(
    older: Path, described: Mapping[str, Any], day: date, share: float, seed: int
) -> dict[str, Revision]:
    rng = generator(seed, "demo", "successor", str(day))
    papers, abstracts = (_keys(older, name) for name in ("papers", "abstracts"))
    citations = CitationColumns.of(read_rows(older / "citations"))
    touched = {name: _touched(older, described, name) for name in PRIMARY_KEYS}
    if len(np.intersect1d(papers, abstracts)) < _FEWEST_PAPERS or not len(citations.key):
        raise InputError(f"{older} is too small: it must hold {_FEWEST_PAPERS} papers with an abstract, and citations.")
    corpusids = count(int(max(papers.max(), abstracts.max())) + 1)
    changes = choose_paper_changes(
        papers, abstracts, touched["papers"], fresh=corpusids, year=day.year, share=share, rng=rng
    )
    remaining = np.array(sorted({*papers.tolist(), *changes.models} - changes.revision.removed))
    return {
        "papers": changes.revision,
        "abstracts": choose_abstract_changes(
            abstracts, papers, changes, touched["abstracts"], fresh=corpusids, share=share, rng=rng
        ),
        "citations": choose_citation_changes(
            citations,
            remaining,
            changes,
            touched["citations"],
            fresh=count(int(citations.key.max()) + 1),
            share=share,
            rng=rng,
        ),
    }


def _keys(older: Path, dataset: str) -> Ints:
    return np.array([row[PRIMARY_KEYS[dataset]] for row in read_rows(older / dataset)], dtype=np.int64)


def _touched(older: Path, described: Mapping[str, Any], dataset: str) -> Touched:
    """The keys of the diff that led to the older release; none where no diff did."""
    start = described.get("earlier_releases", [""])[-1]
    updated, deleted = (read_keys(older, kind, start, described["release_id"], dataset) for kind in (UPDATES, DELETES))
    return Touched(updated=updated, deleted=deleted)


def _write_dataset(older: Path, folder: Path, name: str, start: str, day: date, revision: Revision) -> int:
    """Write a dataset of the newer release and its diff; return its number of rows, of citations that of pairs."""
    shards = shard_paths(folder / name, day, len(list((older / name).glob("*.gz"))))
    (folder / name).mkdir(parents=True)
    if (older / name / "README.txt").exists():
        shutil.copyfile(older / name / "README.txt", folder / name / "README.txt")
    pairs: set[tuple[int, int]] = set()
    with write_diff(folder, start, day, name, len(shards)) as diff:
        rows = revise(read_rows(older / name), name, revision, diff)
        written = write_rows(_noting_pairs(rows, pairs) if name == "citations" else rows, shards)
    return len(pairs) if name == "citations" else written


def _noting_pairs(rows: Iterable[Record], pairs: set[tuple[int, int]]) -> Iterator[Record]:
    """The same rows; the pairs of a citing and a known cited paper are added to the set on the way."""
    for row in rows:
        if row["citedcorpusid"] is not None:
            pairs.add((row["citingcorpusid"], row["citedcorpusid"]))
        yield row
