"""How many MB of inverted indexes become abstracts in a second on one core: by the kernel, or by a loop in Python."""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.works_by_others import put_together

from cocite.corpus.works.abstracts import abstracts_of
from cocite.corpus.works.parquet import words_of

ROUNDS = 5


def main(program: str, path: Path) -> None:
    """Write the rate to standard error: MB of indexes a second of processor time, the median of five."""
    column = pq.ParquetFile(path).read_row_group(0, columns=["abstract_inverted_index"]).column(0)
    indexes = pa.concat_arrays(column.chunks)
    megabytes = int(pa.compute.sum(pa.compute.binary_length(indexes)).as_py()) / 1e6
    words, bounds = words_of(indexes)
    texts = indexes.drop_null().to_pylist()
    work: dict[str, Callable[[], object]] = {
        "kernel": lambda: abstracts_of(words, (bounds[:-1], bounds[1:])),
        "loop": lambda: [put_together(text) for text in texts],
    }
    work[program]()
    took = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work[program]()
        took.append(time.process_time() - start)
    sys.stderr.write(f"{megabytes / statistics.median(took):.0f} MB/s (median of {ROUNDS})\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
