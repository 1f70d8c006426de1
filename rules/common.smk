"""What the stages have in common: names of the configuration turned into files, its entries into settings."""

import json
import os
import sys
from pathlib import Path

from cocite.consistency import DATASETS

# Jobs call `cocite`; a run started as .venv/bin/snakemake finds it beside its own Python.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))

RESULTS = config.get("pathvars", {}).get("results", "results")
BUCKETS = range(config["corpus"]["buckets"])
PARTS = range(config["corpus"]["parts"])
HOLDOUTS = [name for name, entry in config["benchmarks"].items() if entry["kind"] == "holdout"]
UNTRAINED = [f"untrained_{encoder}" for encoder in config["encoders"]]


def named(section, **having):
    """Regular expression of the names in a section whose entries have these values; it matches nothing if none do."""
    names = [name for name, entry in config[section].items() if having.items() <= entry.items()]
    return "|".join(names) or "(?!)"


wildcard_constraints:
    bucket=r"\d+",
    part=r"\d+",
    seed=r"\d+",
    dataset="|".join(DATASETS),
    graph=named("graphs"),
    embedding=named("embeddings"),
    triplets=named("triplets"),
    model="|".join([*config["models"], *UNTRAINED]) or "(?!)",
    benchmark=named("benchmarks"),


def buckets(path, **wildcards):
    """A file for each bucket of a table."""
    return expand(path, bucket=BUCKETS, **wildcards)


def trained(path):
    """A file for each model and each of its seeds."""
    return [file for name, entry in config["models"].items() for file in expand(path, model=name, seed=entry["seeds"])]


def all_scores():
    """The scores of every model and baseline on every benchmark."""
    scored = [
        *trained("<results>/evaluation/{{benchmark}}/scores/{model}-{seed}.parquet"),
        *expand("<results>/evaluation/{{benchmark}}/scores/{model}-0.parquet", model=UNTRAINED),
        "<results>/evaluation/{benchmark}/scores/bm25-0.parquet",
        "<results>/evaluation/{benchmark}/scores/random-0.parquet",
    ]
    return expand(scored, benchmark=config["benchmarks"])


def groups():
    """The groups of sets of triplets that are compared with one another."""
    return sorted({entry["group"] for entry in config["triplets"].values()})


def group_of(triplets):
    """The sets of triplets that are compared with this one, itself among them."""
    group = config["triplets"][triplets]["group"]
    return [name for name, entry in config["triplets"].items() if entry["group"] == group]


def settings(section, wildcard, *without):
    """The entry that a wildcard names, as JSON for `--settings`, without the keys that the step does not look at."""

    def as_json(wildcards):
        entry = config[section][wildcards[wildcard]]
        return json.dumps({key: value for key, value in entry.items() if key not in without}, sort_keys=True)

    return as_json


def state(folder):
    """A folder that Snakemake does not know and never wipes, for what a killed step goes on from."""
    return f"{RESULTS}/.state/{folder}"


def surplus_files():
    """What a run with more buckets or parts has left: tables are read by the folder, and would hold its rows twice."""
    numbered = {
        "corpus/papers/*.parquet": BUCKETS,
        "corpus/citations/*.parquet": BUCKETS,
        "graph/*/cocitations/*.parquet": BUCKETS,
        "graph/*/edges/*.parquet": BUCKETS,
        "corpus/omissions/merge-*.parquet": BUCKETS,
        "corpus/omissions/ingest-*.parquet": PARTS,
    }
    for pattern, numbers in numbered.items():
        for file in Path(RESULTS).glob(pattern):
            number = file.stem.rpartition("-")[2]
            if number.isdigit() and int(number) not in numbers:
                yield file


onstart:
    for file in surplus_files():
        file.unlink()


def folder_of(inputs):
    """The folder that the files of a sharded table lie in."""

    def folder(wildcards, input):
        return Path(input[inputs][0]).parent

    return folder


def megabytes(least, **of_inputs):
    """Memory of a job, MB: so many times each of these inputs, at least this much, and more with each attempt."""

    def memory(wildcards, input, attempt):
        needed = sum(factor * size_mb(input[name]) for name, factor in of_inputs.items())
        return int(max(least, needed) * attempt)

    return memory


def size_mb(paths):
    """Size of a file or of several, MB. Snakemake takes a folder for an empty file; here its files count."""
    found = [Path(path) for path in ([paths] if isinstance(paths, str) else paths)]
    inside = [file for path in found for file in path.rglob("*")]
    return sum(path.stat().st_size for path in [*found, *inside]) / 1e6


def is_directed(wildcards):
    """Whether an embedding's graph is; the edges of an undirected graph are trained on both ways."""
    return config["graphs"][config["embeddings"][wildcards.embedding]["graph"]].get("directed", False)


def searched_papers(wildcards):
    """The papers, where only those with a text are searched for neighbours; nothing where all are."""
    among = config["embeddings"][wildcards.embedding]["neighbours"]["among"]
    return buckets("<results>/corpus/papers/{bucket}.parquet") if among == "texts" else []


def encoder_of(wildcards):
    """The encoder that a model starts from."""
    return config["models"][wildcards.model]["encoder"]


def validation_of(wildcards):
    """The validation set that a model shares with all models of its group."""
    group = config["triplets"][config["models"][wildcards.model]["triplets"]]["group"]
    return expand("<results>/triplets/validation_{group}.parquet", group=group)


def benchmark_folder(wildcards):
    """The folder of a benchmark in SciRepEval's layout."""
    folder = config["benchmarks"][wildcards.benchmark]["folder"]
    return "<results>/demo/benchmark" if folder == "demo" else folder


def given_shards(dataset):
    """The shards of a dataset in the folder that the configuration names, by name; other sources are downloaded."""
    if config["corpus"]["source"] != "directory":
        return []
    return sorted(map(str, Path(config["corpus"]["path"], dataset).glob("*.gz")))


def raw_shards(wildcards):
    """What a job ingests: the folder of what it downloaded, or its share of the shards that were given."""
    if config["corpus"]["source"] == "directory":
        return given_shards(wildcards.dataset)[int(wildcards.part) :: len(PARTS)]
    return f"<results>/corpus/raw/{wildcards.dataset}/{wildcards.part}"


def folder_of_shards(wildcards, input):
    """The folder that holds what a job ingests."""
    if config["corpus"]["source"] == "directory":
        return f"{config['corpus']['path']}/{wildcards.dataset}"
    return input.shards


def served_release(wildcards):
    """The release that the demo's server serves; other sources are served by others."""
    return "<results>/demo/release" if config["corpus"]["source"] == "demo" else []


def served_by(wildcards, input):
    """The demo's release is fetched like a real one, from a server that runs for as long as the command does."""
    return f"cocite demo serve {input.served} --" if config["corpus"]["source"] == "demo" else ""


def origin():
    """Where a release comes from: a folder, or the base URL of an API; the demo's server fills in its own."""
    return {
        "s2": config["corpus"]["api"],
        "directory": config["corpus"].get("path"),
        "demo": "SERVER",
    }[config["corpus"]["source"]]
