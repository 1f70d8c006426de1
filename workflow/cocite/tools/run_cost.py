"""What a run costs, told before it starts: `cocite plan`.

What jobs took is known by rule and kind, as the ends of their logs say: straight lines over the work of a job. Runs at
two sizes tell the part that grows from the part that does not. The time of a run is that of a schedule of its jobs.
"""

import heapq
import json
import socket
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from math import ceil, inf
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import yaml
from pydantic import TypeAdapter

from cocite.config.configuration import results_folder
from cocite.config.started import read_start
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import write_text
from cocite.core.errors import InputError
from cocite.core.progress import Usage, about, byte_size, last_usage
from cocite.plan.recorded import STARTED_WITH, configuration_of
from cocite.tools.answers import Answer
from cocite.tools.planned_jobs import GPU_SPEED, PlannedJob, opened_workflow, planned_jobs

HOUR = 3600
TO_START = 0.1
"""Seconds between the end of a job and the start of the next, in which Snakemake looks for files and writes records."""
FAR = 10
"""How much more work a job may be than any that was measured before its time is called a guess."""
RATES = (10, 100)
"""Rates of a connection for which the time of the download is given, MB a second."""
NAMED = 6
"""Rules that are named."""
COLUMNS = ["stage", "jobs", "processor_hours", "gpu_hours", "wall_hours"]
COLUMNS += ["memory_mb", "largest_job", "disk_gb", "disk_at_peak_gb"]
SHIPPED = Path(__file__).with_name("calibration.jsonl")
START = 2.0
"""Seconds that a job needs to start, at most: what more it took in runs of one size is taken to grow."""
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
    """All jobs of a finished run started in `folder`. What it deleted counts as large as what it was made from."""
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
    if sizes.max() <= 3 * sizes.min():  # one size
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


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What jobs may take together; on a cluster, only their number is limited."""

    cores: float = inf
    memory_mb: float = inf
    jobs: float = inf


class Schedule(NamedTuple):
    """How a run goes: its seconds, and the disk that it takes, MB."""

    seconds: float
    at_peak: float
    at_end: float


def schedule(jobs: list[PlannedJob], took: Mapping[int, float], memory: Mapping[int, float], on: Machine) -> Schedule:
    """Start jobs as Snakemake does, the longest chain first, when there is room; a job that needs more takes all."""
    by_number = {job.number: job for job in jobs}
    waits = {job.number: {number for number in job.after if number in by_number} for job in jobs}
    following: dict[int, list[int]] = {number: [] for number in by_number}
    for number, earlier in waits.items():
        for each in earlier:
            following[each].append(number)
    longest: dict[int, float] = {}  # the chain that begins with a job
    for job in reversed(jobs):  # each comes after those that it waits for
        longest[job.number] = took[job.number] + max((longest[each] for each in following[job.number]), default=0.0)
    readers = Counter(file for job in jobs for file in job.reads)
    made = {file: size for job in jobs for file, size in job.makes.items() if file in job.temporary}
    ready = [(-longest[number], number) for number, earlier in waits.items() if not earlier]
    heapq.heapify(ready)
    takes = {job.number: (min(job.threads, on.cores), min(memory[job.number], on.memory_mb)) for job in jobs}
    running: list[tuple[float, int]] = []
    cores, room, slots = on.cores, on.memory_mb, on.jobs
    now = disk = peak = 0.0
    while ready or running:
        if not running:
            room = on.memory_mb  # but for what rounding has lost
        blocked = []
        while ready and min(cores, slots) >= 1:
            entry = heapq.heappop(ready)
            number = entry[1]
            if takes[number][0] > cores or takes[number][1] > room:
                blocked.append(entry)
                continue
            cores, room, slots = cores - takes[number][0], room - takes[number][1], slots - 1
            disk += sum(by_number[number].makes.values())
            heapq.heappush(running, (now + took[number], number))
        for entry in blocked:
            heapq.heappush(ready, entry)
        peak = max(peak, disk)
        now, number = heapq.heappop(running)
        job = by_number[number]
        cores, room, slots = cores + takes[number][0], room + takes[number][1], slots + 1
        readers.subtract(job.reads)
        disk -= sum(made.pop(file) for file in job.reads if file in made and not readers[file])
        for each in following[number]:
            waits[each].discard(number)
            if not waits[each]:
                heapq.heappush(ready, (-longest[each], each))
    return Schedule(now, peak, disk)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the jobs that a run has to do cost."""

    jobs: list[PlannedJob]
    done: int
    """The number of those that are done."""
    rates: Mapping[str, Rates]
    """By the keys of jobs."""
    on: Machine

    def processor(self, job: PlannedJob) -> float:
        """Processor seconds of a job; 0 if no such job was measured."""
        return self.rates[job.key].processor.at(job.work) if job.key in self.rates else 0.0

    def seconds(self, job: PlannedJob) -> float:
        """Seconds that a job takes with the cores there are."""
        needed = self.processor(job)
        return max(needed * self.rates[job.key].wall, needed / min(job.threads, self.on.cores)) if needed else 0.0

    def memory(self, job: PlannedJob) -> float:
        """What a job requests, or else what the largest of such jobs took, and larger ones in proportion; MB."""
        if job.memory_mb is not None:
            return job.memory_mb
        rates = self.rates.get(job.key)
        return rates.memory * max(1.0, job.work / rates.largest) if rates and rates.largest else 0.0

    @cached_property
    def schedule(self) -> Schedule:
        """When what is done, and the disk that it takes."""
        seconds = {job.number: self.seconds(job) + TO_START for job in self.jobs}
        return schedule(self.jobs, seconds, {job.number: self.memory(job) for job in self.jobs}, self.on)


def cost_of(configfile: Path, on: Machine, like: Path | None = None) -> Cost:
    """The cost of a run with this configuration. What jobs took is known from the run in the folder `like`, or from
    one in the folder of its own results on this machine, before what CoCite ships."""
    rates = read_calibration()
    own = read_start(results_folder(written_configuration(configfile)))
    if like is not None:
        rates |= calibrate([jobs_of_results(like)])
    elif own is not None and own.host == socket.gethostname():
        rates |= calibrate([measured_jobs(configfile, Path.cwd())])

    of_rule = {key.partition(" ")[0]: each for key, each in rates.items()}

    def size_of(key: str, place: int, size: float) -> float | None:
        known = rates.get(key) or of_rule.get(key.partition(" ")[0])
        makes = known.makes if known else ()
        line = makes[place] if place < len(makes) else None
        return line and line.at(size)

    at_once = None if on.jobs == inf else int(on.jobs)
    with opened_workflow(configfile, Path.cwd(), at_once=at_once) as workflow:
        jobs = list(planned_jobs(workflow, size_of))
    needed = [job for job in jobs if job.is_needed]
    return Cost(jobs=needed, done=len(jobs) - len(needed), rates=rates, on=on)


def machine_of(profile: Path) -> Machine:
    """A cluster, by the number of jobs that a profile submits at one time."""
    file = profile / "config.yaml"
    try:
        jobs = int(yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"])
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError):
        jobs = 0
    if jobs < 1:
        raise InputError(f"{file} names no number of jobs; give --profile a folder, such as slurm.")
    return Machine(jobs=jobs)


def as_table(cost: Cost, configfile: Path) -> Answer:
    """What each stage costs, and all together."""
    if not cost.jobs:
        return Answer(f"{configfile}: nothing to do, all {cost.done:,} jobs are done", COLUMNS, [])
    by_stage: dict[str, list[PlannedJob]] = defaultdict(list)
    for job in cost.jobs:
        by_stage[job.stage].append(job)
    plan, order = cost.schedule, {job.number: place for place, job in enumerate(cost.jobs)}
    of_run = (round(plan.seconds / HOUR, 3), round(plan.at_peak / 1000, 3))
    rows = []
    for stage in [*sorted(by_stage, key=lambda stage: mean(order[job.number] for job in by_stage[stage])), "together"]:
        jobs = by_stage.get(stage, cost.jobs)
        wall, peak = (None, None) if stage in by_stage else of_run
        largest = max(jobs, key=cost.memory)
        kept = sum(size for job in jobs for file, size in job.makes.items() if file not in job.temporary)
        processor = round(sum(map(cost.processor, jobs)) / HOUR, 3)
        gpu = round(sum(job.gpus * cost.seconds(job) for job in jobs) / HOUR, 3) or None
        memory = ceil(cost.memory(largest))
        rows.append((stage, len(jobs), processor, gpu, wall, memory, largest.rule, round(kept / 1000, 3), peak))
    done = f", after {cost.done:,} that are done" if cost.done else ""
    return Answer(f"{configfile}: {len(cost.jobs):,} jobs{done}", COLUMNS, rows)


def in_words(cost: Cost) -> Iterator[str]:
    """What the table does not say, and how sure it is."""
    on, plan = cost.on, cost.schedule
    where = f"{on.cores:.0f} cores and {on.memory_mb:,.0f} MB" if on.jobs == inf else f"{on.jobs:.0f} jobs at a time"
    queued = "" if on.jobs == inf else ", without the time in the queue"
    yield f"About {about(plan.seconds)} with {where}{queued}."
    peak, end = byte_size(plan.at_peak * 1e6), byte_size(plan.at_end * 1e6)
    yield f"On the disk: about {peak} at the peak and {end} in the end, in addition to what is there."
    if missing := sum(job.work for job in cost.jobs if job.rule == "download_shards"):
        times = " or ".join(f"{about(missing / rate)} at {rate} MB/s" for rate in RATES)
        yield f"The download of {byte_size(missing * 1e6)} takes {times}, which is not in the time above."
    if any(job.gpus for job in cost.jobs):
        yield f"A GPU is taken for {GPU_SPEED} cores, as in the time that rules request; recent ones are faster."
    if unknown := [job for job in cost.jobs if job.key not in cost.rates]:
        hours = sum((job.minutes or 0) * job.threads for job in unknown) / 60
        named = _named(Counter(job.key for job in unknown))
        requested = f"They request {hours:,.1f} hours of processors, which is more than they need."
        yield f"Not in the times above, because no such job was measured: {named}. {requested}"
    total = sum(map(cost.processor, cost.jobs))
    far = Counter[str]()
    for job in cost.jobs:
        if job.key in cost.rates and job.work > FAR * cost.rates[job.key].largest:
            far[job.key] += ceil(cost.processor(job))
    if far and total:
        why = f"jobs have more than {FAR} times as much to do as any that was measured ({_named(far)})"
        yield f"{far.total() / total:.0%} of the processor time is a guess: {why}."


def _named(rules: Counter[str]) -> str:
    names = [name for name, _ in rules.most_common(NAMED)]
    return ", ".join(names) + (f" and {len(rules) - NAMED} more" if len(rules) > NAMED else "")
