"""How many bytes of a file of works in Parquet a corpus needs, in how many requests they come, and what they become."""

from pathlib import Path

import pyarrow.parquet as pq
from tests.benchmarks import made_works
from tests.benchmarks.measuring import say

from cocite.config.source import WorkFilters
from cocite.corpus.release import needed_columns
from cocite.corpus.release.copies import FolderCopy
from cocite.corpus.release.manifest import Shard
from cocite.corpus.release.needed_columns import columns_downloaded
from cocite.corpus.works.work_shards import WorksSettings, ingest_files
from cocite.corpus.works.work_tables import NAMES

GAPS = (0, 1 << 16, 1 << 20, 1 << 22)
WORKS = 100_000


def main(folder: Path) -> None:
    works, path = pq.read_table(made_works.parquet(folder / "made", WORKS)), folder / "works.parquet"
    pq.write_table(works, path, compression="snappy", row_group_size=WORKS)
    size = path.stat().st_size
    footer = needed_columns.read_footer(FolderCopy(folder), path.name, size)
    say(f"{WORKS} works in one row group have {size / 1e6:.1f} MB, and a footer of {len(footer)} bytes.")
    for authors, words in ((False, "without authors"), (True, "with authors")):
        for needed_columns.GAP in GAPS:
            spans = needed_columns.spans_of(footer, columns_downloaded(authors=authors))
            share = (len(footer) + sum(map(len, spans))) / size
            say(f"{words}, gaps of up to {needed_columns.GAP} bytes: {share:.1%} of the file in {len(spans)} requests")
    needed_columns.GAP = 0
    spans = needed_columns.spans_of(footer, columns_downloaded(authors=False))
    _say_tables(path, sum(map(len, spans)), "the needed columns")
    packed = made_works.json_lines(folder / "made", WORKS)
    _say_tables(packed, packed.stat().st_size, "JSON Lines")


def _say_tables(path: Path, read: int, words: str) -> None:
    """Print how large the ingested tables are, given how many bytes are read of a file."""
    outputs = {name: path.parent / f"ingested-{name}" for name in NAMES}
    settings = WorksSettings(filters=WorkFilters(), buckets=4, memory_mb=1500, threads=2)
    shard = Shard(name=path.name, bytes=path.stat().st_size)
    ingest_files(settings, path.parent, [shard], outputs, report=path.parent / "report")
    shares = {name: outputs[name].stat().st_size / read for name in NAMES}
    say(f"As tables, {', '.join(f'{name} {share:.3f}' for name, share in shares.items())} of each byte of {words}")
