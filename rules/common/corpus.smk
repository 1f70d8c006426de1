"""Shards, parts and buckets of a release, and the files that name queries."""

# Shards of each dataset that are read where they are; none where they are downloaded.
GIVEN = {dataset: [str(shard) for shard in SOURCE.shards_in_place(dataset)] for dataset in SOURCE.holds}
# The dataset of the release whose records hold papers, abstracts or citations: one of the same name, or the works.
HELD_IN = {name: dataset for dataset, held in SOURCE.holds.items() for name in held}
# One job for each shard. If a release has more shards than the configuration says, some jobs take several.
PARTS = {name: range(SOURCE.parts(name)) for name in dict.fromkeys([*SOURCE.holds, *HELD_IN])}

# Further jobs take the rows of shards from a base that no diffs lead on from.
HAS_REUSED = "base" in config["corpus"] and not SOURCE.updates_by_diffs
REUSED = {name: [len(each) + part for part in each] if HAS_REUSED else [] for name, each in PARTS.items()}
ALL_PARTS = {name: [*PARTS[name], *REUSED[name]] for name in PARTS}

# Datasets that are ingested with the sentences that cite: citations, where the configuration asks for these.
WITH_CONTEXTS = ["citations"] if "contexts" in config["corpus"] else []

# Datasets that are read from tables, by rules of their own, and those whose ids are texts that are to be numbered.
FROM_TABLES = list(DATASETS) if SOURCE.source == "table" else []
WITH_NAMES = ["papers", "citations"] if FROM_TABLES and SOURCE.ids == "string" else []

# The files that name queries and papers to exclude, where these are the names of ids that were numbered.
NAMED = (
    {
        **({"queries": config["queries"]["path"]} if config["queries"]["from"] == "file" else {}),
        **{
            f"exclude-{number}": path
            for number, path in enumerate(config["exclude"])
            if path not in config["benchmarks"]
        },
    }
    if WITH_NAMES
    else {}
)
NUMBERED = "<results>/corpus/numbered/{list}.txt"

# Likewise papers, with their authors; works and tables have an option of their own rules.
WITH_AUTHORS = ["papers"] if SOURCE.authors and "papers" in SOURCE.holds and not FROM_TABLES else []

# All others whose records become one table.
INGESTED_ALONE = [
    name for name in SOURCE.holds if name in DATASETS and name not in WITH_CONTEXTS + WITH_AUTHORS + FROM_TABLES
]


def parts(wildcards):
    """The number of jobs that share the shards of a dataset."""
    return len(PARTS[wildcards.dataset])


def each_part(path, dataset=None):
    """A file for each job that shares the shards of a dataset, or takes their rows from the base."""

    def files(wildcards):
        name = dataset or wildcards.dataset
        return expand(path, dataset=name, part=ALL_PARTS[name])

    return files


def download_minutes(wildcards, input, attempt):
    """Time of a download, no more than a day at first: two seconds a MB, and two hours in case the server is down."""
    shards = json.loads(Path(input.manifest).read_text())["datasets"][wildcards.dataset]["shards"]
    size = sum(shard.get("needed", shard["bytes"]) for shard in shards) / 1e6 / parts(wildcards)
    return min(A_DAY, ceil(120 + size / 30)) * attempt


def part_of_base(wildcards):
    """Which part of the shards in the base a job takes, from 0."""
    return int(wildcards.part) - len(PARTS["works"])


def reuse_minutes(wildcards, attempt):
    """Time to copy a part of what the base has ingested, three seconds a MB."""
    ingested_before = map(str, Path(config["corpus"]["base"], "corpus/ingested").glob("*/*.parquet"))
    return ceil(20 + 0.05 * size_mb(ingested_before) / len(PARTS["works"])) * attempt


def update_minutes(wildcards, attempt):
    """Time to update a bucket, as to merge one: by its share of the base's rows, all of which are written again."""
    ingested_before = sorted(map(str, Path(BASE, "corpus/ingested", wildcards.dataset).glob("*.parquet")))
    return ceil(20 + 0.1 * size_mb(ingested_before) / len(BUCKETS)) * attempt


def temp_unless(key, path):
    """Downloaded shards or ingested rows: deleted once they are read, unless a key of the corpus keeps them."""
    return path if config["corpus"].get(key) else temp(path)


def read_from_shards():
    """What a job reads from shards: rows to merge or, with a base, the changes to its rows."""
    if BASE:
        return temp("<results>/corpus/changes/{dataset}/{part}.parquet")
    return temp_unless("keep_ingested", "<results>/corpus/ingested/{dataset}/{part}.parquet")


def accounted(*names):
    """The accounts of the lines that papers, abstracts or citations were read from."""
    datasets = dict.fromkeys(HELD_IN[name] for name in names)
    checked = ["<results>/corpus/omissions/cited.parquet"] if FROM_TABLES and "citations" in names else []
    return expand("<results>/corpus/omissions/ingest-{dataset}.parquet", dataset=datasets) + checked


def rows_to_merge(dataset):
    """The ingested rows of a dataset: a file for each job that shares its shards, or for each updated bucket."""
    if BASE:
        return buckets("<results>/corpus/ingested/{dataset}/{bucket}.parquet", dataset=dataset)
    return each_part("<results>/corpus/ingested/{dataset}/{part}.parquet", dataset)


def papers_of_works():
    """The ingested papers, which say in which file the newest copy of a work is; nothing for other records."""
    return rows_to_merge("papers") if HELD_IN["papers"] == "works" else []


def published_triplets():
    """The files of published triplets in the folder that the configuration names; others are fetched."""
    dataset = Path(config["queries"].get("dataset", ""))
    return (
        sorted(map(str, dataset.rglob("*.parquet")))
        if dataset.name and dataset.is_dir()
        else "<results>/corpus/triplets"
    )


def folder_of_triplets(wildcards, input):
    """The folder of the published triplets."""
    dataset = config["queries"].get("dataset", "")
    return dataset if dataset and Path(dataset).is_dir() else input[0]


def asked_queries():
    """The file that names the queries: ids, or the table of published ones; nothing where the rule draws them."""
    return {
        "rule": [],
        "file": NUMBERED.format(list="queries") if "queries" in NAMED else config["queries"].get("path"),
        "triplets": "<results>/corpus/published_queries.parquet",
    }[config["queries"]["from"]]


def query_settings():
    """How queries are chosen, as JSON, with the path of the file that names them but not its origin."""
    # Not a function of the input: Snakemake does not notice a change in a parameter that is one.
    chosen = {key: value for key, value in config["queries"].items() if key not in ("dataset", "revision", "path")}
    asked = asked_queries()
    if asked:
        chosen["path"] = asked.replace("<results>", RESULTS)
    references = [entry["positives"] for entry in config["benchmarks"].values() if entry["kind"] == "holdout"]
    if references:
        chosen["holdout_references"] = max(references)
    return json.dumps(chosen, sort_keys=True)


def excluded_papers():
    """The files that name the papers to exclude: lists of ids, and the documents of benchmarks, with their papers."""
    documents = "<results>/evaluation/{benchmark}/documents.parquet"
    numbered = {entry: NUMBERED.format(list=name) for name, entry in NAMED.items() if name != "queries"}
    files = [
        documents.format(benchmark=entry) if entry in config["benchmarks"] else numbered.get(entry, entry)
        for entry in config["exclude"]
    ]
    return files + papers_of_documents([entry for entry in config["exclude"] if entry in config["benchmarks"]])


def named_papers(wildcards):
    """The file of names that a job numbers."""
    return NAMED[wildcards.list]


def papers_to_match_with():
    """The files of Semantic Scholar's papers that those of the corpus are matched with; none where nothing is."""
    return list(map(str, find_shards(SOURCE.matched_with))) if SOURCE.matched_with else []


def matches_for_documents(wildcards):
    """The matches that lead from a benchmark's documents to papers; nothing where none do."""
    return "<results>/corpus/matches.parquet" if KNOWN_BY[wildcards.benchmark] == "matches" else []


def papers_for_documents(wildcards):
    """The papers that a benchmark's documents are looked for among; none if nothing leads from one to the other."""
    is_known = KNOWN_BY[wildcards.benchmark] != "nothing"
    return buckets("<results>/corpus/papers/{bucket}.parquet") if is_known else []


def hashes_for_documents():
    """The files that say which paper has which hash; none if the configuration names none."""
    return list(map(str, find_shards(Path(SOURCE.paper_ids)))) if SOURCE.paper_ids else []


def matches_for_published():
    """The matches that lead from published queries to papers, where the corpus has other ids; nothing elsewhere."""
    return "<results>/corpus/matches.parquet" if SOURCE.whose_ids != "s2" and SOURCE.matched_with else []


def papers_of_documents(benchmarks):
    """What says which documents of some benchmarks are papers, of those whose ids alone do not say it."""
    others = [name for name in benchmarks if KNOWN_BY[name] != "ids"]
    return expand("<results>/corpus/document_papers/{benchmark}.parquet", benchmark=others)


def papers_known_of(wildcards):
    """What says which documents of a benchmark are papers, if anything does and their ids alone do not."""
    return papers_of_documents([wildcards.benchmark]) if KNOWN_BY[wildcards.benchmark] != "nothing" else []


def id_spaces():
    """Whose ids the papers of the corpus have, and the documents of each benchmark, as JSON."""
    rows = [{"owner": "corpus", "kind": SOURCE.source, "id_space": SOURCE.whose_ids, "known_by": None}]
    rows += [
        {"owner": name, "kind": entry["kind"], "id_space": ids_of_documents(entry), "known_by": KNOWN_BY[name]}
        for name, entry in config["benchmarks"].items()
    ]
    return json.dumps(rows, sort_keys=True)


def tables_of_papers():
    """Every table of papers between the corpus and the encoders: where an excluded paper could leak to."""
    return [
        *tables_of_pairs(),
        *buckets("<results>/graph/{graph}/edges/{bucket}.parquet", graph=config["graphs"]),
        *expand("<results>/embeddings/{embedding}/graph_embeddings.parquet", embedding=config["embeddings"]),
        *(file for name in RANKINGS for file in neighbours_of(name)),
        *map(sampled, config["triplets"]),
        *materialised("examples.parquet"),
        *materialised("documents"),
    ]


def raw_shards(wildcards):
    """What a job ingests: the folder of its downloads, or one of the shards in the user's folder."""
    if SOURCE.fetches:
        return f"<results>/corpus/raw/{wildcards.dataset}/{wildcards.part}"
    return GIVEN[wildcards.dataset][int(wildcards.part)]


def folder_of_shards(wildcards, input):
    """The folder that holds what a job ingests."""
    return input.shards if SOURCE.fetches else Path(input.shards).parent


def table_settings(wildcards):
    """How the table of a dataset is read, as JSON."""
    return json.dumps(as_json(SOURCE.table_of(wildcards.dataset)), sort_keys=True)


LISTED_NAMES = "<results>/corpus/ingested/{dataset}/names/{part}.parquet"


def listed_names(wildcards):
    """The names in the file that a job reads, where ids are texts; abstracts are in the files of the papers."""
    dataset = "citations" if wildcards.dataset == "citations" else "papers"
    return LISTED_NAMES.format(dataset=dataset, part=wildcards.part) if WITH_NAMES else []


def all_listed_names():
    """The names in all files."""
    return [LISTED_NAMES.format(dataset=dataset, part=part) for dataset in WITH_NAMES for part in PARTS[dataset]]


def generated_release():
    """The release that the demo serves; nothing for other sources."""
    return "<results>/demo/release" if SOURCE.source == "demo" else []


def listing_settings(wildcards):
    """The keys of the corpus that say which shards there are, as JSON."""
    return json.dumps(SOURCE.listing_settings(), sort_keys=True)
