"""What the stage report writes: how large the corpus is, how often papers are paired, maps, and what the rules took."""

import pyarrow as pa

from cocite.core.tables.columns import COUNT, TEXT, corpus_id, optional, required, table

TABLES = [
    table(
        "id_spaces",
        "report/id_spaces.parquet",
        "Whose ids the papers of the corpus have, and the documents of each benchmark, which are known to be papers of "
        "the corpus by their ids only where both are of one origin.",
        ("owner",),
        "unordered",
        owner=required(TEXT, "`corpus`, or the name of a benchmark"),
        kind=required(TEXT, "source of the corpus, or kind of the benchmark"),
        id_space=required(
            TEXT,
            "s2: Semantic Scholar's corpus ids; openalex: numbers of OpenAlex's works; own: others; corpus: those of "
            "the corpus",
        ),
        known_by=optional(
            TEXT,
            "what shows which documents are papers of the corpus: ids; hashes, which lead there as well, with DOIs and "
            "texts for the rest; matches, the table, likewise; or text, with DOIs; null for the corpus",
        ),
    ),
    table(
        "corpus_statistics",
        "report/corpus_statistics.parquet",
        "How large the corpus is that everything else is made from.",
        ("measure",),
        "unordered",
        measure=required(TEXT, "what is counted"),
        value=required(COUNT, "how many there are"),
    ),
    table(
        "pair_counts",
        "report/pair_counts.parquet",
        "How many pairs of papers are cited together, or cite the same papers, how often.",
        ("graph", "count"),
        graph=required(TEXT, "name of the graph whose edges the pairs become"),
        count=required(COUNT, "how often a pair is cited together or, in coupling, cites the same paper"),
        pairs=required(COUNT, "pairs that are that often"),
    ),
    table(
        "map_papers",
        "report/maps/{map}/papers.parquet",
        "The papers of a map, the same for every model.",
        ("document",),
        document=required(TEXT, "the benchmark's id of the document"),
        title=optional(TEXT, "title; null if there is none"),
        year=optional(pa.int32(), "year of publication; null if unknown"),
    ),
    table(
        "map_labels",
        "report/maps/{map}/labels.parquet",
        "What the papers of a map are coloured by, and its clusters are judged by.",
        ("label", "document"),
        label=required(TEXT, "`field`, the field of study, or a task of the benchmark"),
        document=required(TEXT, "the benchmark's id of the document"),
        value=required(TEXT, "its class; the first if it has several"),
    ),
    table(
        "map_points",
        "report/maps/{map}/points/{model}-{seed}.parquet",
        "Positions of the papers of a map, by a model, and the clusters that DBSCAN finds there.",
        ("document",),
        document=required(TEXT, "the benchmark's id of the document"),
        x=required(pa.float32(), "first coordinate; neither axis has a unit or a meaning"),
        y=required(pa.float32(), "second coordinate"),
        cluster=optional(pa.int32(), "number of its cluster, 0 for the largest; null if it is in none"),
    ),
    table(
        "map_scores",
        "report/maps/{map}/scores/{model}-{seed}.parquet",
        "Agreement of the clusters on a map with each label, over the papers that have it. Papers in no cluster count "
        "as a separate cluster.",
        ("label",),
        label=required(TEXT, "`field`, the field of study, or a task of the benchmark"),
        papers=required(COUNT, "papers that the model places"),
        missing=required(COUNT, "papers of the map that it has no vector of, or none that is finite"),
        labelled=required(COUNT, "papers among those placed that have the label"),
        classes=required(COUNT, "different classes of theirs"),
        clusters=required(COUNT, "clusters that DBSCAN found"),
        unclustered=required(COUNT, "papers in no cluster"),
        eps=required(pa.float64(), "distance within which points are neighbours, in the units of the map"),
        homogeneity=optional(
            pa.float64(), "1 if each cluster has members of only one class; null if no paper has the label"
        ),
        completeness=optional(pa.float64(), "1 where all members of a class are in one cluster; null likewise"),
        v_measure=optional(pa.float64(), "their harmonic mean; null likewise"),
    ),
    table(
        "topics",
        "report/topics/{model}/seed-{seed}/topics.parquet",
        "Topics: clusters of all papers by a model's vectors, by k-means; made on demand.",
        ("topic",),
        topic=required(pa.int32(), "number of the topic"),
        papers=required(COUNT, "its papers"),
        words=required(pa.list_(TEXT), "words of its titles with the highest class-based tf-idf"),
        field=optional(TEXT, "field of study that most of its papers have first; null if none has one"),
        in_field=optional(COUNT, "papers with that field"),
    ),
    table(
        "paper_topics",
        "report/topics/{model}/seed-{seed}/papers/{bucket}.parquet",
        "The topic of each paper that has a vector, including held-out papers. Sharded like `papers`.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        topic=required(pa.int32(), "number of its topic"),
    ),
    table(
        "topic_scores",
        "report/topics/{model}/seed-{seed}/scores.parquet",
        "Agreement of the topics with fields of study, over the papers that have one; the first counts.",
        ("label",),
        label=required(TEXT, "`field`"),
        papers=required(COUNT, "papers with a field"),
        classes=required(COUNT, "different fields"),
        topics=required(COUNT, "topics"),
        homogeneity=optional(pa.float64(), "1 if each topic has papers of one field; null without fields"),
        completeness=optional(pa.float64(), "1 if all papers of a field are in one topic; null likewise"),
        v_measure=optional(pa.float64(), "their harmonic mean; null likewise"),
    ),
    table(
        "costs",
        "report/costs.parquet",
        "Costs of the finished jobs of each rule, each in its last run, and of Snakemake itself.",
        ("rule",),
        rule=required(
            TEXT,
            "name of the rule; of several that write the same logs, all names; `snakemake` is what starts the jobs",
        ),
        jobs=required(COUNT, "jobs that were measured"),
        seconds=required(pa.float64(), "their time together, seconds"),
        longest_seconds=required(pa.float64(), "time of the longest, seconds"),
        cpu_seconds=required(pa.float64(), "processor time of all, seconds"),
        peak_mb=required(pa.float64(), "largest resident memory of one, MB"),
    ),
]
