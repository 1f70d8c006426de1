"""What the stages triplets, encoder and baselines write.

Triplets, what is known of them and their texts; the curves of a training; documents and papers as vectors.
"""

import pyarrow as pa

from cocite.core.tables.columns import COUNT, ID, TEXT, VECTOR, corpus_id, corpus_ids, extra, optional, required, table

_EXAMPLE_COLUMNS = {
    "query": corpus_id("corpus id of the query"),
    "positives": corpus_ids("corpus ids of the papers that should be near the query"),
    "negatives": corpus_ids("corpus ids of the papers that should be far; empty if none were supplied"),
}
_OF_SAMPLED_EXAMPLES = {
    "negative_kinds": extra(
        pa.list_(TEXT),
        "of each negative: linked, by another aspect; two-away, a reference of a reference; easy; or mined; "
        "null for what came as a triplet",
        nullable=True,
    ),
    "aspect": extra(
        TEXT,
        "background, methodology, result or miscellaneous: what links the query with the positives; only if a "
        "sampler distinguishes aspects",
        nullable=True,
    ),
    "shortest_span": extra(
        pa.int32(),
        "tokens at least of the spans that a training draws of the papers, again for each epoch; null or not "
        "there where their whole texts are learned from",
        nullable=True,
    ),
    "longest_span": extra(pa.int32(), "longest of these spans, tokens; null for spans of the text", nullable=True),
}
_DOCUMENT_COLUMNS = {
    "corpusid": corpus_id("corpus id, or the negative id of a text that is no paper"),
    "title": optional(TEXT, "title"),
    "abstract": optional(TEXT, "abstract"),
    "is_query": extra(pa.bool_(), "whether it is a short query; only if a set of the examples supplies texts"),
}

TABLES = [
    table(
        "triplets",
        "triplets/{triplets}/triplets.parquet",
        "Query, positive and negative as the sampler chose them, before they are cut to equal sizes.",
        ("query", "positive", "negative"),
        query=corpus_id("corpus id of the query"),
        positive=corpus_id("corpus id of a paper that shall be near"),
        negative=corpus_id("corpus id of a paper that shall be far"),
        split=required(TEXT, "train or validation: that of the query"),
        positive_rank=optional(
            pa.int32(),
            "rank of the positive among the query's neighbours, if it has one; with text_filter: before, among those "
            "with a text",
        ),
        negative_rank=optional(pa.int32(), "rank of the negative, likewise"),
        negative_kind=required(TEXT, "hard or easy; given for user-supplied triplets"),
    ),
    table(
        "sampled_examples",
        "triplets/{triplets}/sampled_examples.parquet",
        "Query, positives and negatives as a sampler of examples chose them, before they are cut to equal sizes.",
        ("query", "number"),
        query=_EXAMPLE_COLUMNS["query"],
        number=required(
            pa.int32(),
            "number of the example among those of the query, from 1; a part of a set keeps those of the whole",
        ),
        split=required(TEXT, "train or validation: that of the query"),
        **{name: column for name, column in _EXAMPLE_COLUMNS.items() if name != "query"},
        **_OF_SAMPLED_EXAMPLES,
        negative_ranks=extra(
            pa.list_(pa.int32()),
            "of each negative that was mined, its rank for the query; null for the others",
            nullable=True,
        ),
        negative_scores=extra(
            pa.list_(pa.float64()),
            "of each negative that was mined, its score for the query; null for the others",
            nullable=True,
        ),
    ),
    table(
        "sampled_texts",
        "triplets/{triplets}/texts.parquet",
        "The texts of sampled examples that are not papers of the corpus: short queries, and user-supplied documents. "
        "Absent for sets of papers only.",
        ("text",),
        text=required(ID, "negative id, which follows from the text; examples name the text by it"),
        title=optional(TEXT, "title, or the words of a short query"),
        abstract=optional(TEXT, "abstract, or the text of a document without a title"),
        is_query=required(pa.bool_(), "whether it is a short query, and not a document"),
    ),
    table(
        "sampled_relations",
        "triplets/sampled_relations.parquet",
        "How a sample of the queries is related to other papers by the citations of the corpus, without the papers "
        "that are kept out: the truth that neighbours are held against.",
        ("query", "paper"),
        query=corpus_id("corpus id of the query"),
        paper=corpus_id("corpus id of a paper that is related to it"),
        cocited=required(COUNT, "distinct papers that cite both"),
        cited=required(pa.bool_(), "whether one of the two cites the other"),
    ),
    table(
        "band_quality",
        "triplets/band_quality/{embedding}.parquet",
        "How many of the neighbours of a sample of the queries are truly related to them, by rank.",
        ("last_rank",),
        last_rank=required(pa.int32(), "last rank of the band, of which there are five"),
        first_rank=required(pa.int32(), "first rank of the band"),
        queries=required(COUNT, "sampled queries with neighbours of these ranks"),
        papers=required(COUNT, "their neighbours of these ranks"),
        cocited=required(COUNT, "neighbours among them that are co-cited with the query"),
        cited=required(COUNT, "neighbours among them that cite the query or are cited by it"),
    ),
    table(
        "triplet_checks",
        "triplets/{triplets}/checks.parquet",
        "What should not be in a set of triplets, or be known of it, and how much of it there is.",
        ("check", "part"),
        check=required(
            TEXT,
            "collision: pairs of papers that are positive and negative at once, in either direction, among the "
            "positive ones; no text: papers without one; in benchmark: documents of a benchmark; not matched: ids of "
            "its documents, of another origin than the corpus's, that no paper is matched with; served: queries with "
            "an example of an aspect; false negative: mined negatives that may be positives",
        ),
        part=required(
            TEXT,
            "pairs, of examples those in each aspect; the papers' role: query, positive or negative; the benchmark's "
            "name; the aspect; or why a negative may be a positive: co-cited with the query, citing or cited by it, or "
            "above a positive by its score",
        ),
        found=required(COUNT, "how many there are"),
        among=required(
            COUNT,
            "distinct pairs, papers, identifiable documents, or queries that were looked at; for links of mined "
            "negatives, the pairs of a sample of the queries",
        ),
    ),
    table(
        "triplets_per_query",
        "triplets/{triplets}/per_query.parquet",
        "How many queries have how many triplets or examples of a set, before sets are cut to equal sizes.",
        ("split", "count"),
        split=required(TEXT, "train or validation"),
        count=required(COUNT, "triplets or examples of a query; 0 if it has none"),
        queries=required(COUNT, "queries with that many"),
    ),
    table(
        "collisions",
        "triplets/{triplets}/collisions.parquet",
        "Pairs that would be positive and negative at once if the hard negatives of a set came from other ranks of the "
        "neighbours. All neighbours of those ranks count, so a set that finds some of them without a text has fewer. "
        "No rows for a set that is not drawn from neighbours.",
        ("k_negative",),
        k_negative=required(pa.int32(), "last rank of the hard negatives, as many as a query of the set has"),
        collisions=required(COUNT, "pairs that would collide"),
        pairs=required(COUNT, "distinct pairs of a query and a positive, in either direction"),
    ),
    table(
        "training_examples",
        "triplets/{triplets}/examples.parquet",
        "The training triplets, or examples, cut to the size of the smallest set of the group. Shuffled by query, so "
        "that those of a query follow each other.",
        ("query", "positives", "negatives"),
        "unordered",
        **_EXAMPLE_COLUMNS,
        **_OF_SAMPLED_EXAMPLES,
    ),
    table(
        "training_documents",
        "triplets/{triplets}/documents/{bucket}.parquet",
        "The texts of all papers of the training examples, and what else these name, each once.",
        ("corpusid",),
        **_DOCUMENT_COLUMNS,
    ),
    table(
        "validation_examples",
        "triplets/validation_{group}/examples.parquet",
        "The validation triplets and examples of all sets of a group, each once: the validation set of all their "
        "models. Shuffled like the training examples.",
        ("query", "positives", "negatives"),
        "unordered",
        **_EXAMPLE_COLUMNS,
        **_OF_SAMPLED_EXAMPLES,
    ),
    table(
        "validation_documents",
        "triplets/validation_{group}/documents/{bucket}.parquet",
        "The texts of all papers of the validation examples, and what else these name, each once.",
        ("corpusid",),
        **_DOCUMENT_COLUMNS,
    ),
    table(
        "training_curves",
        "encoder/{model}/seed-{seed}/training_curves.parquet",
        "What was measured while an encoder was trained.",
        ("step", "metric"),
        step=required(COUNT, "optimiser steps done"),
        metric=required(
            TEXT,
            "training_loss, learning_rate, validation_loss, validation_accuracy or validation_spearman; of several "
            "objectives the means, and those of each as well, such as `validation_loss of citations`",
        ),
        value=required(pa.float64(), "the metric's value"),
    ),
    table(
        "document_embeddings",
        "encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet",
        "One vector for each document of a benchmark; of an encoder with adapters, one by each adapter that the "
        "benchmark's formats use.",
        ("adapter", "document"),
        adapter=required(TEXT, "the adapter that was switched on; empty if none was"),
        document=required(TEXT, "the benchmark's id of the document"),
        vector=required(VECTOR, "the encoder's pooled output"),
    ),
    table(
        "paper_embeddings",
        "encoder/{model}/seed-{seed}/papers/{bucket}.parquet",
        "One vector for each paper of the corpus that has a title or an abstract, including held-out papers, for "
        "`cocite search` and for mined negatives; made on demand. Sharded like `papers`.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        vector=required(VECTOR, "the encoder's pooled output"),
    ),
    table(
        "text_embeddings",
        "encoder/{model}/seed-{seed}/texts/{triplets}/texts.parquet",
        "One vector for each text of a set of examples that is no paper, for mined negatives.",
        ("text",),
        text=required(ID, "negative id of the text"),
        vector=required(VECTOR, "the encoder's pooled output"),
    ),
    table(
        "baseline_embeddings",
        "baselines/{baseline}/seed-{seed}/embeddings/{benchmark}.parquet",
        "The vectors of a benchmark's documents by a baseline, with the columns of `document_embeddings`; a document "
        "that the baseline has no vector for is left out.",
        ("adapter", "document"),
        adapter=required(TEXT, "always empty: baselines have no adapters"),
        document=required(TEXT, "the benchmark's id of the document"),
        vector=required(VECTOR, "the document's vector"),
    ),
    table(
        "baseline_paper_embeddings",
        "baselines/{baseline}/seed-{seed}/papers/{bucket}.parquet",
        "The vectors of the papers of the corpus by a baseline that another one is derived from, with the columns of "
        "`paper_embeddings`. Sharded like `papers`.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        vector=required(VECTOR, "the paper's vector"),
    ),
    table(
        "baseline_grid",
        "baselines/{baseline}/seed-{seed}/grid.parquet",
        "What the points of a baseline's grid reach on the validation queries; the best is scored.",
        ("point",),
        point=required(COUNT, "number of the point, in the order of the grid"),
        settings=required(TEXT, "the settings of the point, as JSON"),
        reciprocal_rank=required(
            pa.float64(), "mean of 1 / the rank of a cited paper among random ones, 0 without a vector"
        ),
        judged=required(COUNT, "cited papers that were ranked"),
        chosen=required(pa.bool_(), "whether it is scored"),
    ),
]
