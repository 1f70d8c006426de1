"""What a run costs, told before it starts: `cocite plan`.

`planned_jobs` has the jobs and their sizes, `calibration` what such jobs take. The time is that of a schedule.
"""

import heapq
import socket
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import yaml

from cocite.config.configuration import results_folder
from cocite.config.started import read_start
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.core.progress import about, byte_size
from cocite.tools.answers import Answer
from cocite.tools.calibration import Rates, calibrate, jobs_of_results, measured_jobs, read_calibration
from cocite.tools.planned_jobs import GPU_SPEED, PlannedJob, opened_workflow, planned_jobs

HOUR = 3600
TO_START = 0.1
"""Seconds between the end of a job and the start of one that waits for it: Snakemake looks for files and writes its
records."""
FAR = 10
"""How much more work a job may be than any that was measured before its time is called a guess."""
RATES = (10, 100)
"""Rates of a connection for which the time of the download is given, MB a second."""
NAMED = 6
"""Rules that are named."""
COLUMNS = (
    *("stage", "jobs", "processor_hours", "gpu_hours", "wall_hours"),
    *("memory_mb", "largest_job", "disk_gb", "disk_at_peak_gb"),
)


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


def schedule(
    jobs: Sequence[PlannedJob], seconds: Mapping[int, float], memory: Mapping[int, float], on: Machine
) -> Schedule:
    """Start jobs as Snakemake does, the one with the longest chain behind it first, as soon as it can and there is room
    for it; a job that needs more than there is takes all."""
    by_number = {job.number: job for job in jobs}
    waits = {job.number: {number for number in job.after if number in by_number} for job in jobs}
    following: dict[int, list[int]] = {number: [] for number in by_number}
    for number, earlier in waits.items():
        for each in earlier:
            following[each].append(number)
    chain: dict[int, float] = {}
    for job in reversed(jobs):  # each comes after those that it waits for
        chain[job.number] = seconds[job.number] + max((chain[each] for each in following[job.number]), default=0.0)
    readers = Counter(file for job in jobs for file in job.reads)
    made = {file: size for job in jobs for file, size in job.makes.items() if file in job.temporary}
    ready = [(-chain[number], number) for number, earlier in waits.items() if not earlier]
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
            heapq.heappush(running, (now + seconds[number], number))
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
                heapq.heappush(ready, (-chain[each], each))
    return Schedule(now, peak, disk)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the jobs that a run has to do cost."""

    jobs: Sequence[PlannedJob]
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
        yield (
            f"Not in the times above, because no such job was measured: {_named(Counter(job.key for job in unknown))}. "
            f"They request {hours:,.1f} hours of processors, which is more than they need."
        )
    total = sum(map(cost.processor, cost.jobs))
    far = Counter[str]()
    for job in cost.jobs:
        if job.key in cost.rates and job.work > FAR * cost.rates[job.key].largest:
            far[job.key] += ceil(cost.processor(job))
    if far and total:
        yield (
            f"{far.total() / total:.0%} of the processor time is a guess: jobs have more than {FAR} times as much to "
            f"do as any that was measured ({_named(far)})."
        )


def _named(rules: Counter[str]) -> str:
    names = [name for name, _ in rules.most_common(NAMED)]
    return ", ".join(names) + (f" and {len(rules) - NAMED} more" if len(rules) > NAMED else "")
