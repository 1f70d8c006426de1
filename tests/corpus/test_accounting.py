"""Accounting: lines of all shards sum up, and too many malformed ones over the whole dataset stop the run."""

import pyarrow.parquet as pq
import pytest

from cocite.core.errors import InputError
from cocite.core.tables.files import write_table
from cocite.corpus.ingest.accounting import KEPT, MALFORMED, Tally, account, tallies_as_table


@pytest.fixture
def reports(tmp_path):
    """Two reports: 97 of 100 lines of the second shard's are kept, all 900 of the first's."""
    first = Tally(dataset="papers", shard="a.gz")
    first.outcomes[KEPT] = 900
    second = Tally(dataset="papers", shard="b.gz")
    second.outcomes[KEPT] = 97
    for line in (70, 12, 99):
        second.note_malformed(line, f"is wrong in line {line}")
    paths = [tmp_path / "reports/b.parquet", tmp_path / "reports/a.parquet"]
    for path, tally in zip(paths, (second, first), strict=True):
        write_table(path, "ingest_report", tallies_as_table([tally]))
    return tmp_path / "reports"


def test_a_share_is_judged_over_all_shards(reports, tmp_path):
    account(reports, malformed=0.003, omissions=tmp_path / "omissions")
    assert pq.read_table(tmp_path / "omissions").to_pylist() == [{"reason": MALFORMED, "count": 3}]


def test_more_than_the_share_names_shard_and_line_of_the_first(reports, tmp_path):
    message = r"papers: 3 of 1000 lines .* 0\.002 .* b\.gz, line 12: is wrong in line 12"
    with pytest.raises(InputError, match=message):
        account(reports, malformed=0.002, omissions=tmp_path / "omissions")
    assert not (tmp_path / "omissions").exists()
