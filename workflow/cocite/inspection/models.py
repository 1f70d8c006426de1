"""The trained models of some results, and the vectors that each has given to the papers of the corpus."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from cocite.errors import InputError
from cocite.places import files_by_place
from cocite.tables import TABLES

UNTRAINED = "untrained_"


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model with one of its seeds."""

    name: str
    seed: int
    folder: Path
    """The encoder, as sentence-transformers opens it."""
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
        command = _embedding_command(results, chosen, configfile)
        raise InputError(
            f"The papers have no vectors of model {chosen.name}, seed {chosen.seed}, that are newer than it is. "
            f"This embeds them, and can take long on a large corpus:\n  {command}"
        )
    return chosen


def _models(results: Path) -> list[Model]:
    """All models, the trained ones first, by name and seed."""
    found = [path.parent for path in results.glob("encoder/*/seed-*/model/modules.json")]
    keyed = {(folder.parent.parent.name, int(folder.parent.name.removeprefix("seed-"))): folder for folder in found}
    vectors = files_by_place(results, TABLES["paper_embeddings"])
    papers = list((results / "corpus" / "papers").glob("*.parquet"))
    return [
        Model(
            name=name,
            seed=seed,
            folder=folder,
            vectors=_all_of(papers, vectors.get((("model", name), ("seed", str(seed))), []), folder),
        )
        for (name, seed), folder in sorted(keyed.items(), key=lambda item: (item[0][0].startswith(UNTRAINED), item[0]))
    ]


def _all_of(papers: list[Path], vectors: list[Path], model: Path) -> list[Path]:
    """The vectors if there are some of every bucket of papers, made after the model; none otherwise."""
    made = (model / "modules.json").stat().st_mtime
    current = [path for path in vectors if path.stat().st_mtime >= made]
    return current if {path.name for path in current} == {path.name for path in papers} else []


def _embedding_command(results: Path, model: Model, configfile: Path | None) -> str:
    """The command that embeds the papers; the shell's braces name a file for each bucket."""
    buckets = sorted(int(path.stem) for path in (results / "corpus" / "papers").glob("*.parquet"))
    braces = f"{{{buckets[0]}..{buckets[-1]}}}" if len(buckets) > 1 else str(buckets[0])
    configured = f" --configfile {shlex.quote(str(configfile))} --replace-workflow-config" if configfile else ""
    folder = shlex.quote(str(results / "encoder" / model.name / f"seed-{model.seed}" / "papers"))
    return f"snakemake --cores 2 {folder}/{braces}.parquet{configured}"
