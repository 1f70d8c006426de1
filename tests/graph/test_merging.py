"""Merged runs hold each pair once, with all of its counts."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.large_ids import RELABELLINGS

from cocite.graph.counting import RUNS_SIDE_BY_SIDE, merge, spill_run

Counts = dict[tuple[int, int], int]


def _lay_by(path: Path, counts: Counts, pairs_of_a_block: int) -> Path:
    pairs = sorted(counts)
    blocks = [pairs[first : first + pairs_of_a_block] for first in range(0, len(pairs), pairs_of_a_block)]
    spill_run(path, [_block(block, counts) for block in blocks])
    return path


def _block(pairs: list[tuple[int, int]], counts: Counts):  # type: ignore[no-untyped-def]
    papers, others = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    numbers = np.array([counts[pair] for pair in pairs])
    return papers, others, numbers.astype(np.int32), numbers * 2**40


@pytest.mark.parametrize("number", [1, 2, RUNS_SIDE_BY_SIDE, RUNS_SIDE_BY_SIDE + 1, 5 * RUNS_SIDE_BY_SIDE + 3])
@pytest.mark.parametrize("relabel", RELABELLINGS)
def test_the_counts_of_a_pair_in_many_runs_are_added(tmp_path, number, relabel):
    rng = np.random.default_rng(number)
    runs: list[Counts] = [
        {
            (relabel(paper), relabel(paper + other)): count
            for paper, other, count in rng.integers(1, 9, (20, 3)).tolist()
        }
        for _ in range(number)
    ]
    expected = sum((Counter(run) for run in runs), Counter())

    merged = list(merge([_lay_by(tmp_path / f"{name}.arrow", run, 3) for name, run in enumerate(runs)]))

    papers, others, counts, shares = (np.concatenate(column).tolist() for column in zip(*merged, strict=True))
    assert list(zip(papers, others, counts, strict=True)) == [(*pair, expected[pair]) for pair in sorted(expected)]
    assert shares == [expected[pair] * 2**40 for pair in sorted(expected)]


def test_no_more_than_the_longer_runs_stay_on_disk(tmp_path):
    number = 3 * RUNS_SIDE_BY_SIDE
    runs = [_lay_by(tmp_path / f"{name}.arrow", {(1, 2 + name): 1}, 1) for name in range(number)]

    first = next(merge(runs))

    assert len(first[0]) > 0
    assert len(list(tmp_path.iterdir())) == 3
