"""What is searched, in which index, and what a search costs."""


def neighbours_of(embedding):
    """The neighbours of an embedding, or of walks: a file for each shard of the queries."""
    shards = range(ranking_of(embedding, config)[1]["shards"])
    return expand("<results>/neighbours/{embedding}/neighbours/{bucket}.parquet", embedding=embedding, bucket=shards)


def searched_papers(wildcards):
    """The papers, if the search is limited to papers with a text, or a set of triplets, if it is limited to theirs."""
    entry = ranking_of(wildcards.embedding, config)[1]
    if "papers_of" in entry:
        return [sampled(entry["papers_of"])]
    among = entry["among"]
    return buckets("<results>/corpus/papers/{bucket}.parquet") if among == "texts" else []


def index_of(wildcards):
    """The approximate index that is searched; nothing where the search is exact."""
    return "<results>/neighbours/{embedding}/index" if wildcards.embedding in APPROXIMATE else []


def index_memory(wildcards, input, attempt):
    """Memory to build an index, MB: the sample of an IVF index in two copies; all vectors and links of an HNSW one."""
    entry = config["embeddings"][wildcards.embedding]
    if entry["neighbours"]["index"]["kind"] == "hnsw":
        return megabytes(700, vectors=3)(wildcards, input, attempt)
    sample = entry["neighbours"]["index"]["nlist"] * 64 * entry["dimension"] * 4 / 1e6
    return ceil(700 + 3 * sample) * attempt


def search_memory(wildcards, input, threads, attempt):
    """Memory of a search, MB: more memory compares more queries at a time; each thread holds blocks of 4,096 vectors in
    three copies. HNSW also holds its index."""
    entry = config["embeddings"][wildcards.embedding]
    blocks = threads * 3 * 4096 * entry["dimension"] * 4 / 1e6
    held = size_mb(input.index) if entry["neighbours"]["index"]["kind"] == "hnsw" else 0
    return ceil(1000 + blocks + held) * attempt


def search_minutes(wildcards, input, threads, attempt):
    """Time of a search, no more than a day at first: that of comparing every query of the shard with every vector,
    an upper bound for an index. A thread does 3·10¹⁰ products a second; a query is two bytes of its table at least."""
    shards = config["embeddings"][wildcards.embedding]["neighbours"]["shards"]
    products = size_mb(input.queries) / 2e-6 / shards * size_mb(input.vectors) * 1e6 / 4
    return min(A_DAY, ceil(20 + 4 * products / 3e10 / 60 / threads)) * attempt


def edges_of_walks(wildcards):
    """The edges that walks go along."""
    graph = config["walks"][wildcards.embedding]["graph"]
    return buckets("<results>/graph/{graph}/edges/{bucket}.parquet", graph=graph)


def adjacency_memory(wildcards, input, attempt):
    """Memory to lay links out, MB: of edges of 4 bytes on the disk, more than all links at once; more memory goes
    through the edges less often."""
    return min(16_000, ceil(800 + 4 * size_mb(input.edges))) * attempt


def walk_memory(wildcards, input, threads, attempt):
    """Memory of walks, MB: the links, which lie on the disk, and for each thread 36 bytes a paper, of which the ids
    take 8."""
    links = size_mb(input.adjacency)  # Before a file in it: Snakemake waits for an input that is missing.
    papers = size_mb(f"{input.adjacency}/ids.npy") / 8
    return ceil(700 + links + threads * 36 * papers) * attempt


def walk_minutes(wildcards, input, threads, attempt):
    """Time of walks, no more than a day at first: as if each query of the shard looked at as many links as its tolerance
    allows, 10⁷ a second, or at all links a hundred times; a query is two bytes of its table at least."""
    entry = config["walks"][wildcards.embedding]
    links = min(1 / (entry["restart"] * entry["tolerance"]), 100 * size_mb(input.adjacency) * 1e6 / 4)
    queries = size_mb(input.queries) / 2e-6 / entry["shards"]
    return min(A_DAY, ceil(20 + queries * links / 1e7 / 60 / threads)) * attempt


def measured_searches():
    """The measured recall of the approximate searches."""
    return expand("<results>/neighbours/{embedding}/search_quality.parquet", embedding=APPROXIMATE)


def mined_texts(wildcards):
    """The texts that are no papers of the set whose negatives are mined."""
    return texts_of_sets([config["triplets"][wildcards.triplets]["of"]])


def mined_vectors(wildcards):
    """The vectors that negatives are mined by: those of the papers and of the set's own texts; none for BM25."""
    entry = config["triplets"][wildcards.triplets]
    match entry["by"]["kind"]:
        case "bm25":
            return []
        case "encoder":
            model, seed = f"untrained_{entry['by']['name']}", 0
        case _:
            model = entry["by"]["name"]
            seed = entry["by"].get("seed", config["models"][model]["seeds"][0])
    of_run = {"model": model, "seed": seed}
    texts = expand(
        "<results>/encoder/{model}/seed-{seed}/texts/{triplets}/texts.parquet",
        triplets=sets_with_texts(entry["of"], config["triplets"]),
        **of_run,
    )
    if entry["collection"] == "texts":
        return texts
    return buckets("<results>/encoder/{model}/seed-{seed}/papers/{bucket}.parquet", **of_run) + texts


def mining_memory(wildcards, input, attempt):
    """Memory of mining, MB: vectors of up to 2 GB are held in half of it; more of them are read again and again."""
    return ceil(2000 + min(4000, 2.5 * size_mb(input.vectors))) * attempt


def mining_minutes(wildcards, input, threads, attempt):
    """Time of mining, no more than a day at first: that of comparing every query with every vector. A thread does
    3·10¹⁰ products a second; a query is some 20 bytes of its set at least. Words of 1 MB of texts take 2 s."""
    products = size_mb(input.examples) / 2e-5 * size_mb(input.vectors) * 1e6 / 4
    words = 0 if input.vectors else 2 * size_mb([*input.papers, *input.texts]) / 60
    return min(A_DAY, ceil(20 + words + 4 * products / 3e10 / 60 / threads)) * attempt
