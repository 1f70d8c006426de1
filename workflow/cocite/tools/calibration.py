"""What jobs took, by rule and kind, as the ends of their logs say: straight lines over the work of a job. Runs at two
sizes tell the part of a job that grows from the part that does not."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from cocite.config.started import read_start
from cocite.core.atomic import write_text
from cocite.core.errors import InputError
from cocite.core.progress import Usage, last_usage
from cocite.plan.recorded import STARTED_WITH, configuration_of
from cocite.tools.planned_jobs import PlannedJob, opened_workflow, planned_jobs

SHIPPED = Path(__file__).with_name("calibration.jsonl")
START = 2.0
"""Seconds that a job needs to start, at most: what more it took in runs of one size is taken to grow."""
SAME_SIZE = 3.0
"""The ratio of the largest and the smallest work of jobs up to which they are of one size."""
STEPS = 200
"""Lines that are compared when one is fitted."""
LEAST = 1e-3
"""The least amount that is told from nothing: seconds or MB."""


class Line(NamedTuple):
    """An amount over a size: the part that is fixed, and the growth."""

    fixed: float
    growth: float

    def at(self, size: float) -> float:
        """The amount for a size."""
        return self.fixed + self.growth * size


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What the jobs of a rule and kind take."""

    processor: Line
    """Seconds of processors, over the work of a job."""
    wall: float
    """Seconds for each second of processors, of the job that waited least: others may have shared the machine."""
    memory: float
    """The most that was measured, MB."""
    makes: tuple[Line | None, ...]
    """The size of each output, MB, over what it grows with; none of those that were deleted."""
    largest: float
    """The most work of a job that was measured."""


def measured_jobs(configfile: Path, folder: Path) -> Iterator[PlannedJob]:
    """All jobs of a finished run that was started in `folder`. What it deleted counts as large as what it was made
    from."""
    with opened_workflow(configfile, folder, all_jobs=True) as workflow:
        yield from planned_jobs(workflow, lambda key, place, reads: None)


def jobs_of_results(results: Path) -> Iterator[PlannedJob]:
    """The same of the run that was started last in a folder of results. Raises `InputError` if there is none."""
    if (start := read_start(results)) is None:
        raise InputError(f"No run has been started in {results}; name the folder of results of a finished one.")
    configuration_of(results)  # it may be of another version
    return measured_jobs((results / STARTED_WITH).absolute(), Path(start.directory))


def calibrate(runs: Iterable[Iterable[PlannedJob]]) -> dict[str, Rates]:
    """The rates of the rules in some runs, by what their logs say that jobs took."""
    measured: dict[str, list[tuple[PlannedJob, Usage]]] = defaultdict(list)
    made: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for job in chain.from_iterable(runs):
        took = last_usage(Path(job.log)) if job.log and Path(job.log).is_file() else None
        if took is not None:
            measured[job.key].append((job, took))
            for place, (path, size) in enumerate(job.makes.items()):
                if Path(path).exists():
                    made[job.key, place].append((job.grows_with[place], size))
    return {
        key: Rates(
            processor=fitted([(job.work, took.cpu_seconds) for job, took in jobs], START),
            wall=min(took.seconds / max(took.cpu_seconds, LEAST) for _, took in jobs),
            memory=max(took.peak_mb for _, took in jobs),
            makes=tuple(
                fitted(made[key, place], 0.0) if (key, place) in made else None
                for place in range(max(len(job.makes) for job, _ in jobs))
            ),
            largest=max(job.work for job, _ in jobs),
        )
        for key, jobs in measured.items()
    }


def fitted(pairs: Sequence[tuple[float, float]], fixed: float) -> Line:
    """The line whose ratios to the amounts are nearest to 1, by the squares of their logarithms. Neither part is
    negative. If there is one size only, no more than `fixed` is taken for the part that does not grow."""
    sizes, amounts = np.maximum(np.array(pairs, dtype=float).T, [[0.0], [LEAST]])
    if sizes.max() <= SAME_SIZE * sizes.min():
        middle, size = float(np.median(amounts)), float(np.median(sizes))
        constant = min(middle, fixed) if size else middle
        return Line(constant, (middle - constant) / size if size else 0.0)
    # With fixed = growth · offset, the growth follows from each offset; the largest offset is that of a constant.
    offsets = sizes.max() * np.geomspace(1e-6, 1e4, STEPS)
    ratios = np.log(amounts / (sizes + offsets[:, None]))
    best = int(ratios.var(axis=1).argmin())
    growth = float(np.exp(ratios[best].mean()))
    return Line(growth * float(offsets[best]), growth if best < STEPS - 1 else 0.0)


def write_calibration(path: Path, calibration: Mapping[str, Rates]) -> None:
    """Write the rates of each key of jobs, as numbers with three digits."""
    lines = []
    for key, rates in sorted(calibration.items()):
        rounded = json.loads(json.dumps(asdict(rates)), parse_float=lambda digits: float(f"{float(digits):.3g}"))
        lines.append(json.dumps({"key": key, **rounded}))
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_calibration(path: Path = SHIPPED) -> dict[str, Rates]:
    """Read rates that `write_calibration` wrote."""
    reader, rows = TypeAdapter(Rates), map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row.pop("key"): reader.validate_python(row) for row in rows}
