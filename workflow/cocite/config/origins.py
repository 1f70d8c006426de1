"""What a model comes from, in words: its corpus, its base encoder, its triplets and what they were sampled from.

All of it follows from the provenance that a run records. Only settings that had an effect are named, and no folder with
more than its name: what is written here goes into cards that leave the machine.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cocite.config.entries import summary_of
from cocite.config.plugins import plugins
from cocite.config.terms import Provenance, has_generated_corpus, packages_of, terms_of_corpus, terms_of_encoder
from cocite.config.triplets import SAMPLERS

CARD_SCORES = "## Scores on benchmarks"
"""The last heading of a card: what the training has no scores for yet, and the report fills in."""
OF_EMBEDDING = ("engine", "comparator", "dimension", "epochs", "loss")
OF_WALKS = ("restart", "score", "tolerance", "weighted")


def origin_of(model: str, provenance: Provenance) -> dict[str, dict[str, Any]]:
    """What a model comes from, for its card: a table of names and values for each of its origins."""
    models = provenance["configuration"]["models"]
    encoder, sets = _encoder_under(model, models), _sets_of(models[model])
    of_sets = {
        f"{heading} of {name}" if len(sets) > 1 else heading: table
        for name in sets
        for heading, table in (
            ("Triplets", {"name": name, **sampling_of(name, provenance)}),
            ("Graph", graph_of(name, provenance)),
        )
    }
    return {
        "Run": {"model": model, **({"goes on from": models[model]["from"]} if "from" in models[model] else {})},
        "Base encoder": {
            "name": encoder,
            "what it is": encoder_in_words(encoder, provenance),
            "terms": terms_of_encoder(encoder, provenance),
        },
        **of_sets,
        "Corpus": {
            "source": corpus_in_words(provenance),
            "release": provenance["release"],
            "terms": terms_of_corpus(provenance),
        },
    }


def read_origin(settings: str | None, manifest: Path | None) -> dict[str, dict[str, Any]]:
    """What a model comes from, by what `settings_of_origin` gives as JSON and the manifest; nothing without them."""
    if settings is None or manifest is None:
        return {}
    configuration, listed = json.loads(settings), json.loads(manifest.read_text(encoding="utf-8"))
    readmes = {name: dataset.get("readme", "") for name, dataset in listed["datasets"].items()}
    earlier = {entry.get("from") for entry in configuration["models"].values()}
    [model] = [name for name in configuration["models"] if name not in earlier]
    stated = {"configuration": configuration, "release": listed["release"], "readmes": readmes}
    return origin_of(model, {**stated, "packages": packages_of(configuration)})


def settings_of_origin(model: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that `origin_of` reads for a model.

    All of it belongs to steps before the training: another value of it means another training anyway.
    """
    encoder = _encoder_under(model, configuration["models"])
    part: dict[str, Any] = {
        "corpus": {
            "source": configuration["corpus"]["source"],
            "path": Path(configuration["corpus"].get("path", "")).name,
        },
        "models": _with_what_they_go_on_from(model, configuration["models"]),
        "encoders": {encoder: configuration["encoders"][encoder]},
        "triplets": {},
        "embeddings": {},
        "graphs": {},
    }
    for name in _sets_of(configuration["models"][model]):
        _add_set(part, name, configuration)
    return part


def _sets_of(model: Mapping[str, Any]) -> list[str]:
    return [model["triplets"]] if "triplets" in model else [each["triplets"] for each in model["objectives"]]


def _encoder_under(name: str, models: Mapping[str, Mapping[str, Any]]) -> str:
    """The encoder that a model starts from, or that the model has which it goes on from."""
    while "from" in models[name]:
        name = models[name]["from"]
    encoder: str = models[name]["encoder"]
    return encoder


def _with_what_they_go_on_from(model: str, models: Mapping[str, Any]) -> dict[str, Any]:
    """A model and those that it goes on from, with what they learn from and start from."""
    stated = {key: models[model][key] for key in ("triplets", "encoder", "from") if key in models[model]}
    if "triplets" not in stated:
        stated["objectives"] = [{"triplets": name} for name in _sets_of(models[model])]
    earlier = models[model].get("from")
    return {model: stated, **({} if earlier is None else _with_what_they_go_on_from(earlier, models))}


def _add_set(part: dict[str, Any], name: str, configuration: Mapping[str, Any]) -> None:
    """Add a set of triplets or examples to a part of a configuration, with the graph that it is sampled from."""
    triplets = part["triplets"][name] = configuration["triplets"][name]
    embedding = configuration["embeddings"].get(triplets.get("embedding"))
    named = triplets if embedding is None else embedding
    walks = configuration.get("walks", {}).get(triplets.get("embedding"))
    if walks is not None:
        named = walks
        # Only where there are walks, so that other models keep the part that they were trained with.
        part.setdefault("walks", {})[triplets["embedding"]] = {name: walks[name] for name in ("graph", *OF_WALKS)}
    if embedding is not None:
        stated = {name: embedding[name] for name in ("graph", *OF_EMBEDDING) if name in embedding}
        part["embeddings"][triplets["embedding"]] = {
            **stated,
            "neighbours": {"metric": embedding["neighbours"]["metric"]},
        }
    if "graph" in named:
        part["graphs"][named["graph"]] = configuration["graphs"][named["graph"]]


def corpus_in_words(provenance: Provenance) -> str:
    """Where the papers and citations come from."""
    corpus = provenance["configuration"]["corpus"]
    if has_generated_corpus(provenance):
        return "a generated release: no such paper was ever written"
    if corpus["source"] == "s2":
        return "Semantic Scholar"
    if corpus["source"] == "openalex":
        return "OpenAlex"
    if corpus["source"] == "directory":
        return f"a release in the folder {Path(corpus['path']).name}"
    if corpus["source"] == "table":
        return "tables of papers and citations that were brought"
    return f"the source {corpus['source']}"


def encoder_in_words(name: str, provenance: Provenance) -> str:
    """What a base encoder is: a model of the hub with its revision, a package, a folder, or how it was built."""
    entry = provenance["configuration"]["encoders"][name]
    if "build" in entry:
        sizes = entry["build"]
        shape = f"{sizes['layers']} layers of width {sizes['hidden']}, {sizes['heads']} heads"
        return f"a BERT with random weights ({shape}), and a vocabulary from the corpus"
    if "package" in entry:
        version = provenance.get("packages", {}).get(entry["package"], {}).get("version", "")
        return f"the encoder in the Python package {entry['package']} {version}".strip()
    if "revision" in entry:
        return f"{entry['model']} of the Hugging Face hub, commit {entry['revision']}"
    return f"the encoder in the folder {Path(entry['model']).name}"


def sampling_of(triplets: str, provenance: Provenance) -> dict[str, Any]:
    """How a set of triplets was sampled: the sampler, and its settings that had an effect."""
    entry = provenance["configuration"]["triplets"][triplets]
    stated = dict(entry)
    if not (entry.get("easy") or entry.get("fill")):
        stated.pop("easy_negatives", None)  # It has no effect where no easy ones are drawn.
    if isinstance(stated.get("layout"), Mapping):
        layout = stated.pop("layout")
        stated |= {"layout": layout["kind"], **{key: value for key, value in layout.items() if key != "kind"}}
        stated |= {key: dataset_in_words(value) for key, value in stated.items() if isinstance(value, Mapping)}
    if "dataset" in stated:
        stated["dataset"] = dataset_in_words({key: stated.pop(key, None) for key in ("dataset", "revision")})
    if "path" in stated:
        stated["path"] = Path(stated["path"]).name
    if isinstance(stated.get("easy_negatives"), Mapping):
        ways = stated.pop("easy_negatives")
        stated |= {"easy_negatives": ways["kind"], **{key: value for key, value in ways.items() if key != "kind"}}
    if isinstance(stated.get("by"), Mapping):
        by = stated["by"]
        words = [" ".join(by[key] for key in ("kind", "name") if key in by)]
        words += [f"seed {by['seed']}"] if "seed" in by else []
        stated["by"] = ", ".join([*words, *([by["metric"]] if "metric" in by else [])])
    sampler = stated.pop("sampler")
    stated = {key: value for key, value in stated.items() if value not in (None, [])}
    return {"sampler": f"{sampler}: {summary_of(plugins(SAMPLERS, 'sampler')[sampler])}", **stated}


def dataset_in_words(entry: Mapping[str, Any]) -> str:
    """A dataset of the hub with its commit, or the name of a folder or file."""
    if entry.get("revision") is None:
        return Path(entry["dataset"]).name
    return f"{entry['dataset']} of the Hugging Face hub, commit {entry['revision']}"


def graph_of(triplets: str, provenance: Provenance) -> dict[str, Any]:
    """The graph that a set of triplets was sampled from, and its embedding or walks where they are between the two."""
    configuration = provenance["configuration"]
    entry, stated = configuration["triplets"][triplets], {}
    if (name := entry.get("embedding")) in configuration.get("walks", {}):
        entry = configuration["walks"][name]
        stated = {"walks": name, **{key: entry[key] for key in OF_WALKS}}
    elif "embedding" in entry:
        name, entry = entry["embedding"], configuration["embeddings"][entry["embedding"]]
        stated = {"embedding": name, **{key: entry[key] for key in OF_EMBEDDING if key in entry}}
        if isinstance(stated.get("loss"), Mapping):
            stated["loss"] = stated["loss"]["kind"]
        stated["metric of the neighbours"] = entry["neighbours"]["metric"]
    if "graph" in entry:
        stated |= {"graph": entry["graph"], **configuration["graphs"][entry["graph"]]}
    return stated
