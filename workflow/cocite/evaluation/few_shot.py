"""The small samples that SciRepEval's few-shot stages train on.

Single-label tasks: the training documents are cut into stratified folds of `size` documents each, and a fold is what a
run trains on. Multi-label tasks: each run draws `size` documents of each class. Published were `seed + run` as the
seeds of the draws, under which neighbouring evaluation seeds share nearly all their samples; here each run of each
evaluation seed has a generator of its own.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from cocite.config.tasks import FewShot
from cocite.ground.randomness import generator


def feasible_stages(stages: Sequence[FewShot], classes: NDArray[np.generic]) -> Sequence[FewShot]:
    """All stages, or none where the training documents do not suffice for one of them.

    `classes` holds a class for each document, or documents × classes of 0 and 1. There must be as many documents as
    the runs of a stage ask for together, so that runs differ; each fold must hold two classes, or each class have
    enough documents for a sample.
    """
    return stages if all(_is_feasible(stage, classes) for stage in stages) else ()


def few_shot_samples(stage: FewShot, classes: NDArray[np.generic], seed: int, task: str) -> Iterator[NDArray[np.int64]]:
    """The documents of each run, as rows of `classes`."""
    if classes.ndim == 1:
        folds = StratifiedKFold(_number_of_folds(stage, len(classes))).split(np.zeros(len(classes)), classes)
        yield from islice((fold for _, fold in folds), stage.runs)
        return
    for run in range(stage.runs):
        draw = generator(seed, "few-shot", task, stage.size, run)
        yield np.unique([draw.choice(np.flatnonzero(column), stage.size, replace=False) for column in classes.T])


def _is_feasible(stage: FewShot, classes: NDArray[np.generic]) -> bool:
    if len(classes) < stage.size * stage.runs:
        return False
    if classes.ndim == 1:
        second_largest = np.sort(np.unique(classes, return_counts=True)[1])[-2]
        return bool(second_largest >= _number_of_folds(stage, len(classes)))
    return bool(np.count_nonzero(classes, axis=0).min() >= stage.size)


def _number_of_folds(stage: FewShot, documents: int) -> int:
    return -(-documents // stage.size)
