"""The successor of a release: its diffs lead to it exactly, and hold all that real diffs are known to do."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.releases.successor import generate_successor

from cocite.core.errors import InputError
from cocite.demo.release import generate_release

Rows = list[dict[str, Any]]
ReadRows = Callable[[Path], Rows]
KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citationid"}
RELEASES = ["2026-01-06", "2026-01-13", "2026-01-20"]


@dataclass(frozen=True)
class Step:
    """One step from a release to the next: records by key, and what its diff says."""

    before: dict[int, dict[str, Any]]
    after: dict[int, dict[str, Any]]
    updates: dict[int, dict[str, Any]]
    deletes: Rows

    @property
    def added(self) -> set[int]:
        return self.after.keys() - self.before.keys()

    @property
    def removed(self) -> set[int]:
        return self.before.keys() - self.after.keys()

    @property
    def changed(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(self.before[key], self.after[key]) for key in self.before.keys() & self.updates.keys()]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A release of 200 papers, and two that follow it."""
    folders = [tmp_path_factory.mktemp("releases") / release for release in RELEASES]
    generate_release(folders[0], release=RELEASES[0], papers=200, topics=6, shards=3, seed=7)
    for older, newer in pairwise(folders):
        generate_successor(older, newer, release=newer.name, share=0.01, seed=7)
    return folders


@pytest.fixture(scope="module")
def steps(folders: list[Path], read_rows: ReadRows) -> dict[str, list[Step]]:
    def read(dataset: str, place: int) -> Step:
        key = KEYS[dataset]
        step = f"{RELEASES[place]}-to-{RELEASES[place + 1]}"
        before, after = ({row[key]: row for row in read_rows(folders[place + n] / dataset)} for n in (0, 1))
        updates = {row[key]: row for row in read_rows(folders[2] / "updates" / step / dataset)}
        return Step(before, after, updates, read_rows(folders[2] / "deletes" / step / dataset))

    return {dataset: [read(dataset, place) for place in (0, 1)] for dataset in KEYS}


def _citations(rows: dict[int, dict[str, Any]]) -> dict[tuple[int, int], Rows]:
    """The copies of each citation between known papers."""
    copies = defaultdict(list)
    for row in rows.values():
        if row["citedcorpusid"] is not None:
            copies[row["citingcorpusid"], row["citedcorpusid"]].append(row)
    return copies


def _intents(rows: Rows) -> set[str]:
    return {intent for row in rows for intents in row["intents"] or [] for intent in intents or []}


def _influential(rows: Rows) -> bool:
    return any(row["isinfluential"] for row in rows)


@pytest.mark.parametrize("dataset", KEYS)
@pytest.mark.parametrize("first", [0, 1])
def test_the_diffs_lead_to_the_newest_release_exactly(
    dataset: str, first: int, folders: list[Path], steps: dict[str, list[Step]], read_rows: ReadRows
) -> None:
    key = KEYS[dataset]
    records = {row[key]: row for row in read_rows(folders[first] / dataset)}
    for step in steps[dataset][first:]:
        records |= step.updates
        for row in step.deletes:
            records.pop(row[key], None)
    newest = read_rows(folders[2] / dataset)
    assert sorted(records.values(), key=lambda row: row[key]) == sorted(newest, key=lambda row: row[key])


@pytest.mark.parametrize("dataset", KEYS)
def test_a_diff_names_each_key_once(dataset: str, folders: list[Path], read_rows: ReadRows) -> None:
    for step in (f"{RELEASES[place]}-to-{RELEASES[place + 1]}" for place in (0, 1)):
        rows = [row for kind in ("updates", "deletes") for row in read_rows(folders[2] / kind / step / dataset)]
        assert len({row[KEYS[dataset]] for row in rows}) == len(rows) > 0


@pytest.mark.parametrize("dataset", KEYS)
def test_updates_are_whole_records_and_some_change_nothing(dataset: str, steps: dict[str, list[Step]]) -> None:
    for step in steps[dataset]:
        fields = set(next(iter(step.before.values())))
        assert {frozenset(row) for row in step.updates.values()} == {frozenset(fields)}
        same = [before == after for before, after in step.changed]
        assert True in same
        assert False in same


@pytest.mark.parametrize("dataset", KEYS)
def test_deletes_come_as_files_of_keys_and_files_of_records_and_some_find_nothing(
    dataset: str, folders: list[Path], steps: dict[str, list[Step]], read_rows: ReadRows
) -> None:
    for step in steps[dataset]:
        assert step.removed < {row[KEYS[dataset]] for row in step.deletes}
    keys, records = sorted((folders[2] / "deletes" / f"{RELEASES[0]}-to-{RELEASES[1]}" / dataset).iterdir())
    assert {frozenset(row) for row in read_rows(keys)} == {frozenset([KEYS[dataset]])}
    assert {len(row) for row in read_rows(records)} >= {len(next(iter(steps[dataset][0].before.values())))}


@pytest.mark.parametrize("dataset", KEYS)
def test_the_next_diff_deletes_what_was_updated_and_brings_back_what_was_deleted(
    dataset: str, steps: dict[str, list[Step]]
) -> None:
    first, second = steps[dataset]
    assert second.removed & first.updates.keys()
    assert second.added & first.removed
    assert first.added
    assert second.added - first.before.keys()


def test_papers_change_in_title_year_and_counts(steps: dict[str, list[Step]]) -> None:
    for step in steps["papers"]:
        names = {name for before, after in step.changed for name in before if before[name] != after[name]}
        assert names == {"title", "year", "citationcount", "influentialcitationcount"}


def test_abstracts_change_come_and_go_with_their_paper_or_alone(steps: dict[str, list[Step]]) -> None:
    for papers, abstracts in zip(steps["papers"], steps["abstracts"], strict=True):
        assert any(before["abstract"] != after["abstract"] for before, after in abstracts.changed)
        assert abstracts.removed & papers.removed
        assert abstracts.removed & papers.after.keys()
        assert papers.removed & abstracts.after.keys()
        assert abstracts.added & papers.added
        assert abstracts.added & papers.before.keys() & papers.after.keys()
        assert papers.added - abstracts.after.keys()


def test_an_abstract_can_come_a_release_before_its_paper(steps: dict[str, list[Step]]) -> None:
    first, second = steps["papers"]
    assert steps["abstracts"][0].added & (second.added - first.after.keys() - first.before.keys())


def test_a_record_of_a_citation_comes_to_speak_of_another(steps: dict[str, list[Step]]) -> None:
    for step in steps["citations"]:
        cited = [(before["citedcorpusid"], after["citedcorpusid"]) for before, after in step.changed]
        assert any(before is None and after is not None for before, after in cited)
        assert any(before is not None and after is None for before, after in cited)
        assert any(before != after and None not in (before, after) for before, after in cited)
        assert any(before["citingcorpusid"] != after["citingcorpusid"] for before, after in step.changed)


def test_citations_change_in_influence_contexts_and_intents(steps: dict[str, list[Step]]) -> None:
    for step in steps["citations"]:
        influence = {(before["isinfluential"], after["isinfluential"]) for before, after in step.changed}
        assert influence >= {(False, True), (True, False)}
        assert any(not before["intents"] and after["intents"] for before, after in step.changed)
        assert any(before["intents"] and not after["intents"] for before, after in step.changed)
        assert all((row["contexts"] is None) == (row["intents"] is None) for row in step.updates.values())


def test_a_citation_loses_influence_or_an_intent_when_one_of_its_copies_goes_or_changes(
    steps: dict[str, list[Step]],
) -> None:
    for step in steps["citations"]:
        before, after = _citations(step.before), _citations(step.after)
        left = [(before[pair], after[pair]) for pair in before.keys() & after.keys()]
        fewer = [(old, new) for old, new in left if len(new) < len(old)]
        as_many = [(old, new) for old, new in left if len(new) == len(old) > 1]
        for some in (fewer, as_many):
            assert any(_influential(old) and not _influential(new) for old, new in some)
            assert any(_intents(old) - _intents(new) for old, new in some)
        assert any(old == [row for row in new if row in old] and len(new) > len(old) for old, new in left)
        assert before.keys() - after.keys()
        assert after.keys() - before.keys()


def test_new_papers_cite_and_never_themselves(steps: dict[str, list[Step]]) -> None:
    for papers, citations in zip(steps["papers"], steps["citations"], strict=True):
        assert {citing for citing, _ in _citations(citations.after)} & papers.added
        assert all(citing != cited for citing, cited in _citations(citations.after))


def test_the_newer_release_tells_its_counts_and_the_earlier_releases(folders: list[Path], read_rows: ReadRows) -> None:
    rows = {name: {row[key]: row for row in read_rows(folders[2] / name)} for name, key in KEYS.items()}
    assert json.loads((folders[2] / "release.json").read_text()) == {
        "release_id": "2026-01-20",
        "earlier_releases": ["2026-01-06", "2026-01-13"],
        "datasets": ["papers", "abstracts", "citations"],
        "papers": len(rows["papers"]),
        "abstracts": len(rows["abstracts"]),
        "citations": len(_citations(rows["citations"])),
    }
    for name in KEYS:
        names = sorted(path.name for path in (folders[2] / name).glob("*.gz"))
        assert names == [f"20260120_000000_0000{shard}_{name}.gz" for shard in range(3)]
        assert "generated data" in (folders[2] / name / "README.txt").read_text()


def test_diff_files_are_named_as_real_ones(folders: list[Path]) -> None:
    step = folders[1] / "updates" / "2026-01-06-to-2026-01-13" / "papers"
    assert sorted(path.name for path in step.iterdir()) == [f"20260113_{number}.gz" for number in (1, 2, 3)]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(folders: list[Path], tmp_path: Path) -> None:
    for name, seed in (("same", 7), ("other", 8)):
        generate_successor(folders[0], tmp_path / name, release=RELEASES[1], share=0.01, seed=seed)
    files = {
        folder.name: {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (folders[1], tmp_path / "same", tmp_path / "other")
    }
    assert files["same"] == files[RELEASES[1]]
    assert files["other"] != files["same"]


def test_the_number_of_shards_changes_no_row(tmp_path: Path, read_rows: ReadRows) -> None:
    for shards in (1, 4):
        older, newer = (tmp_path / f"{name}-{shards}" for name in ("older", "newer"))
        generate_release(older, release=RELEASES[0], papers=80, topics=4, shards=shards, seed=1)
        generate_successor(older, newer, release=RELEASES[1], share=0.01, seed=1)
    step = "2026-01-06-to-2026-01-13"
    for part in [*KEYS, *(f"updates/{step}/{name}" for name in KEYS)]:
        one, four = (sorted(map(json.dumps, read_rows(tmp_path / f"newer-{shards}" / part))) for shards in (1, 4))
        assert one == four


def test_a_share_of_zero_changes_nothing_and_makes_an_empty_diff(
    folders: list[Path], tmp_path: Path, read_rows: ReadRows
) -> None:
    generate_successor(folders[0], tmp_path / "newer", release=RELEASES[1], share=0, seed=1)
    assert all(read_rows(tmp_path / "newer" / name) == read_rows(folders[0] / name) for name in KEYS)
    assert not [*(tmp_path / "newer").glob("updates/*/*/*"), *(tmp_path / "newer").glob("deletes/*/*/*")]


def test_a_real_release_has_a_successor_too(shared: Path, tmp_path: Path, read_rows: ReadRows) -> None:
    generate_successor(shared / "data/releases/synergy", tmp_path / "newer", release=RELEASES[1], share=0.001, seed=1)
    papers = read_rows(tmp_path / "newer" / "updates" / "2026-01-06-to-2026-01-13" / "papers")
    assert len(papers) == 8 * (4 + 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"release": "2026-01-06"}, "not later than 2026-01-06"),
        ({"release": "soon"}, "--release"),
        ({"share": 0.5}, "--share"),
    ],
)
def test_options_out_of_range_are_named(
    wrong: dict[str, Any], message: str, folders: list[Path], tmp_path: Path
) -> None:
    options = {"release": RELEASES[1], "share": 0.01, "seed": 1} | wrong
    with pytest.raises(InputError, match=message):
        generate_successor(folders[0], tmp_path / "newer", **options)
    assert not list(tmp_path.iterdir())


def test_a_release_of_two_papers_is_too_small_to_be_followed(tmp_path: Path) -> None:
    generate_release(tmp_path / "older", release=RELEASES[0], papers=2, topics=2, shards=1, seed=1)
    with pytest.raises(InputError, match="too small"):
        generate_successor(tmp_path / "older", tmp_path / "newer", release=RELEASES[1], share=0.01, seed=1)
