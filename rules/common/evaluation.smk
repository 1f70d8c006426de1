"""The tasks of benchmarks, what scoring them costs, and where benchmarks come from."""

RUNS = runs_of(config)


def prepared(*texts):
    """The tables that a benchmark is scored from; with its documents' texts, where these are asked for."""
    tables = [*texts, "judgements", "labels", "reviewers", "collections", "signatures"]
    return expand("<results>/evaluation/{{benchmark}}/{table}.parquet", table=tables)


def suite_of(wildcards):
    """The tasks of a benchmark that are scored in one job."""
    return suites_of(config["benchmarks"][wildcards.benchmark])[wildcards.suite]


def tasks_of_suite(wildcards):
    """Their names."""
    return ",".join(task.name for task in suite_of(wildcards))


def evaluation_seeds(wildcards):
    """The evaluation seeds that a suite is scored with: rankings have no random choice, and are scored once."""
    seeds = config["benchmarks"][wildcards.benchmark]["seeds"]
    return seeds if any(task.is_supervised for task in suite_of(wildcards)) else seeds[:1]


def suites_as_json(wildcards):
    """The names of the tasks of each suite of a benchmark, as JSON."""
    suites = suites_of(config["benchmarks"][wildcards.benchmark])
    return json.dumps({suite: [task.name for task in tasks] for suite, tasks in suites.items()})


def scored_mb(wildcards, input, table):
    """For each task of a suite, the size of its share of a table, MB, by its documents."""
    sizes = json.loads(Path(input.sizes).read_text())
    share = size_mb(input[table]) / max(sizes["documents"], 1)
    return {task: sizes["tasks"].get(task.name, 0) * share for task in suite_of(wildcards)}


def scoring_memory(table, least, ranked, fitted=0):
    """Memory to score a suite, MB: so many times its largest task's share of a table, more where machines are fitted."""

    def memory(wildcards, input, attempt):
        sizes = scored_mb(wildcards, input, table)
        needed = [size * (ranked if task.is_ranking else fitted) for task, size in sizes.items()]
        return ceil(least + max(needed)) * attempt

    return memory


def scoring_minutes(table):
    """Time to score a suite: by its tasks' shares of a table, once for each seed and mode that fits are scored with."""

    def asked(wildcards, input, attempt):
        modes = 2 if config["benchmarks"][wildcards.benchmark].get("mode") == "both" else 1
        fits = modes * len(evaluation_seeds(wildcards))
        sizes = scored_mb(wildcards, input, table)
        return (
            ceil(30 + sum(0.1 * size * (fits if task.is_supervised else 1) for task, size in sizes.items())) * attempt
        )

    return asked


def word_scoring_minutes(wildcards, input, attempt):
    """Time to rank by words: candidates in no time; in a search, every query is held against every document."""
    searched = sum(size for task, size in scored_mb(wildcards, input, "tables").items() if task.kind == "retrieval")
    return ceil(30 + searched * size_mb(input.tables)) * attempt


def comparing_minutes(wildcards, input, attempt):
    """Time to compare models: by what is drawn from, as often as it is drawn from."""
    return ceil(20 + size_mb(input) * config["benchmarks"][wildcards.benchmark]["resamples"] / 1000) * attempt


def scored(table, benchmark):
    """The scores of every model and baseline on every suite of a benchmark, or what stands behind them."""
    return [
        f"<results>/evaluation/{benchmark}/{table}/{suite}/{run}.parquet"
        for suite, run in scored_runs(suites_of(config["benchmarks"][benchmark]), RUNS)
    ]


def all_scored(table):
    """The same on every benchmark."""
    return [file for benchmark in config["benchmarks"] for file in scored(table, benchmark)]


def summaries():
    """The averages of every benchmark, and the comparisons of all models on it."""
    path = "<results>/evaluation/{benchmark}/{table}.parquet"
    return expand(path, benchmark=config["benchmarks"], table=["averages", "comparisons"])


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
