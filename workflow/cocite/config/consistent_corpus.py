"""What a schema cannot say of the corpus: dates, folders, and what a release says of itself.

Each check takes the configuration with its defaults and raises `InputError`, one sentence that names the key.
"""

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from cocite.config.folders import folders_of
from cocite.config.release_folder import DATASETS, ENDINGS, find_shards, stated_by
from cocite.config.schema_errors import shown
from cocite.ground.errors import InputError

LATEST = "latest"
NAME_OF_RELEASE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"

Configuration = Mapping[str, Any]


def check_corpus(config: Configuration) -> None:
    """Check the release, where it comes from and what it is reached from."""
    _check_release(config)
    _check_folder(config)
    _check_apart(config)
    _check_base(config)


def largest_index(config: Configuration) -> int | None:
    """Upper bound of the papers that can have an edge, where the release says enough to tell."""
    corpus = config["corpus"]
    if corpus["source"] == "demo":
        return int(corpus["demo"]["papers"])
    if corpus["source"] == "directory":
        stated = stated_by(Path(corpus["path"]))
        counts: list[Any] = [stated.get(dataset) for dataset in ("papers", "citations")]
        if all(type(count) is int and count >= 0 for count in counts):
            return sum(counts)
    return None


def _check_release(config: Configuration) -> None:
    release, source = config["release"], config["corpus"]["source"]
    key = f"Configuration key release is {shown(release)}"
    if release == LATEST:
        if source != "s2":
            raise InputError(f"{key}, which only the source s2 can tell; name the release.")
    elif source == "directory":
        if not re.fullmatch(NAME_OF_RELEASE, release):
            raise InputError(
                f"{key}; the name of a release has letters from a to z (also capitals), digits, dots, hyphens and "
                "underscores, starts with a letter or a digit, and is at most 100 characters long."
            )
    elif not _is_date(release):
        raise InputError(
            f"{key}, which is no date of the calendar; releases of the source {source} have dates, such as 2026-01-06."
        )


def _is_date(text: str) -> bool:
    """Whether a text is a day of the calendar, such as 2026-01-06."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _check_folder(config: Configuration) -> None:
    corpus = config["corpus"]
    if corpus["source"] != "directory":
        return
    if "path" not in corpus:
        raise InputError("Configuration key corpus.path is missing; the source directory needs it.")
    key, folder = "Configuration key corpus.path", Path(corpus["path"])
    if not folder.is_dir():
        raise InputError(f"{key}: the folder {folder} does not exist.")
    for dataset in DATASETS:
        try:
            shards = find_shards(folder / dataset)
        except InputError as error:
            raise InputError(f"{key}: {error}") from None
        if not shards:
            raise InputError(
                f"{key}: the release in {folder} lacks the dataset {dataset} (no file in {folder / dataset} that ends "
                f"in {ENDINGS})."
            )
    stated = stated_by(folder).get("release_id")
    if stated is not None and stated != config["release"]:
        raise InputError(f"Configuration key release is {config['release']}, but {folder} holds the release {stated}.")


def _check_apart(config: Configuration) -> None:
    """Check that a run writes nothing where the release lies, and removes nothing of it."""
    if config["corpus"]["source"] != "directory":
        return
    release = Path(config["corpus"]["path"])
    for name, folder in folders_of(config).items():
        key = f"Configuration key pathvars.{name}: the folder {folder}"
        if folder.resolve().is_relative_to(release.resolve()):
            raise InputError(f"{key} lies in the release in {release}, which would be mixed up with it; name another.")
        if name == "results" and release.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"{key} holds the release in {release}; a run removes files from its results, so name another."
            )


def _check_base(config: Configuration) -> None:
    corpus = config["corpus"]
    if "base" not in corpus:
        return
    key, base = "Configuration key corpus.base", Path(corpus["base"])
    if corpus["source"] != "s2":
        raise InputError(f"{key}: only the source s2 has diffs from one release to the next, not {corpus['source']}.")
    results = folders_of(config)["results"]
    if base.resolve() == results.resolve():
        raise InputError(f"{key}: {base} is this run's own results folder; name another in pathvars.results.")
    if (results / "corpus" / "manifest.json").is_file():
        return  # The base has served, and may be gone; if not, the steps that need it say so.
    if not (base / "corpus" / "manifest.json").is_file():
        raise InputError(f"{key}: {base} is not the results folder of an earlier run (no corpus/manifest.json).")
    for dataset in DATASETS:
        if not any((base / "corpus" / "ingested" / dataset).glob("*.parquet")):
            raise InputError(
                f"{key}: the run in {base} did not keep its ingested rows (no corpus/ingested/{dataset}/*.parquet); "
                "it must have corpus.keep_ingested: true."
            )
    buckets = len(list((base / "corpus" / "citations").glob("*.parquet")))
    if buckets not in (0, corpus["buckets"]):
        raise InputError(f"{key}: {base} has {buckets} buckets, but corpus.buckets is {corpus['buckets']}.")
