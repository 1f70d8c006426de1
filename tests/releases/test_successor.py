"""The successor of a release: its diffs lead to it exactly, and hold what real diffs are known to do."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.releases.successor import KEYS, diff_folder, generate_successor

from cocite.demo.release import generate_release

Rows = list[dict[str, Any]]
ReadRows = Callable[[Path], Rows]
RELEASES = ["2026-01-06", "2026-01-13", "2026-01-20"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A release of 200 papers, and two that follow it."""
    folders = [tmp_path_factory.mktemp("releases") / release for release in RELEASES]
    generate_release(folders[0], release=RELEASES[0], papers=200, topics=6, shards=3, seed=7)
    for older, newer in pairwise(folders):
        generate_successor(older, newer, release=newer.name, share=0.01, seed=7)
    return folders


@pytest.fixture
def diffs(folders: list[Path], read_rows: ReadRows) -> Callable[[str], list[tuple[Rows, Rows]]]:
    """The updates and the deletes of a dataset in each step."""

    def read(dataset: str) -> list[tuple[Rows, Rows]]:
        return [
            tuple(read_rows(diff_folder(folders[2], kind, *step, dataset)) for kind in ("updates", "deletes"))
            for step in pairwise(RELEASES)
        ]

    return read


@pytest.mark.parametrize("dataset", KEYS)
@pytest.mark.parametrize("first", [0, 1])
def test_the_diffs_lead_to_the_newest_release_and_name_each_key_once(dataset, first, folders, diffs, read_rows):
    key = KEYS[dataset]
    records = {row[key]: row for row in read_rows(folders[first] / dataset)}
    for updates, deletes in diffs(dataset)[first:]:
        assert len({row[key] for row in (*updates, *deletes)}) == len(updates) + len(deletes) > 0
        records |= {row[key]: row for row in updates}
        for row in deletes:
            records.pop(row[key], None)
    newest = read_rows(folders[2] / dataset)
    assert sorted(records.values(), key=lambda row: row[key]) == sorted(newest, key=lambda row: row[key])


@pytest.mark.parametrize("dataset", KEYS)
def test_records_change_stay_come_go_and_come_back(dataset, folders, diffs, read_rows):
    key = KEYS[dataset]
    before, middle = ({row[key]: row for row in read_rows(folder / dataset)} for folder in folders[:2])
    (updates, deletes), (later, gone) = diffs(dataset)
    assert {row == before[row[key]] for row in updates if row[key] in before} == {True, False}
    assert {row[key] for row in updates} - before.keys()
    deleted = {row[key] for row in deletes}
    assert deleted & before.keys()
    assert deleted - before.keys()
    assert {len(row) == 1 for row in deletes} == {True, False}
    assert {row[key] for row in later} & deleted - middle.keys()
    assert {row[key] for row in gone} & {row[key] for row in updates}
