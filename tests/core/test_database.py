"""DuckDB spills beside what it works on and leaves nothing there."""

import errno
import fcntl
import os

import pytest

from cocite.core.database import LOCK, connect
from cocite.core.errors import InputError


@pytest.fixture
def spilled(tmp_path):
    """A folder that another process spilled to long ago."""
    folder = tmp_path / ".spill-other"
    folder.mkdir()
    (folder / "block.tmp").write_text("rows")
    os.utime(folder, (0, 0))
    return folder


def test_what_a_killed_process_spilled_is_removed(tmp_path, spilled):
    with connect(memory_mb=100, threads=1, spill_to=tmp_path):
        assert not spilled.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_spills_is_kept(tmp_path, spilled):
    with (spilled / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(spilled, (0, 0))
        with connect(memory_mb=100, threads=1, spill_to=tmp_path):
            pass
    assert (spilled / "block.tmp").exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_on_a_disk_without_locks_nothing_is_removed(tmp_path, spilled, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with connect(memory_mb=100, threads=1, spill_to=tmp_path):
        pass
    assert (spilled / "block.tmp").exists()
    assert [*tmp_path.iterdir()] == [spilled]


def test_a_folder_in_use_is_locked(tmp_path):
    with connect(memory_mb=100, threads=1, spill_to=tmp_path):
        (folder,) = tmp_path.iterdir()
        os.utime(folder, (0, 0))
        with connect(memory_mb=100, threads=1, spill_to=tmp_path):
            assert folder.exists()


def test_memory_that_is_too_small_is_told_with_the_way_to_give_more(tmp_path):
    with (
        pytest.raises(InputError, match=r"The 20 MB of memory that DuckDB was given are too few .*--set-resources"),
        connect(memory_mb=20, threads=1, spill_to=tmp_path) as connection,
    ):
        connection.sql("SELECT list(number) FROM range(10_000_000) AS numbers(number)").to_arrow_table()
