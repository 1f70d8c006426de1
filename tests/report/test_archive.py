"""Snakemake's own report belongs to a finished run."""

import os

import pytest

from cocite.core.errors import InputError
from cocite.report.writing import write_archive


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("pathvars: {results: made}\n")
    (tmp_path / "made/report").mkdir(parents=True)
    return tmp_path


def test_without_a_page_there_is_nothing_to_archive(run):
    with pytest.raises(InputError, match="run the workflow first"):
        write_archive(run / "config.yaml")


def test_an_archive_newer_than_the_page_is_kept(run):
    (run / "made/report/index.html").touch()
    (run / "made/report/report.zip").write_text("kept")
    os.utime(run / "made/report/index.html", (1, 1))
    write_archive(run / "config.yaml")
    assert (run / "made/report/report.zip").read_text() == "kept"
