"""What baselines are trained on and embed with, and what that costs."""

# Baselines by name, with the points of their grids.
BASELINES = {**config["baselines"], **trained_entries(config)}
GRIDS = [name for name, entry in config["baselines"].items() if "grid" in entry]


def kind_of_baseline(name):
    """The class of a baseline."""
    return kind_of(BASELINES[name])


def baseline_settings(wildcards):
    """A baseline as JSON for `--settings`, without its seeds."""
    entry = BASELINES[wildcards.baseline]
    return json.dumps({key: value for key, value in entry.items() if key != "seeds"}, sort_keys=True)


def points(path):
    """A file of each point of a grid."""

    def files(wildcards):
        entry = config["baselines"][wildcards.baseline]
        names = [f"{wildcards.baseline}{POINT}{number}" for number in range(len(points_of(entry)))]
        return expand(path, baseline=names, seed=wildcards.seed)

    return files


def baseline_embeddings():
    """The vectors of all benchmarks' documents by all baselines that have some."""
    path = "<results>/baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet"
    return [
        file
        for benchmark in config["benchmarks"]
        for name in baselines_on(config, benchmark)
        if name in baselines_with_vectors(config)
        for file in expand(path, baseline=name, seed=seeds_of(name, config), benchmark=benchmark)
    ]


def vectors_under(wildcards):
    """The folder of the vectors that a baseline stands on: those of another one, or of an encoder."""
    entry = BASELINES[wildcards.baseline]
    if "of" in entry:
        seed = seed_under(wildcards.baseline, int(wildcards.seed), config)
        return f"<results>/baselines/{entry['of']}/seed-{seed}"
    return f"<results>/encoder/untrained_{entry['encoder']}/seed-0"


def source_of_baseline(source, wildcards):
    """The files of a source: a list, or a path where it is one file or folder."""
    entry = BASELINES[wildcards.baseline]
    match source:
        case "papers" | "citations":
            return buckets(f"<results>/corpus/{source}/{{bucket}}.parquet")
        case "baseline":
            return f"{vectors_under(wildcards)}/model"
        case "paper_vectors":
            return buckets(f"{vectors_under(wildcards)}/papers/{{bucket}}.parquet")
        case "document_vectors":
            of_benchmark = f"embeddings/{wildcards.benchmark}" if "benchmark" in wildcards.keys() else "validation"
            return f"{vectors_under(wildcards)}/{of_benchmark}.parquet"
        case "document_papers":
            found = papers_of_documents([wildcards.benchmark]) if "benchmark" in wildcards.keys() else []
            return found[0] if found else []
        case "edges":
            return buckets("<results>/graph/{graph}/edges/{bucket}.parquet", graph=entry["graph"])
        case "examples":
            return f"<results>/triplets/{entry['triplets']}/examples.parquet"
        case "texts":
            return f"<results>/triplets/{entry['triplets']}/documents"


def sources_of_baseline(step, source):
    """The files of a source, where the baseline's training (`trained_on`) or embedding (`embeds_with`) reads it."""

    def files(wildcards):
        asked = getattr(kind_of_baseline(wildcards.baseline), step)
        is_asked = source in asked or (source == "texts" and "examples" in asked)
        return source_of_baseline(source, wildcards) if is_asked else []

    return files


def baseline_sources(*names):
    """The sources that a job has among these, by name, as JSON for `--sources`."""

    def as_json(wildcards, input):
        return json.dumps({name: input[name] for name in names if input[name]}, default=list)

    return as_json


def files_of_baseline(wildcards):
    """The files of vectors that a baseline brings; none for others."""
    entry = entry_of(BASELINES[wildcards.baseline], AnyBaseline)
    return [file for path in entry.files for file in (files_in(path) if Path(path).is_dir() else [path])]


def trained_baseline(wildcards):
    """The model of a baseline; nothing where it is not trained."""
    is_trained = kind_of_baseline(wildcards.baseline).trained_on
    return "<results>/baselines/{baseline}/seed-{seed}/model" if is_trained else []


def grid_of_baseline(wildcards):
    """What the points of a baseline's grid reached; nothing where it has none.

    A model that was trained before there was a grid is made again only where this is asked for beside it.
    """
    return "<results>/baselines/{baseline}/seed-{seed}/grid.parquet" if wildcards.baseline in GRIDS else []


def by_baseline(asked_of):
    """What a job of a baseline asks for, by the size of its inputs: a method of the baseline says how much."""

    def asked(wildcards, input, attempt):
        entry = entry_of(BASELINES[wildcards.baseline], AnyBaseline)
        return ceil(getattr(entry, asked_of)(size_mb(input))) * attempt

    return asked
