"""Makes the next release of a release: a folder that holds the newer one whole, and the diffs that lead to it.

What real diffs do happens to some records of each dataset, drawn by the seed: they are edited, repeated as they were,
deleted or added, and keys that no record has are deleted. Some keys were in the last diff already, so that what it
updated is deleted, and what it deleted comes back. The folder keeps the diffs of all steps.

    <folder>/updates/<from>-to-<to>/<dataset>/<date>_<number>.gz      records to insert or replace by primary key
    <folder>/deletes/<from>-to-<to>/<dataset>/<date>_<number>.gz      records to remove: keys alone, or whole records

These are the paths of real diffs, whose files are named alike in all datasets, for updates and for deletes. A dataset
without changes of a kind has no file of it.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import count
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from cocite.config.release_folder import stated_by
from cocite.core.atomic import atomic_path, write_json
from cocite.core.errors import InputError
from cocite.demo.release import Record, read_rows, shard_paths, write_rows

UPDATES, DELETES = "updates", "deletes"
KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citationid"}

Rows = dict[int, Record]
Edit = Callable[[Record], dict[str, Any]]


def read_release(folder: Path) -> Mapping[str, Any]:
    """The metadata of the release in a folder. Raises `InputError` if it lacks the id or the datasets."""
    path = folder / "release.json"
    if not path.exists():
        raise InputError(f"{path} does not exist, so {folder} is not the folder of a release.")
    described = stated_by(folder)
    for name in ("release_id", "datasets"):
        if name not in described:
            raise InputError(f"{path}: lacks the key {name!r}.")
    return described


def generate_successor(older: Path, output: Path, *, release: str, share: float, seed: int) -> None:
    """Write the release `release` (a date) that follows the one in `older`, and the diffs that lead to it.

    Each kind of change concerns this share of the records of a dataset, rounded up; with 0, nothing changes.
    """
    described = read_release(older)
    start, random = described["release_id"], Random(f"{seed} {release}")
    earlier = described.get("earlier_releases", [])
    rows = {name: {row[key]: row for row in read_rows(older / name)} for name, key in KEYS.items()}
    papers = sorted(rows["papers"])
    fresh = {"corpusid": count(max(rows["papers"].keys() | rows["abstracts"]) + 1)}
    fresh["citationid"] = count(max(rows["citations"]) + 1)
    with atomic_path(output) as folder:
        for kind in (UPDATES, DELETES):
            if (older / kind).exists():
                shutil.copytree(older / kind, folder / kind)
        for name, key in KEYS.items():
            last = [_last_keys(older, kind, earlier, name, key) for kind in (UPDATES, DELETES)]
            changes = ceil(share * len(rows[name]))
            updates, deletes = _draw(rows[name], key, _edits(name, papers, random), last, fresh[key], changes, random)
            shards = len(list((older / name).glob("*.gz")))
            _write_diff(folder, start, release, name, key, updates, deletes, shards)
            newer = {number: row for number, row in rows[name].items() if number not in deletes} | updates
            (folder / name).mkdir(parents=True)
            shutil.copyfile(older / name / "README.txt", folder / name / "README.txt")
            write_rows(newer.values(), shard_paths(folder / name, date.fromisoformat(release), shards))
        described = {"release_id": release, "earlier_releases": [*earlier, start], "datasets": list(KEYS)}
        write_json(folder / "release.json", described)


def _draw(rows: Rows, key: str, edits: Sequence[Edit], last: Sequence[set[int]], fresh, changes, random) -> list[Rows]:
    """The records that a diff updates, and those that it deletes, of which some are not there."""
    left = random.sample(sorted(rows), len(rows))
    last_updated, last_deleted = last
    left.sort(key=lambda number: number not in last_updated)
    deletes = {number: rows[number] for number in left[:changes]}
    del left[:changes]
    deletes |= {number: rows[number] for number in (left.pop() for _ in range(changes))}
    updates = {}
    for edit in edits:
        updates |= {number: rows[number] | edit(rows[number]) for number in (left.pop() for _ in range(changes))}
    added = [*(next(fresh) for _ in range(2 * changes)), *sorted(last_deleted - rows.keys())[:changes]]
    for number in added:
        model = rows[random.choice(left)]
        updates[number] = model | edits[0](model) | {key: number}
    return [updates, deletes | {number: {key: number} for number in (next(fresh) for _ in range(changes))}]


def _edits(name: str, papers: Sequence[int], random: Random) -> list[Edit]:
    """What is done to records of a dataset, to each the same."""
    return {
        "papers": [
            lambda row: {"title": f"{row['title'] or 'Untitled'}, corrected"},
            lambda row: {"year": (row["year"] or 2000) - 1},
            lambda row: {"citationcount": row["citationcount"] + 3},
            lambda row: {},
        ],
        "abstracts": [
            lambda row: {"abstract": f"{row['abstract']} An error has been corrected."},
            lambda row: {},
        ],
        "citations": [
            lambda row: {"isinfluential": not row["isinfluential"]},
            lambda row: {"citingcorpusid": random.choice(papers)},
            lambda row: {"citedcorpusid": random.choice(papers)},
            lambda row: {"citedcorpusid": None},
            lambda row: {"contexts": ["Seen again."], "intents": [random.sample(["background", "methodology"], 1)]},
            lambda row: {"contexts": None, "intents": None},
            lambda row: {},
        ],
    }[name]


def diff_folder(release: Path, kind: str, start: str, end: str, dataset: str) -> Path:
    return release / kind / f"{start}-to-{end}" / dataset


def _last_keys(release: Path, kind: str, earlier: Sequence[str], name: str, key: str) -> set[int]:
    folders = release.glob(f"{kind}/{earlier[-1]}-to-*/{name}") if earlier else ()
    return {row[key] for folder in folders for row in read_rows(folder)}


def _write_diff(
    release: Path, start: str, end: str, name: str, key: str, updates: Rows, deletes: Rows, files: int
) -> None:
    """Write a diff, in so many files of updates and two of deletes, one of keys and one of whole records."""
    gone = [row if place % 2 else {key: row[key]} for place, row in enumerate(deletes.values())]
    for kind, rows, number in ((UPDATES, list(updates.values()), files), (DELETES, gone, 2)):
        if rows:
            folder = diff_folder(release, kind, start, end, name)
            folder.mkdir(parents=True)
            write_rows(rows, [folder / f"{end.replace('-', '')}_{place}.gz" for place in range(1, number + 1)])
