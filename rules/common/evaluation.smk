"""The tasks of benchmarks, what scoring them costs, and where benchmarks come from."""


def prepared(*texts):
    """The tables that a benchmark is scored from, with the named tables of texts."""
    tables = [*texts, "judgements", "labels", "reviewers", "clicks", "collections", "signatures"]
    return expand("<results>/evaluation/{{benchmark}}/{table}.parquet", table=tables)


def suite_of(wildcards):
    """The tasks of a benchmark that are scored in one job."""
    return suites_of(config["benchmarks"][wildcards.benchmark])[wildcards.suite]


def tasks_of_suite(wildcards):
    """Their names."""
    return ",".join(task.name for task in suite_of(wildcards))


def evaluation_seeds(wildcards):
    """The evaluation seeds of a suite: rankings have no random choice, and are scored once."""
    seeds = config["benchmarks"][wildcards.benchmark]["seeds"]
    return seeds if any(task.is_supervised for task in suite_of(wildcards)) else seeds[:1]


def scored_mode(wildcards):
    """The way in which supervised tasks are fitted: compat, correct, both or sklearn; benchmarks of rankings name none."""
    return config["benchmarks"][wildcards.benchmark].get("mode", "correct")


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
    """Memory to score a suite, MB: a multiple of its largest task's share of a table, more where models are fitted."""

    def memory(wildcards, input, attempt):
        sizes = scored_mb(wildcards, input, table)
        needed = [size * (ranked if task.is_ranking else fitted) for task, size in sizes.items()]
        return ceil(least + max(needed)) * attempt

    return memory


def scoring_minutes(table):
    """Time to score a suite: by its tasks' shares of a table, for supervised tasks times their seeds and modes."""

    def asked(wildcards, input, attempt):
        # scikit-learn's own solver took 5.5 times the processor time (docs/evaluation.md, Speed).
        modes = {"both": 2, "sklearn": 6}.get(config["benchmarks"][wildcards.benchmark].get("mode"), 1)
        fits = modes * len(evaluation_seeds(wildcards))
        sizes = scored_mb(wildcards, input, table)
        of_tasks = (0.1 * size * (fits if task.is_supervised else 1) for task, size in sizes.items())
        return ceil(30 + sum(of_tasks)) * attempt

    return asked


def word_scoring_minutes(wildcards, input, attempt):
    """Time to rank by words: only searches cost time, which compare every query with every document."""
    searched = sum(size for task, size in scored_mb(wildcards, input, "tables").items() if task.kind == "retrieval")
    return ceil(30 + searched * size_mb(input.tables)) * attempt


def comparing_minutes(wildcards, input, attempt):
    """Time to compare models: by the size of their outcomes times the resamples."""
    return ceil(20 + size_mb(input) * config["benchmarks"][wildcards.benchmark]["resamples"] / 1000) * attempt


def scored(table, benchmark):
    """A table of every model and baseline on every suite of a benchmark: scores, outcomes or failures."""
    suites, runs = suites_of(config["benchmarks"][benchmark]), runs_of(config, benchmark)
    return [
        f"<results>/evaluation/{benchmark}/{table}/{suite}/{run}.parquet"
        for suite, run in scored_runs(suites, runs, runs_that_rank_alone(config))
    ]


def by_words(wildcards):
    """The option that says how a baseline ranks by words, as JSON."""
    entry = config["baselines"][wildcards.baseline]
    return ["--words", json.dumps({key: value for key, value in entry.items() if key != "kind"}, sort_keys=True)]


def runs(wildcards):
    """All runs on a benchmark, with commas between them."""
    return ",".join(runs_of(config, wildcards.benchmark))


def all_scored(table):
    """The same on every benchmark."""
    return [file for benchmark in config["benchmarks"] for file in scored(table, benchmark)]


def scored_by_aspect():
    """The scores on the benchmarks that tell the spaces of a model apart."""
    return [file for benchmark in BY_ASPECT for file in scored("scores", benchmark)]


def scored_on_both_sides():
    """The scores on the benchmarks that ask with short queries or with documents."""
    benchmarks = dict.fromkeys(benchmark for side in SIDES for benchmark, _ in side)
    return [file for benchmark in benchmarks for file in scored("scores", benchmark)]


def summaries():
    """The averages of every benchmark, and the comparisons of all models on it."""
    path = "<results>/evaluation/{benchmark}/{table}.parquet"
    return expand(path, benchmark=config["benchmarks"], table=["averages", "comparisons"])


def all_reported():
    """The scores that others reported, on every benchmark that has tasks of mteb."""
    path = "<results>/evaluation/{benchmark}/reported/{baseline}.parquet"
    return [
        path.format(benchmark=benchmark, baseline=name)
        for benchmark in config["benchmarks"]
        for name in reported_on(config, benchmark)
    ]


def benchmark_sources(wildcards):
    """The sources of a published benchmark: the files of its folder, or folders fetched from the hub."""
    entry = config["benchmarks"][wildcards.benchmark]
    if "hub" in entry:
        return [f"<results>/evaluation/{wildcards.benchmark}/hub/{folder}" for folder in sorted(on_hub(entry))]
    if is_generated(entry):
        return "<results>/demo/benchmark"
    return [file for read in KINDS[entry["kind"]].reads for file in files_in(Path(entry["folder"], read))]


def memory_of_reader(wildcards):
    """Memory that a published benchmark takes for each MB of its files, MB."""
    return KINDS[config["benchmarks"][wildcards.benchmark]["kind"]].memory_of_byte


def dataset_files(wildcards):
    """The files of the datasets that a benchmark searches."""
    entry = config["benchmarks"][wildcards.benchmark]
    asked = [task.test for task in tasks_of(entry)]
    return [str(file) for name in asked for file in files_of(Path(entry["datasets"][name]), entry["split"])]


def dataset_memory(wildcards, input, attempt):
    """Memory to read datasets, MB: eight times what their files hold, and packed ones hold some four times their size."""
    packed = [file for file in input.files if file.endswith((".gz", ".parquet"))]
    return ceil(1000 + 8 * size_mb(input.files) + 24 * size_mb(packed)) * attempt


def asked_metrics(wildcards):
    """The metrics that a benchmark's entry asks for, with commas between them; empty for the declared ones."""
    return metrics_asked(config["benchmarks"][wildcards.benchmark])


def benchmark_folder(wildcards, input):
    """The folder of a published benchmark; a fetched one has the halves metadata and test, or lies in data."""
    entry = config["benchmarks"][wildcards.benchmark]
    if "hub" in entry:
        return Path(input[0]).parents[1] / os.path.commonpath(on_hub(entry))
    return input[0] if is_generated(entry) else entry["folder"]


def sources_of_fields(wildcards):
    """The benchmark's own files with venue, authors and year of its documents; none if it has no such files."""
    return [] if wildcards.benchmark in [*HOLDOUTS, *COLLECTIONS] else benchmark_sources(wildcards)


def options_of_fields(wildcards, input):
    """The options that name what says something of the documents: the benchmark's folder, and papers that they are."""
    has_files = wildcards.benchmark not in [*HOLDOUTS, *COLLECTIONS]
    folder = benchmark_folder(wildcards, input) if has_files else None
    papers = Path(input.papers[0]).parent if input.papers else None
    named = {"--folder": folder, "--papers": papers, "--document-papers": input.document_papers}
    return [word for option, path in named.items() if path for word in (option, str(path))]


def describing_memory(wildcards, input, attempt):
    """Memory to look up the further fields of documents, MB: a benchmark in files of its own is held."""
    held = memory_of_reader(wildcards) * size_mb(input.sources) if input.sources else 0
    return ceil(1000 + held) * attempt


def fetched(wildcards):
    """The dataset on the hub with its revision, and the splits that the tasks of a benchmark need, for one folder."""
    return on_hub(config["benchmarks"][wildcards.benchmark])[f"{wildcards.half}/{wildcards.name}"]


def described_release():
    """The release that a generated benchmark is about: the demo's, or the shards of a given one."""
    return [shard for shards in GIVEN.values() for shard in shards] or "<results>/demo/release"


def folder_of_release(wildcards, input):
    """The folder of the release that a generated benchmark is about."""
    return config["corpus"]["path"] if config["corpus"]["source"] == "directory" else input.release


def asked_in_probe(table):
    """What a table asks about the papers that a probe is scored on."""
    return lambda wildcards: f"<results>/evaluation/{config['probes'][wildcards.probe]['benchmark']}/{table}.parquet"


def probed_tasks(probe):
    """The tasks of its benchmark that a probe ranks by: those that rank given candidates."""
    tasks = tasks_of(config["benchmarks"][config["probes"][probe]["benchmark"]])
    return [task.name for task in tasks if task.kind == "ranking"]


def outcomes_of_probe(probe):
    """The outcomes of all sets of a probe."""
    path = "<results>/evaluation/probe_{probe}/outcomes/{triplets}.parquet"
    return expand(path, probe=probe, triplets=probe_sets(config, probe))


def entries_of_probe(wildcards):
    """A probe with the entries of its sets, as JSON: what is best becomes entries that a training can use."""
    sets = {name: config["triplets"][name] for name in probe_sets(config, wildcards.probe)}
    return json.dumps({"probe": config["probes"][wildcards.probe], "triplets": sets}, sort_keys=True)


def ranked_probes(name):
    """A file of each probe."""
    return expand("<results>/evaluation/probe_{probe}/{name}", probe=config["probes"], name=name)
