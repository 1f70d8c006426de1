"""The configuration that a folder of results was made with, compared with that of the next run.

A run writes its configuration into the folder before its first job, and is refused if the folder has another corpus,
which it would overwrite. Other edits are the usual way of working: Snakemake reruns what depends on them, as long as it
has its records of how the files were made, which are in its working folder and not in the results.
"""

import json
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from cocite.config.configuration import Configuration, recorded_configuration
from cocite.config.explained import without_password
from cocite.config.runs import mapped_runs, reported_on, runs_of
from cocite.config.yaml_files import written_configuration
from cocite.core.atomic import write_text
from cocite.core.errors import InputError

STARTED_WITH = "configuration.yaml"  # the resolved configuration of the last run, which can be run unchanged
PROVENANCE = "provenance.json"  # the provenance that a run records for its report; it includes the configuration
OF_DOCUMENTS = "_documents"  # behind the benchmark in the names of the corpus's steps for its documents
STEPS = {
    "graph": ("graph", r"-[a-z]+-\d+"),
    "embeddings": ("embedding", ""),
    "neighbours": ("embedding", r"_\d+"),
    "triplets": ("triplets", ""),
    "evaluation": ("benchmark", ""),
}
"""What the steps of a stage are of, and what follows its name in theirs."""
NAMES = ("graph", "embedding", "triplets", "index", "benchmark", "map", "probe", "suite", "group")  # in a path
FOR_PROVENANCE = ".state/configuration.json"  # the configuration of a run for its step `provenance`
OVERWRITE = "COCITE_OVERWRITE"  # the environment variable with a folder that another corpus may overwrite
RECORDS = (Path(".snakemake/metadata"), Path(".snakemake/incomplete"))
"""Where Snakemake keeps a record for each file that it made or is making, named by the file's path."""
LONGEST_NAME = 254  # characters of the name of a record; Snakemake cuts longer ones into folders
WITH_SETTINGS = ("corpus/manifest.json", "provenance.json", "*/*/settings.json", "encoder/*/seed-*/settings.json")
"""Files, one of each step that has settings, whose records show whether the others are there."""
SHOWN = 8  # edits that a message names

Resolved = Mapping[str, Any]


def configuration_of(results: Path) -> Configuration | None:
    """The configuration of the last run here; none before the first. Raises `InputError` if it cannot be read."""
    values = recorded_values(results)
    return None if values is None else recorded_configuration(values)


def recorded_values(results: Path) -> Mapping[str, Any] | None:
    """The same as plain values, whatever version recorded them."""
    path = results / STARTED_WITH
    if not path.is_file():
        return None
    try:
        return written_configuration(path)
    except InputError as error:
        raise InputError(f"{error} Delete it, and the next run writes it again.") from None


def names_of(what: str, benchmark: str, config: Configuration) -> Collection[str]:
    """What the entries of a kind are called that a path can tell: graphs, embeddings, …, the suites of a benchmark."""
    match what:
        case "embedding":
            return [*config.embeddings, *config.walks]
        case "index":
            return config.indexes
        case "suite":
            return config.benchmarks[benchmark].suites
        case "group":
            return sorted({entry.group for entry in config.triplets.values()})
        case _:
            return getattr(config, what if what == "triplets" else f"{what}s")


def is_configured(wildcards: Mapping[str, str], config: Configuration) -> bool:
    """Whether the configuration has all that a path tells: a graph, a benchmark and its suite, a model and its seed."""
    if "step" in wildcards:
        return _is_step(wildcards["stage"], wildcards["step"], config)
    benchmark = wildcards.get("benchmark")
    if any(wildcards[what] not in names_of(what, benchmark or "", config) for what in NAMES if what in wildcards):
        return False
    scored = wildcards.get("model") or wildcards.get("index") or wildcards.get("baseline")
    if scored is None:
        return True
    if "seed" not in wildcards:
        return scored in reported_on(config, wildcards["benchmark"])
    if "map" in wildcards:
        return (scored, int(wildcards["seed"])) in mapped_runs(config, config.maps[wildcards["map"]].models)
    return f"{scored}-{wildcards['seed']}" in runs_of(config, benchmark)


def configured_in(config: Configuration | None) -> Callable[[Mapping[str, str]], bool]:
    """Whether this configuration has what a path tells, for `files_by_place`; without one, everything is kept."""
    return lambda wildcards: config is None or is_configured(wildcards, config)


def _is_step(stage: str, step: str, config: Configuration) -> bool:
    if stage == "corpus":
        if step.endswith(OF_DOCUMENTS):
            return step.removesuffix(OF_DOCUMENTS) in config.benchmarks
        base, match = (getattr(config.corpus, key, None) is not None for key in ("base", "match"))
        known = {"read": config.queries.from_ == "triplets", "update": base, "match": match}
        return known.get(step.partition("-")[0], True)
    if stage == "evaluation" and "_" in step:
        benchmark, _, baseline = step.partition("_")
        return benchmark in config.benchmarks and baseline in reported_on(config, benchmark)
    what, number = STEPS[stage]
    names = names_of(what, "", config)
    if stage == "graph" and re.search(r"-(citations|contexts)-\d+$", step):
        names = [name for name in names if getattr(config.graphs[name], "citations", None)]
    return any(re.fullmatch(re.escape(name) + number, step) for name in names)


def refuse_another_corpus(config: Resolved, results: Path) -> None:
    """Raise `InputError` if `results` was made from another corpus than that of `config`."""
    recorded = recorded_values(results)
    has_corpus = any(path.is_file() for path in (results / "corpus").rglob("*"))
    if recorded is None or not has_corpus or Path(os.environ.get(OVERWRITE) or os.devnull) == results:
        return
    then, now = _corpus(recorded, results), _corpus(config, results)
    differences = [
        f"{key} was {then[key]} and is {now[key]}" if key in then else f"{key} is {now[key]}"
        for key in now
        if not _is_same(key, then.get(key), now[key])
    ]
    if differences:
        raise InputError(
            f"{results} has results of another corpus, and this run would overwrite them: {', '.join(differences)}. "
            "Name other folders in this configuration, as in pathvars: {results: results/NAME, logs: logs/NAME, "
            f"benchmarks: benchmarks/NAME}}; to overwrite them on purpose, set {OVERWRITE}={results} for this run."
        )


def record(config: Resolved, results: Path) -> None:
    """Write the configuration of a run into its folder. Where Snakemake lacks records, it does not remake what edits
    concern; such keys keep the values that files were made with."""
    earlier = recorded_values(results)
    made_with = _kept(earlier, config) if earlier is not None and files_without_record(results) else config
    # Not JSON: YAML reads its numbers such as 2e-05 as text.
    write_text(results / STARTED_WITH, yaml.safe_dump(made_with, sort_keys=False, allow_unicode=True))
    write_text(results / FOR_PROVENANCE, json.dumps(config))


def remake_without_record(results: Path) -> None:
    """Have the run make files again whose record ends in the middle, because the disk was full. Snakemake would take
    them for files without a record, and keep them whatever was edited since."""
    metadata, incomplete = RECORDS
    for record in filter(Path.is_file, metadata.rglob("*")):
        with record.open("rb") as file:
            file.seek(max(record.stat().st_size - 1, 0))
            if file.read() == b"}":
                continue
        relative = record.relative_to(metadata)
        # The name of a record is that of its file, in folders with a mark if it is long.
        name = urlsafe_b64decode("".join(part.removeprefix("@") for part in relative.parts)).decode()
        if Path(name).is_relative_to(results):
            (incomplete / relative).parent.mkdir(parents=True, exist_ok=True)
            record.replace(incomplete / relative)


def missing_records(config: Resolved, results: Path) -> str | None:
    """What to tell a user whose results came without Snakemake's records of how they were made; none where all is well.
    Snakemake takes a file without a record for one that is as it should be, whatever was edited since."""
    files = files_without_record(results)
    if not files:
        return None
    recorded = recorded_values(results)
    edits = [] if recorded is None else list(edited(recorded, config))
    more = f"; and {len(edits) - SHOWN} more" if len(edits) > SHOWN else ""
    if recorded is None:
        stale = "Their configuration is not recorded either."
    elif edits:
        stale = f"They were made with other settings, and stay as they are: {'; '.join(edits[:SHOWN])}{more}."
    else:
        stale = "They were made with the settings of this configuration."
    return (
        f"Snakemake has no record of how {files[0]} was made, nor of {len(files) - 1} other{'s' * (len(files) != 2)}: "
        f"edits of the configuration will not remake what is in {results}. {stale} "
        "What to do is in docs/recovery.md, “Results that were moved”."
    )


def files_without_record(results: Path) -> list[Path]:
    """Files of some steps that Snakemake has no record of. Raises `InputError` if its records cannot be read."""
    found = sorted(path for pattern in WITH_SETTINGS for path in results.glob(pattern))
    return [path for path in found if not _has_record(path)]


def edited(then: Any, now: Any, key: str = "") -> Iterator[str]:
    """What differs in two configurations, a key each; entries that one of them lacks make no file stale."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for name in then:
            if name in now and name != "pathvars":
                yield from edited(then[name], now[name], f"{key}.{name}" if key else name)
    elif isinstance(then, list) and isinstance(now, list) and all(entry in now for entry in then):
        return
    elif then != now:
        was, given = (without_password(json.dumps(value, ensure_ascii=False)) for value in (then, now))
        yield f"{key} was {was} and is {given}"


def _corpus(config: Resolved, results: Path) -> dict[str, Any]:
    """What makes a corpus another one, by key of the configuration."""
    corpus, release = config.get("corpus", {}), config.get("release")
    if release == "latest":  # what that was when the shards of these results were listed
        with suppress(OSError, ValueError, KeyError):
            release = str(json.loads((results / "corpus/manifest.json").read_bytes())["release"])
    stated = {"run_seed": config.get("run_seed"), "release": release}
    stated |= {f"corpus.{key}": corpus.get(key) for key in ("source", "path") if key == "source" or key in corpus}
    if corpus.get("source") == "demo" and "demo" in corpus:
        stated |= {f"corpus.demo.{key}": corpus["demo"].get(key) for key in ("papers", "topics")}
    return stated


def _is_same(key: str, then: Any, now: Any) -> bool:
    if key == "corpus.path" and then and now:
        return Path(then).resolve() == Path(now).resolve()
    return bool(then == now)


def _kept(earlier: Any, config: Any) -> Any:
    """The configuration with the values that the earlier one had for the same keys."""
    if isinstance(earlier, Mapping) and isinstance(config, Mapping):
        return {name: _kept(earlier[name], value) if name in earlier else value for name, value in config.items()}
    return earlier


def _has_record(path: Path) -> bool:
    name = urlsafe_b64encode(str(path).encode()).decode()
    if len(name) > LONGEST_NAME:
        return True
    found = [folder / name for folder in RECORDS if (folder / name).is_file()]
    if not all(os.access(record, os.R_OK) for record in found):
        raise InputError(
            f"{found[0].parent} has records of Snakemake that this user may not read; their owner can allow it, as "
            "by chmod -R a+rX .snakemake, or work in a separate folder."
        )
    return bool(found)
