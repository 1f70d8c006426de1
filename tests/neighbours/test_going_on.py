"""A search that was killed goes on where it stood."""

from pathlib import Path

import pytest
from tests.neighbours.small_searches import KilledError, Row, by_definition, search, search_again, write_queries

from cocite.config.embeddings import SearchSettings
from cocite.core.atomic import checked_path
from cocite.core.checkpoints import write_checked_json
from cocite.neighbours import query_groups, searching
from cocite.neighbours.query_groups import open_search

VECTORS = {paper: [float(paper), float(paper * paper % 7)] for paper in range(100)}
SPLITS = dict.fromkeys(VECTORS, "train")


@pytest.fixture
def met(monkeypatch):
    """The row groups of 20 papers that go past the queries, in order; over the thirteenth the search dies."""
    met = []
    blocks = searching._blocks

    def dying(documents, row_groups):
        for row_group, block in blocks(documents, row_groups):
            met.append(row_group)
            if len(met) == 13:
                raise KilledError
            yield row_group, block

    monkeypatch.setattr(searching, "_blocks", dying)
    monkeypatch.setattr(searching, "queries_at_once", lambda *_: 40)
    return met


def again(folder: Path, **changed: object) -> list[Row]:
    """The same search, in the same tables."""
    return search_again(folder, SearchSettings(metric="l2", k=4), **changed)


@pytest.mark.parametrize(("seconds", "goes_on"), [(0.0, [1, 2, 3, 4]), (60.0, [0, 1, 2, 3, 4])])
def test_it_goes_on_after_the_finished_queries_and_the_last_row_group_that_was_saved(
    tmp_path, monkeypatch, met, seconds, goes_on
):
    """A row group is done, and saved, once another one follows."""
    monkeypatch.setattr(query_groups, "SECONDS_BETWEEN_SAVES", seconds)
    with pytest.raises(KilledError):
        search(tmp_path, VECTORS, SPLITS, k=4, row_group=20)
    assert met == [0, 1, 2, 3, 4] * 2 + [0, 1, 2]
    assert not (tmp_path / "neighbours.parquet").exists()
    del met[:]
    found = again(tmp_path)
    assert met == goes_on
    assert found == [row for query in VECTORS for row in by_definition(VECTORS, query, "l2", 4)]
    assert not (tmp_path / "state").exists()


@pytest.fixture
def killed(tmp_path, met):
    """A search that died in its third group."""
    with pytest.raises(KilledError):
        search(tmp_path, VECTORS, SPLITS, k=4, row_group=20)
    del met[:]
    return tmp_path


def test_it_starts_afresh_where_the_search_is_another(killed, met):
    write_queries(killed, dict.fromkeys(range(7), "train"))
    assert again(killed) == [row for query in range(7) for row in by_definition(VECTORS, query, "l2", 4)]
    assert met == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("room", "begun", "groups"), [(80, 40, 1), (50, 60, 2)])
def test_it_goes_on_with_the_groups_that_it_began_with_unless_memory_is_too_little(
    killed, monkeypatch, met, room, begun, groups
):
    monkeypatch.setattr(searching, "queries_at_once", lambda *_: room)
    assert (killed / "state" / "group.json").read_text() == "40\n"
    write_checked_json(killed / "state" / "group.json", begun)
    assert again(killed) == [row for query in VECTORS for row in by_definition(VECTORS, query, "l2", 4)]
    assert met == [0, 1, 2, 3, 4] * groups


def test_groups_of_another_search_are_not_used(tmp_path):
    groups = tmp_path / "state" / "groups"
    for belongs_to, expected in (({"k": 1}, False), ({"k": 1}, True), ({"k": 2}, False)):
        assert open_search(tmp_path / "state", belongs_to, 10) == 10
        assert (groups / "0.npy").exists() == expected
        with checked_path(groups / "0.npy") as written:
            written.touch()
