"""The trained models of some results, and the vectors that each has given to the papers of the corpus."""

import re
from dataclasses import dataclass
from pathlib import Path

from cocite.config.remaking import remaking_command
from cocite.config.stale import configuration_of, is_configured
from cocite.ground.errors import InputError
from cocite.tables import TABLES
from cocite.tables.places import files_by_place, path_of

UNTRAINED = "untrained_"
SEED = re.compile(r"seed-(\d+)")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model with one of its seeds."""

    name: str
    seed: int
    folder: Path
    """Folder of the encoder."""
    vectors: list[Path]
    """The buckets of the table paper_embeddings; empty where they are not all there."""


def choose_model(results: Path, name: str | None, configfile: Path | None = None) -> Model:
    """The model of this name, or model/seed; without one, the first, of those with vectors if any has them.

    Raises `InputError` that names the choices where there is none of this name, and the command that embeds the papers
    where its vectors are missing.
    """
    models = _models(results)
    named = [model for model in models if name in (None, model.name, f"{model.name}/{model.seed}")]
    if not named:
        choices = " or ".join(f"{model.name}/{model.seed}" for model in models)
        raise InputError(
            f"There is no model {name!r}; --model can be {choices}."
            if models
            else f"{results}/encoder holds no trained model; finish a run, or name its results with --results."
        )
    chosen = min(named, key=lambda model: not model.vectors)
    if not chosen.vectors:
        raise InputError(
            f"The papers have no vectors of model {chosen.name}, seed {chosen.seed}, that are newer than it is. "
            f"{_how_to_embed(results, chosen, configfile)}"
        )
    return chosen


def _models(results: Path) -> list[Model]:
    """All models of the configuration, the trained ones first, by name and seed."""
    config = configuration_of(results)
    vectors = files_by_place(results, TABLES["paper_embeddings"])
    papers = list(path_of(results, "papers").glob("*.parquet"))
    found = []
    for modules in sorted(results.glob("encoder/*/seed-*/model/modules.json")):
        folder = modules.parent
        name, seed = folder.parent.parent.name, SEED.fullmatch(folder.parent.name)
        if seed and (config is None or is_configured({"model": name, "seed": seed[1]}, config)):
            made = vectors.get((("model", name), ("seed", seed[1])), [])
            current = _all_of(papers, made, folder)
            found.append(Model(name=name, seed=int(seed[1]), folder=folder, vectors=current))
    return sorted(found, key=lambda model: (model.name.startswith(UNTRAINED), model.name, model.seed))


def _all_of(papers: list[Path], vectors: list[Path], model: Path) -> list[Path]:
    """The vectors if there are some of every bucket of papers, made after the model; none otherwise."""
    made = (model / "modules.json").stat().st_mtime
    current = [path for path in vectors if path.stat().st_mtime >= made]
    return current if papers and {path.name for path in current} == {path.name for path in papers} else []


def _how_to_embed(results: Path, model: Model, configfile: Path | None) -> str:
    """The command that embeds the papers, with a file for each bucket in the shell's braces, or why there is none."""
    buckets = sorted(int(path.stem) for path in path_of(results, "papers").glob("[0-9]*.parquet"))
    if not buckets:
        raise InputError(f"{results} holds no table papers, and a search needs it; run the workflow up to its end.")
    braces = f"{{{buckets[0]}..{buckets[-1]}}}" if len(buckets) > 1 else str(buckets[0])
    target = str(path_of(Path(), "paper_embeddings", model=model.name, seed=model.seed, bucket=braces))
    try:
        command = remaking_command(results, [target], configfile)
    except InputError as error:
        return str(error)
    return f"This embeds them, and can take long on a large corpus:\n  {command}"
