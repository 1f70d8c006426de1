"""What a schema cannot say of the corpus: dates, folders, and what a release says of itself.

Each check takes the configuration with its defaults and raises `InputError`, one sentence that names the key.
"""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from cocite.errors import InputError

DATASETS = ("papers", "abstracts", "citations")

Configuration = Mapping[str, Any]


def check_corpus(config: Configuration) -> None:
    """Check the release, where it comes from and what it is reached from."""
    _check_release(config)
    _check_folder(config)
    _check_base(config)


def largest_index(config: Configuration) -> int | None:
    """Upper bound of the papers that can have an edge, where the release says enough to tell."""
    corpus = config["corpus"]
    if corpus["source"] == "demo":
        return int(corpus["demo"]["papers"])
    if corpus["source"] == "directory":
        stated = _stated(Path(corpus["path"]))
        papers, citations = stated.get("papers"), stated.get("citations")
        if isinstance(papers, int) and isinstance(citations, int):
            return papers + citations
    return None


def _check_release(config: Configuration) -> None:
    release = config["release"]
    if release == "latest":
        if config["corpus"]["source"] != "s2":
            raise InputError("Configuration key release is latest, which only the source s2 can tell; name a date.")
        return
    try:
        date.fromisoformat(release)
    except ValueError:
        raise InputError(f"Configuration key release is {release}, which is no date of the calendar.") from None


def _check_folder(config: Configuration) -> None:
    corpus = config["corpus"]
    if corpus["source"] != "directory":
        return
    if "path" not in corpus:
        raise InputError("Configuration key corpus.path is missing; the source directory needs it.")
    folder = Path(corpus["path"])
    if not folder.is_dir():
        raise InputError(f"Configuration key corpus.path: the folder {folder} does not exist.")
    for dataset in DATASETS:
        if not any((folder / dataset).glob("[!.]*.gz")):
            raise InputError(
                f"Configuration key corpus.path: the release in {folder} lacks the dataset {dataset} "
                f"(no {dataset}/*.gz)."
            )
    stated = _stated(folder).get("release_id")
    if stated is not None and stated != config["release"]:
        raise InputError(f"Configuration key release is {config['release']}, but {folder} holds the release {stated}.")


def _check_base(config: Configuration) -> None:
    corpus = config["corpus"]
    if "base" not in corpus:
        return
    key, base = "Configuration key corpus.base", Path(corpus["base"])
    if corpus["source"] != "s2":
        raise InputError(f"{key}: only the source s2 has diffs from one release to the next, not {corpus['source']}.")
    results = Path(config.get("pathvars", {}).get("results", "results"))
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


def _stated(folder: Path) -> dict[str, Any]:
    """What the release says of itself in release.json, if it has one."""
    file = folder / "release.json"
    try:
        stated = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise InputError(f"{file}, line {error.lineno}: not JSON ({error.msg}).") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: not UTF-8.") from None
    if not isinstance(stated, dict):
        raise InputError(f'{file}: must be a JSON object, such as {{"release_id": "2026-01-06"}}.')
    return stated
