"""What importing a graph and training its embedding cost, by its papers, its edges and its epochs."""


def import_memory(wildcards, input, attempt):
    """Memory of an import, MB; PyTorch-BigGraph's own importer holds every paper and edge as Python objects."""
    is_published = config["embeddings"][wildcards.embedding]["import"] == "tsv"
    return (megabytes(1500, edges=35) if is_published else megabytes(500, edges=4))(wildcards, input, attempt)


def import_minutes(wildcards, input, attempt):
    """Time of an import."""
    is_published = config["embeddings"][wildcards.embedding]["import"] == "tsv"
    return (minutes(30, edges=2) if is_published else minutes(10, edges=0.02))(wildcards, input, attempt)


def trained_vectors_mb(imported, entry):
    """Size of the vectors in memory at one time: all, or those of two partitions."""
    papers = sum(int(file.read_text()) for file in Path(imported, "entities").glob("entity_count_*"))
    return papers * entry["dimension"] * 4 / 1e6 * min(1, 2 / entry["partitions"])


def imported_edges_mb(imported, entry):
    """Size of the edges that a training reads; PyTorch-BigGraph's importer pads each of its files to 158 MB."""
    filled = 158 * len(list(Path(imported).rglob("*.h5"))) if entry["import"] == "tsv" else 0
    return max(0, size_mb(imported) - filled)


def engine_of(wildcards):
    """The engine of a graph embedding, with its settings."""
    return entry_of(config["embeddings"][wildcards.embedding], AnyEngine)


def graph_training_memory(wildcards, input, attempt):
    """Memory of a training, MB, as its engine says."""
    entry = config["embeddings"][wildcards.embedding]
    vectors, edges = trained_vectors_mb(input.imported, entry), imported_edges_mb(input.imported, entry)
    return ceil(engine_of(wildcards).memory_mb(vectors, edges)) * attempt


def graph_training_minutes(wildcards, input, attempt):
    """Time of a training, as its engine says, no more than a day at first: a stopped training resumes."""
    edges = imported_edges_mb(input.imported, config["embeddings"][wildcards.embedding])
    return min(A_DAY, ceil(engine_of(wildcards).minutes(edges))) * attempt
