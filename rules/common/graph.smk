"""What the edges of a graph are made of, and which edges an embedding is trained on."""


def citations_in_groups(wildcards):
    """All citations, sharded by the paper that cites a group of papers or that a group cites, or all sentences."""
    folder = {
        "cocitation": "corpus/citations",
        "sentence-cocitation": "corpus/contexts",
        "coupling": "graph/citations_by_cited",
    }[config["graphs"][wildcards.graph]["signal"]]
    return buckets(f"<results>/{folder}/{{bucket}}.parquet")


def pairs_of_graph(wildcards):
    """A bucket of the pairs that become edges."""
    return f"<results>/graph/{wildcards.graph}/{PAIRS_OF[wildcards.graph]}/{wildcards.bucket}.parquet"


def tables_of_pairs():
    """The pairs of all graphs that are made of them."""
    return [
        file
        for graph, pairs in PAIRS_OF.items()
        for file in buckets("<results>/graph/{graph}/{pairs}/{bucket}.parquet", graph=graph, pairs=pairs)
    ]


def citations_the_other_way(wildcards):
    """The citations of the papers of a bucket by others, which undirected edges need as well; else nothing."""
    directed = config["graphs"][wildcards.graph]["directed"]
    return [] if directed else "<results>/graph/citations_by_cited/{bucket}.parquet"


def edges_to_combine(wildcards):
    """The edges of the graphs that a combination adds."""
    return buckets("<results>/graph/{graph}/edges/{bucket}.parquet", graph=config["graphs"][wildcards.graph]["of"])


def edges_of_embedding(wildcards):
    """The edges of the graph that an embedding is trained on."""
    graph = config["embeddings"][wildcards.embedding]["graph"]
    return buckets("<results>/graph/{graph}/edges/{bucket}.parquet", graph=graph)


def direction_of_edges(wildcards):
    """Whether the graph of an embedding is directed; the edges of an undirected graph are trained on both ways."""
    graph = config["graphs"][config["embeddings"][wildcards.embedding]["graph"]]
    return "directed" if graph.get("directed", False) else "undirected"
