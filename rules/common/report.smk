"""The figures of the page, its maps, and the logs that say what jobs took."""

MAPPED_TABLES = ["documents", "judgements", "labels"]


def figure(name, label, path=None):
    """A figure of the page, which Snakemake's own report shows as well; its file may have a name of its own."""
    caption = f"../workflow/report/captions/{name}.rst"
    return report(f"<results>/report/figures/{path or name}.svg", caption, category="Figures", labels={"figure": label})


def map_of(wildcards):
    """The entry of a map in the configuration."""
    return config["maps"][wildcards.map]


def mapped_tables(wildcards):
    """The tables of the benchmark whose documents are on a map."""
    path = "<results>/evaluation/{benchmark}/{table}.parquet"
    return expand(path, benchmark=map_of(wildcards)["benchmark"], table=MAPPED_TABLES)


def corpus_of_map(wildcards):
    """The papers of the corpus, where the documents of a map are some of them."""
    return buckets("<results>/corpus/papers/{bucket}.parquet") if map_of(wildcards)["benchmark"] in HOLDOUTS else []


def option_of_corpus(wildcards, input):
    """The option that names the folder of these papers, if there are some."""
    return f"--corpus {shlex.quote(str(Path(input.corpus[0]).parent))}" if input.corpus else ""


def option_of_queries(wildcards):
    """The option that leaves out documents which are no queries, where a map shows queries alone."""
    return "--only-queries" if maps_queries(map_of(wildcards), config["benchmarks"]) else ""


def labelled_tasks(wildcards):
    """The tasks of its benchmark whose labels are classes, with commas between them."""
    return ",".join(labels_of(config["benchmarks"][map_of(wildcards)["benchmark"]])[1:])


def settings_of_map(wildcards):
    """What a map is laid out by, as JSON; another model on it changes nothing for the others."""
    return json.dumps({key: value for key, value in map_of(wildcards).items() if key != "models"}, sort_keys=True)


def vectors_of(model, seed, benchmark):
    """The vectors of a benchmark's documents by a model, an encoder before fine-tuning, or a baseline."""
    stage = "baselines" if model in config["baselines"] else "encoder"
    return f"<results>/{stage}/{model}/seed-{seed}/embeddings/{benchmark}.parquet"


def mapped_vectors(wildcards):
    """The vectors of a map's papers by one model."""
    return vectors_of(wildcards.model, wildcards.seed, map_of(wildcards)["benchmark"])


def on_map(name, table):
    """A table of each model on a map: points or scores."""
    runs = mapped_runs(config, config["maps"][name].get("models"))
    return [f"<results>/report/maps/{name}/{table}/{model}-{seed}.parquet" for model, seed in runs]


def laying_out_memory(wildcards, input, attempt):
    """Memory to lay a map out, MB: by its papers, and by a batch of vectors."""
    return ceil(900 + 0.1 * map_of(wildcards)["papers"]) * attempt


def laying_out_minutes(wildcards, input, attempt):
    """Time to lay a map out: by its papers and the size of the vectors that they are looked for in."""
    return ceil(10 + 0.002 * map_of(wildcards)["papers"] + 0.01 * size_mb(input.embeddings)) * attempt


def logs_of_rules():
    """The logs of each rule, with its wildcards in braces, as JSON."""

    def as_json(wildcards):
        return json.dumps({rule.name: str(rule.log[0]) for rule in workflow.rules if rule.log}, sort_keys=True)

    return as_json


def with_fields_described():
    """The benchmarks whose documents have been looked up for more than title and abstract: all, if an encoder reads more."""
    return config["benchmarks"] if any(map(further_fields, [*config["models"], *UNTRAINED])) else []
