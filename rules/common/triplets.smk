"""Sets of triplets, what they are sampled from, and the groups that they are compared in."""

from cocite.config.sampler import WITHOUT_VECTORS


def groups():
    """The groups of sets of triplets that are compared with one another."""
    return sorted({entry["group"] for entry in config["triplets"].values()})


def sampled(name):
    """The triplets or the examples of a set, as its sampler gives them."""
    return f"<results>/triplets/{name}/{table_of(name, config['triplets'])}.parquet"


def sets_with(table):
    """The sets that are sampled into a table."""
    return [name for name in config["triplets"] if table_of(name, config["triplets"]) == table]


def sets_that_bring_texts():
    """The sets whose samplers bring texts that are no papers."""
    return [name for name in config["triplets"] if name in sets_with_texts(name, config["triplets"])]


def texts_of_sets(names):
    """The texts that are no papers of some sets: their own, and those of the sets that they are made of."""
    bringing = dict.fromkeys(each for name in names for each in sets_with_texts(name, config["triplets"]))
    return expand("<results>/triplets/{triplets}/texts.parquet", triplets=bringing)


def names_of_group(group):
    """The names of all sets of a group."""
    return [name for name, entry in config["triplets"].items() if entry["group"] == group]


def sets_of_group(group):
    """All sets of a group."""
    return [sampled(name) for name in names_of_group(group)]


def by_sets(least, sets, others=0):
    """A constant, plus a factor for each MB of the sets of a group, and one for each MB of texts and papers."""

    def asked(wildcards, input, attempt):
        of_sets = size_mb([file for file in input.group if Path(file).name != "texts.parquet"])
        return ceil(least + sets * of_sets + others * (size_mb(input) - of_sets)) * attempt

    return asked


def sets_of_examples():
    """The names of what is learned from and validated on: the sets of triplets, and a validation set a group."""
    return [*config["triplets"], *(f"validation_{group}" for group in groups())]


def materialised(name):
    """A file or folder of each set of examples."""
    return expand("<results>/triplets/{examples}/{name}", examples=sets_of_examples(), name=name)


def sampled_sources(wildcards):
    """What a set of triplets is sampled from: the tables that its entry names, or a file that the user brings."""
    entry = config["triplets"][wildcards.triplets]
    sources = []
    if "embedding" in entry:
        sources += neighbours_of(entry["embedding"])
        if entry.get("easy_negatives", {"kind": "random"})["kind"] not in WITHOUT_VECTORS:
            sources += expand("<results>/embeddings/{embedding}/graph_embeddings.parquet", embedding=entry["embedding"])
    if "graph" in entry:
        table = PAIRS_OF.get(entry["graph"], "edges")
        sources += buckets("<results>/graph/{graph}/{table}/{bucket}.parquet", graph=entry["graph"], table=table)
    sources += map(sampled, parts_of(entry))
    if entry["sampler"] == "mined":
        sources += expand(
            "<results>/neighbours/mined_{triplets}/{table}.parquet",
            table=["candidates", "positives"],
            triplets=wildcards.triplets,
        )
        for graph in entry["unlinked_in"]:
            table = PAIRS_OF.get(graph, "edges")
            sources += buckets("<results>/graph/{graph}/{table}/{bucket}.parquet", graph=graph, table=table)
    if entry["sampler"] == "contexts":
        sources += buckets("<results>/corpus/contexts/{bucket}.parquet")
    if entry["sampler"] == "file":
        sources += brought_triplets(entry.get("path"))
    if entry["sampler"] == "pairs":
        sources += brought_pairs(wildcards.triplets)
    if entry["sampler"] == ORACLE:
        sources += expand(
            "<results>/evaluation/{benchmark}/{table}.parquet",
            benchmark=entry["benchmark"],
            table=["documents", "labels", "judgements", "collections"],
        )
    return sources


def brought_pairs(name):
    """The files of queries and documents that the user brings, and the folder of those that are fetched."""
    set_of_pairs = entry_of(config["triplets"][name], TripletSet)
    fetched = ["<results>/triplets/{triplets}/fetched"] if set_of_pairs.fetched else []
    brought = [Path(origin) for part, (origin, _) in set_of_pairs.origins.items() if part not in set_of_pairs.fetched]
    return fetched + [file for path in brought for file in (files_in(path) if path.is_dir() else [str(path)])]


def sets_to_fetch():
    """The sets of brought pairs of which a part comes from the hub."""
    pairs = [name for name, entry in config["triplets"].items() if entry["sampler"] == "pairs"]
    return [name for name in pairs if entry_of(config["triplets"][name], TripletSet).fetched]


def parts_to_fetch(wildcards):
    """The parts of a set of brought pairs that come from the hub, as JSON for `--parts`."""
    return json.dumps(entry_of(config["triplets"][wildcards.triplets], TripletSet).fetched, sort_keys=True)


def sampler_settings(wildcards):
    """A set of triplets as JSON for `--settings`, without its group, which the sampler does not use."""
    entry = config["triplets"][wildcards.triplets]
    return json.dumps({key: value for key, value in entry.items() if key != "group"}, sort_keys=True)


def brought_triplets(path):
    """The files of triplets that the user brings; without a path, the published ones."""
    if path is None:
        published = published_triplets()
        return published if isinstance(published, list) else [published]
    return sorted(map(str, Path(path).rglob("*.parquet"))) if Path(path).is_dir() else [path]


def ranks_in_use(wildcards):
    """The last ranks that sets of triplets take from an embedding's neighbours, as JSON for `--settings`."""
    sets = [entry for entry in config["triplets"].values() if entry.get("embedding") == wildcards.embedding]
    ends = [entry[key] for entry in sets for key in ("k_positive", "k_negative") if key in entry]
    return json.dumps({"ranks": sorted({end if isinstance(end, int) else end[-1] for end in ends})})


def ranked_neighbours(wildcards):
    """The neighbours by whose ranks a set of triplets was drawn; nothing for other sets."""
    entry = config["triplets"][wildcards.triplets]
    return neighbours_of(entry["embedding"]) if entry["sampler"] == "neighbours" else []


def mined_positives(wildcards):
    """The scores of the positives of a set whose negatives are mined; nothing for other sets."""
    is_mined = config["triplets"][wildcards.triplets]["sampler"] == "mined"
    return "<results>/neighbours/mined_{triplets}/positives.parquet" if is_mined else []


def relations_of_mined(wildcards):
    """What shows false negatives among mined ones; nothing for other sets."""
    is_mined = config["triplets"][wildcards.triplets]["sampler"] == "mined"
    return "<results>/triplets/sampled_relations.parquet" if is_mined else []


def folder_of_neighbours(wildcards, input):
    """The option for the folder of the neighbours; nothing where there are none."""
    return ["--neighbours", str(Path(input.neighbours[0]).parent)] if input.neighbours else []


def oracles_and_validation():
    """The sets that hold the answers of benchmarks, and the validation sets of their groups, as JSON."""
    sets = oracles(config)
    groups = {f"validation_{config['triplets'][name]['group']}": given_away for name, given_away in sets.items()}
    return json.dumps({**sets, **groups}, sort_keys=True)


def documents_to_look_for(wildcards):
    """The documents of published benchmarks; the papers of our own are held out of all triplets but an oracle's."""
    foreign = [name for name in config["benchmarks"] if name not in HOLDOUTS]
    given_away = oracles(config).get(wildcards.triplets, ())
    names = dict.fromkeys([*foreign, *given_away])
    return expand("<results>/evaluation/{benchmark}/documents.parquet", benchmark=names) + papers_of_documents(names)
