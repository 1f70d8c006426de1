"""The tasks of benchmarks, what scoring them costs, and where benchmarks come from."""

RUNS = runs_of(config)


def asked_tasks(wildcards):
    """The names of the tasks of a benchmark."""
    return ",".join(task.name for task in tasks_of(config["benchmarks"][wildcards.benchmark]))


def evaluation_seeds(wildcards):
    """The evaluation seeds that a task is scored with: rankings have no random choice, and are scored once."""
    seeds = config["benchmarks"][wildcards.benchmark]["seeds"]
    return seeds if TASKS[wildcards.task].is_supervised else seeds[:1]


def scored_mb(wildcards, input, table):
    """Size of a task's share of a table, by its documents; all of it where the job does not know these."""
    if not input.get("sizes"):
        return size_mb(input[table])
    sizes = json.loads(Path(input.sizes).read_text())
    return sizes["tasks"].get(wildcards.task, 0) / max(sizes["documents"], 1) * size_mb(input[table])


def scoring_memory(table, least, ranked, fitted=0):
    """Memory to score a task, MB: so many times its documents' share of a table, more where machines are fitted."""

    def memory(wildcards, input, attempt):
        factor = ranked if TASKS[wildcards.task].is_ranking else fitted
        return ceil(least + factor * scored_mb(wildcards, input, table)) * attempt

    return memory


def scoring_minutes(table):
    """Time to score a task: by its documents' share of a table, once for each seed and mode it is scored with."""

    def asked(wildcards, input, attempt):
        size = scored_mb(wildcards, input, table)
        if not TASKS[wildcards.task].is_supervised:
            return ceil(30 + 0.1 * size) * attempt
        modes = 2 if config["benchmarks"][wildcards.benchmark].get("mode") == "both" else 1
        return ceil(60 + 0.1 * size * modes * len(evaluation_seeds(wildcards))) * attempt

    return asked


def word_scoring_minutes(wildcards, input, attempt):
    """Time to rank by words: candidates in no time; in a search, every query is held against every document."""
    is_search = TASKS[wildcards.task].kind == "retrieval"
    return ceil(30 + is_search * scored_mb(wildcards, input, "documents") * size_mb(input.judgements)) * attempt


def comparing_minutes(wildcards, input, attempt):
    """Time to compare models: by what is drawn from, as often as it is drawn from."""
    return ceil(20 + size_mb(input) * config["benchmarks"][wildcards.benchmark]["resamples"] / 1000) * attempt


def scored(table, benchmark):
    """The scores of every model and baseline on every task of a benchmark, or what stands behind them."""
    return [
        f"<results>/evaluation/{benchmark}/{table}/{task}/{run}.parquet"
        for task, run in scored_runs(tasks_of(config["benchmarks"][benchmark]), RUNS)
    ]


def all_scored(table):
    """The same on every benchmark."""
    return [file for benchmark in config["benchmarks"] for file in scored(table, benchmark)]


def summaries():
    """The averages of every benchmark, and the comparisons of all models on it."""
    path = "<results>/evaluation/{benchmark}/{table}.parquet"
    return expand(path, benchmark=config["benchmarks"], table=["averages", "comparisons"])


def is_generated(entry):
    """Whether a benchmark is made up about the release."""
    return entry["kind"] == "scirepeval" and entry["folder"] == "demo"


def benchmark_sources(wildcards):
    """What a benchmark that others made is read from: the files of its folder, or folders fetched from the hub."""
    entry = config["benchmarks"][wildcards.benchmark]
    if "hub" not in entry:
        return "<results>/demo/benchmark" if is_generated(entry) else files_in(entry["folder"])
    path = "<results>/evaluation/{benchmark}/hub/{half}/{name}"
    return [
        path.format(benchmark=wildcards.benchmark, half=half, name=name)
        for half, name in sorted(splits_to_fetch(tasks_of(entry)))
    ]


def benchmark_folder(wildcards, input):
    """The folder of a benchmark that others made; what is fetched lies in its halves metadata and test."""
    entry = config["benchmarks"][wildcards.benchmark]
    if "hub" in entry:
        return Path(input[0]).parents[1]
    return input[0] if is_generated(entry) else entry["folder"]


def fetched_dataset(wildcards):
    """The dataset of the hub, with its revision, that a half of a benchmark is fetched from."""
    hub = config["benchmarks"][wildcards.benchmark]["hub"]
    return hub["texts" if wildcards.half == "metadata" else "labels"]


def fetched_splits(wildcards):
    """The splits of a config that the tasks of a benchmark ask for."""
    asked = splits_to_fetch(tasks_of(config["benchmarks"][wildcards.benchmark]))
    return ",".join(asked[wildcards.half, wildcards.name])


def described_release():
    """The release that a generated benchmark is about: the demo's, or the shards of a given one."""
    return [shard for shards in GIVEN.values() for shard in shards] or "<results>/demo/release"


def folder_of_release(wildcards, input):
    """The folder of the release that a generated benchmark is about."""
    return config["corpus"]["path"] if config["corpus"]["source"] == "directory" else input.release
