"""What importing a graph and training its embedding cost, by its papers, its edges and its epochs."""


def import_memory(wildcards, input, attempt):
    """Memory of an import, MB; PyTorch-BigGraph's own importer holds every paper and edge as Python objects."""
    is_published = config["embeddings"][wildcards.embedding].get("import") == "tsv"
    return (megabytes(1500, edges=35) if is_published else megabytes(500, edges=4))(wildcards, input, attempt)


def import_minutes(wildcards, input, attempt):
    """Time of an import."""
    is_published = config["embeddings"][wildcards.embedding].get("import") == "tsv"
    return (minutes(30, edges=2) if is_published else minutes(10, edges=0.02))(wildcards, input, attempt)


def settings_of_import(wildcards):
    """The settings of an import, as JSON: the keys that go with the engine and no others."""
    return json.dumps(edge_settings(config["embeddings"][wildcards.embedding]), sort_keys=True)


def papers_in_memory(imported, entry):
    """Number of papers whose vectors are in memory at one time: all, or those of two of the import's partitions."""
    papers = sum(int(file.read_text()) for file in Path(imported, "entities").glob("entity_count_*"))
    return papers * min(1, 2 / entry.get("partitions", 1))


def imported_edges_mb(imported, entry):
    """Size of the edges that a training reads; PyTorch-BigGraph's importer pads each of its files to 158 MB."""
    filled = 158 * len(list(Path(imported).rglob("*.h5"))) if entry.get("import") == "tsv" else 0
    return max(0, size_mb(imported) - filled)


def engine_of(wildcards):
    """The engine of a graph embedding, with its settings."""
    return entry_of(config["embeddings"][wildcards.embedding], AnyEngine)


def graph_training_memory(wildcards, input, attempt):
    """Memory of a training, MB, as its engine says."""
    entry = config["embeddings"][wildcards.embedding]
    papers, edges = papers_in_memory(input.imported, entry), imported_edges_mb(input.imported, entry)
    return ceil(engine_of(wildcards).training_memory(papers, edges)) * attempt


def graph_training_minutes(wildcards, input, attempt):
    """Time of a training, as its engine says, no more than a day at first: a stopped training resumes."""
    edges = imported_edges_mb(input.imported, config["embeddings"][wildcards.embedding])
    return min(A_DAY, ceil(engine_of(wildcards).training_minutes(edges))) * attempt
