"""State is gone on from by the work that it belongs to, and by no other; fingerprints are of content, not of times."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.spoiling import SPOILS, files_of

from cocite.core import checkpoints
from cocite.core.atomic import is_whole
from cocite.core.checkpoints import OWNER, open_state, open_whole, remove_state, sampled_fingerprint
from cocite.core.errors import InputError
from cocite.core.tables.files import write_table


def test_state_is_gone_on_from_by_the_same_work_only_and_the_log_says_why(tmp_path, capsys):
    state = tmp_path / "state"
    (state / "groups").mkdir(parents=True)  # of no work
    assert not open_state(state, {"k": 1, "seed": 1}, work="search")
    assert not (state / "groups").exists()
    write(state / "groups/0", b"keys")
    assert open_state(state, {"k": 1, "seed": 1}, work="search")
    assert (state / "groups/0").read_bytes() == b"keys"
    assert capsys.readouterr().err == ""
    assert not open_state(state, {"k": 2, "metric": "l2", "seed": 1}, work="search")
    assert not (state / "groups").exists()
    assert "k, metric changed since the search that was killed; starting afresh" in capsys.readouterr().err


def write(path: Path, content: bytes) -> None:
    with open_whole(path) as file:
        file.write(content)


@pytest.fixture
def state(tmp_path):
    """The state of a search with two files, one of which was written twice."""
    state = tmp_path / "state"
    open_state(state, {"k": 1}, work="search")
    for content in (b"before", b"pools of all queries"):
        write(state / "pools", content)
    checkpoints.write_checked_json(state / "scores/[1].json", {"mrr": 0.5})
    return state


@pytest.mark.parametrize("name", [OWNER, "pools", "scores/[1].json"])
@pytest.mark.parametrize("spoil", SPOILS)
def test_a_spoilt_file_is_named_and_the_work_starts_afresh(state, capsys, name, spoil):
    SPOILS[spoil](state / name)
    is_there = (state / name).exists()
    assert not open_state(state, {"k": 1}, work="search")
    said = capsys.readouterr().err
    assert files_of(state) == [state / OWNER]
    if is_there:
        assert f"{state / name}: its content is not what was written; it is removed" in said
    elif name != OWNER:
        assert f"{state / name}: is gone" in said
    assert open_state(state, {"k": 1}, work="search")


@pytest.mark.parametrize("spoil", SPOILS)
def test_work_with_independent_files_resumes_without_the_spoilt_ones(state, spoil):
    SPOILS[spoil](state / "pools")
    assert open_state(state, {"k": 1}, work="search", independent=True)
    assert files_of(state) == [state / OWNER, state / "scores/[1].json"]
    assert open_state(state, {"k": 1}, work="search")


def test_a_file_without_a_checksum_is_named_unless_a_kill_explains_it(state, capsys):
    lost = ["half", "scores/2.json"]
    explained = ["scores/.2.json.17.tmp", ".edges.17.tmp/0-0.edges", "new.1b2c3d4e.crc32-new", "curves/events.1"]
    for name in ("vectors.bin", *lost, *explained):
        (state / name).parent.mkdir(exist_ok=True)
        (state / name).write_bytes(name.encode())
    assert open_state(
        state, {"k": 1}, work="search", checked_by_work=["vectors.bin"], scratch=["curves/*"], implied=lambda: [state]
    )
    said = capsys.readouterr().err.splitlines()
    assert sorted(said) == [f"{state / name}: has no checksum; it is removed" for name in lost]
    assert not any((state / name).exists() for name in (*lost, *explained))
    assert (state / "vectors.bin").exists()


@pytest.mark.parametrize("lost", ["mark", "file and mark"])
def test_without_a_file_that_its_progress_implies_the_work_starts_afresh(state, capsys, lost):
    for path in state.glob("pools.*" if lost == "mark" else "pools*"):
        path.unlink()
    assert not open_state(state, {"k": 1}, work="search", implied=lambda: [state / "pools"])
    assert f"{state / 'pools'}: is gone" in capsys.readouterr().err
    assert files_of(state) == [state / OWNER]


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


def link_to_a_folder(path: Path) -> None:
    other = path.with_name("other")
    other.mkdir(exist_ok=True)
    (other / "pools").touch()
    path.symlink_to(other)


@pytest.mark.parametrize("make", [Path.touch, link_to_nowhere, link_to_a_folder])
def test_what_lies_where_the_state_goes_is_removed(tmp_path, make):
    make(tmp_path / "state")
    assert not open_state(tmp_path / "state", {"k": 1}, work="search")
    assert [path.name for path in files_of(tmp_path / "state")] == [OWNER]
    assert not (tmp_path / "state/pools").exists()
    assert open_state(tmp_path / "state", {"k": 1}, work="search")
    remove_state(tmp_path / "state")
    make(tmp_path / "state")
    remove_state(tmp_path / "state")
    assert not os.path.lexists(tmp_path / "state")


@pytest.mark.parametrize("name", ["home", "home/letters/first.txt"])
def test_files_of_a_user_are_refused_and_stay(tmp_path, name):
    kept = tmp_path / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("years of work")
    with pytest.raises(InputError, match=r"home: has files, and is not a state of CoCite"):
        open_state(tmp_path / "home", {"k": 1}, work="search")
    assert kept.read_text() == "years of work"


def test_a_state_whose_removal_is_killed_anywhere_is_removed_by_the_next_work(tmp_path, monkeypatch):
    removed = checkpoints.remove
    for moment in range(9):
        state, left = tmp_path / str(moment), [moment]
        open_state(state, {"k": 1}, work="search")
        (state / "vectors.bin").touch()
        write(state / "pools", b"old")
        with monkeypatch.context() as killed, suppress(KeyboardInterrupt):
            killed.setattr(checkpoints, "remove", dying(removed, left))
            remove_state(state)
        assert not open_state(state, {"k": 2}, work="search")
        assert files_of(state) == [state / OWNER]
    assert left[0] > 0


@pytest.mark.parametrize("content", [b"[]", b"1", b"null", b"\xff{}", b"{", b""])
def test_a_fingerprint_that_is_no_object_belongs_to_no_work(state, content):
    write(state / OWNER, content)
    assert not open_state(state, {"k": 1}, work="search")
    assert files_of(state) == [state / OWNER]


@pytest.mark.parametrize("make", [Path.mkdir, link_to_nowhere])
@pytest.mark.parametrize("name", ["pools", "vectors.bin"])
def test_what_lies_where_a_file_of_the_state_goes_is_removed_also_if_the_work_checks_it(state, make, name):
    (state / name).unlink(missing_ok=True)
    make(state / name)
    assert open_state(state, {"k": 1}, work="embedding", independent=True, checked_by_work=["vectors.bin"])
    assert not os.path.lexists(state / name)


def test_state_that_is_not_removed_belongs_to_no_work_and_is_refused(state, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(InputError, match=rf"belongs to other work .* and cannot be removed; remove {state}\.$"):
            open_state(state, {"k": 2}, work="search")
        assert not (state / OWNER).exists()
        checkpoints.write_checked_json(state / OWNER, {"k": 1})
        remove_state(state)
    assert not open_state(state, {"k": 1}, work="search")


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_writer_that_is_killed_anywhere_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, before):
    """Each change of a name of a file is a moment to die before."""
    found = set()
    for moment in range(9):
        state, left = tmp_path / str(moment), [moment]
        open_state(state, {"k": 1}, work="search")
        if before:
            write(state / "pools", before)
        with monkeypatch.context() as killed, suppress(KeyboardInterrupt):
            for name in ("touch", "replace", "unlink"):
                killed.setattr(Path, name, dying(getattr(Path, name), left))
            write(state / "pools", b"new")
        assert open_state(state, {"k": 1}, work="search")
        is_there = (state / "pools").exists()
        found.add((state / "pools").read_bytes() if is_there else None)
        assert is_whole(state / "pools") == is_there
    assert found == {before, b"new"}


def dying(change: Callable[..., object], left: list[int]) -> Callable[..., object]:
    """The function, which raises once it and others have been called so many times."""

    def call(*given: object, **named: object) -> object:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return change(*given, **named)

    return call


def test_a_file_of_the_state_is_whole_or_not_there(tmp_path):
    with suppress(ValueError), open_whole(tmp_path / "pools") as file:
        file.write(b"half")
        raise ValueError
    assert not list(tmp_path.iterdir())
    with open_whole(tmp_path / "pools") as file:
        file.write(b"whole")
    assert (tmp_path / "pools").read_bytes() == b"whole"


@pytest.mark.parametrize("fingerprint", [checkpoints.fingerprint_of, sampled_fingerprint])
def test_a_fingerprint_depends_on_content_and_names_and_not_on_times(tmp_path, fingerprint):
    def made(name: str, **contents: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for file, content in contents.items():
            (folder / file).write_text(content)
        return folder

    first, again = made("first", a="1", b="2"), made("again", a="1", b="2")
    os.utime(again / "a", (1, 1))
    (again / ".snakemake_timestamp").touch()
    assert fingerprint([first]) == fingerprint([again])
    others = [made("0", a="1", b="3"), made("1", a="1", c="2"), made("2", a="1"), made("3", a="2", b="1")]
    assert len({fingerprint([folder]) for folder in (first, *others)}) == 5
    assert fingerprint([first / "a"]) == fingerprint([again / "a"]) != fingerprint([first / "b"])
    assert fingerprint([first / "a", first / "b"]) != fingerprint([first / "b", first / "a"])


@pytest.mark.parametrize("size", [10_000, 10_001, 63 * 1000 + 7, 1_000_000])
def test_of_a_large_file_size_and_blocks_all_over_it_count(tmp_path, monkeypatch, size):
    """With 64 blocks of 100 bytes, a change of every byte in a 32nd of the file, wherever, is within one of them."""
    monkeypatch.setattr(checkpoints, "READ_WHOLE", 5000)
    monkeypatch.setattr(checkpoints, "BLOCK", 100)
    content = np.random.default_rng(1).integers(0, 255, size, dtype=np.uint8)

    def fingerprint(changed: np.ndarray) -> str:
        changed.tofile(tmp_path / "file")
        return sampled_fingerprint([tmp_path / "file"])

    before = fingerprint(content)
    assert fingerprint(content) == before != fingerprint(content[:-1])
    for part in np.array_split(np.arange(size), 32):
        changed = content.copy()
        changed[part] += 1
        assert fingerprint(changed) != before


def test_of_a_large_table_the_footer_counts(tmp_path, monkeypatch):
    """The largest weight is in the footer, wherever in the file its row is."""
    for name, value in (("READ_WHOLE", 0), ("BLOCK", 1), ("BLOCKS", 2)):
        monkeypatch.setattr(checkpoints, name, value)
    prints, ids = set(), np.arange(1000)
    for largest in (2.0, 3.0):
        weight = np.where(ids == 500, largest, 1).astype(np.float32)
        write_table(tmp_path / "edges", "edges", pa.table({"source": ids, "target": ids + 1, "weight": weight}))
        prints.add(sampled_fingerprint([tmp_path / "edges"]))
    assert len(prints) == 2
