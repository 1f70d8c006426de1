"""What the stage corpus writes: the rows of a release as they are read, papers and citations, and queries."""

from dataclasses import replace

import pyarrow as pa

from cocite.core.tables.columns import COUNT, ID, TEXT, Table, corpus_id, corpus_ids, extra, optional, required, table

SHARD_NAME = pa.dictionary(pa.int32(), TEXT)

AUTHORS, MAG, SHARD = "authors", "mag", "shard"
"""Columns that exist only for some sources or if the configuration needs them."""

_PAPER_COLUMNS = {
    "title": optional(TEXT, "title; null if the release has none or an empty one"),
    "year": optional(pa.int16(), "year of publication"),
    "date": optional(pa.date32(), "day of publication; null if only the year is known"),
    "venue": optional(TEXT, "venue as the release names it"),
    "fields": required(pa.list_(TEXT), "fields of study, distinct, in the release's order; empty where unknown"),
    "doi": optional(TEXT, "digital object identifier"),
    "citation_count": optional(pa.int32(), "citations according to the release's record (not counted by CoCite)"),
    "reference_count": optional(pa.int32(), "references according to the release's record (not counted by CoCite)"),
    AUTHORS: extra(
        pa.list_(TEXT), "names of the authors, in the release's order, empty where unknown; only with `corpus.authors`"
    ),
    MAG: extra(
        ID,
        "id in the Microsoft Academic Graph; null if there is none; only for works of OpenAlex, with `corpus.match`",
        nullable=True,
    ),
}
_SHARD = {
    SHARD: extra(
        SHARD_NAME, "file of the copy that the row is from, which begins with the day; only of works of OpenAlex"
    )
}
_BUCKET = required(pa.uint16(), "id of the paper (the citing one) modulo the number of buckets")

CITATION_ENDS = {
    "citing": corpus_id("corpus id of the paper that cites"),
    "cited": corpus_id("corpus id of the paper that is cited"),
}
WEIGHT = {"weight": extra(pa.float32(), "what the citation counts for, only in a graph with `citations.weights`")}

TABLES = [
    table(
        "ingested_papers",
        "corpus/ingested/papers/{part}.parquet",
        "Temporary: the papers of a shard, sorted by bucket, before they are merged.",
        ("corpusid",),
        "unordered",
        bucket=_BUCKET,
        corpusid=corpus_id("corpus id: Semantic Scholar's, or of the space that `id_spaces` names"),
        **_PAPER_COLUMNS,
        **_SHARD,
        left_out=extra(
            pa.bool_(),
            "true if `corpus.filters` exclude the paper: the row then only overrides earlier files; only for works of "
            "OpenAlex",
        ),
    ),
    table(
        "ingested_abstracts",
        "corpus/ingested/abstracts/{part}.parquet",
        "Temporary: the abstracts of a shard, sorted by bucket, before they are merged.",
        ("corpusid",),
        "unordered",
        bucket=_BUCKET,
        corpusid=corpus_id("corpus id: Semantic Scholar's, or of the space that `id_spaces` names"),
        abstract=required(TEXT, "abstract, not empty"),
        **_SHARD,
    ),
    table(
        "ingested_citations",
        "corpus/ingested/citations/{part}.parquet",
        "Temporary: the citations of a shard, with all copies, sorted by bucket, before they are merged.",
        ("citing", "cited"),
        "unordered",
        bucket=_BUCKET,
        citationid=optional(ID, "the release's id of this copy; null unless it is kept for updates"),
        citing=corpus_id("corpus id of the paper that cites"),
        cited=corpus_id("corpus id of the paper that is cited"),
        traits=required(
            pa.uint8(),
            "sum of 1 for background, 2 for methodology, 4 for result, 8 for influential, 16 for an unknown intent",
        ),
        **_SHARD,
    ),
    table(
        "ingested_contexts",
        "corpus/ingested/citations/contexts/{part}.parquet",
        "Temporary: the sentences that contain the citations of a shard, if the configuration needs them, sorted by "
        "bucket, before they are merged.",
        ("citing", "cited"),
        "unordered",
        "read once",
        bucket=_BUCKET,
        **CITATION_ENDS,
        contexts=required(
            pa.binary(), "the list of sentences of this copy of the citation, as the release's JSON", encoding="PLAIN"
        ),
    ),
    table(
        "listed_names",
        "corpus/ingested/{dataset}/names/{part}.parquet",
        "Temporary: the distinct ids in a file of the source table, where ids are texts.",
        ("name",),
        name=required(TEXT, "id of a paper as the file has it, without its prefix"),
    ),
    table(
        "names",
        "corpus/names.parquet",
        "The ids of papers if the source table has text ids, and the numbers that replace them everywhere else: their "
        "ranks among all names of the corpus, so that both columns rise.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        name=required(TEXT, "id of the paper in the user-supplied tables, without its prefix"),
    ),
    table(
        "cited_ids",
        "corpus/cited_ids.parquet",
        "How many of the cited ids in each file of a source table are papers.",
        ("shard",),
        shard=required(TEXT, "the file"),
        citations=required(COUNT, "its citations, without those by the paper itself and those with one id"),
        touching=required(COUNT, "those of which at least one end is a paper"),
        inside=required(COUNT, "those that lead to a paper"),
        outside_example=optional(TEXT, "a cited id that is no paper, as the file has it"),
        paper_example=optional(TEXT, "the id of a paper, as its file has it"),
    ),
    table(
        "ingest_report",
        "corpus/ingest_report/{dataset}/{part}.parquet",
        "What became of the lines of each shard; the lines of a shard's outcomes sum up to all it has.",
        ("dataset", "shard", "outcome"),
        dataset=required(
            TEXT,
            "papers, abstracts or citations, or works of OpenAlex; contexts of citations, and abstracts and citations "
            "of works, are counted in addition to the lines that are kept",
        ),
        shard=required(TEXT, "name of the shard"),
        outcome=required(TEXT, "kept, or why a line was left out"),
        lines=required(COUNT, "how many lines"),
        first_line=optional(COUNT, "number, from 1, of the first malformed line"),
        fault=optional(TEXT, "what is wrong with that line"),
    ),
    table(
        "papers",
        "corpus/papers/{bucket}.parquet",
        "The papers of the release with their abstracts; sharded by corpusid modulo the number of buckets.",
        ("corpusid",),
        corpusid=corpus_id("corpus id: Semantic Scholar's, or of the space that `id_spaces` names"),
        abstract=optional(TEXT, "abstract; null if there is none"),
        has_text=required(
            pa.bool_(),
            "true if the paper has a title, and an abstract unless corpus.allow_missing_abstract; triplets need a text",
        ),
        **_PAPER_COLUMNS,
    ),
    table(
        "citations",
        "corpus/citations/{bucket}.parquet",
        "Distinct citations of the release; sharded by citing modulo the number of buckets. Either end may be a paper "
        "without a record in `papers`.",
        ("citing", "cited"),
        **CITATION_ENDS,
        influential=required(pa.bool_(), "true if any copy of the citation in the release is influential"),
        intents=required(pa.list_(TEXT), "union of background, methodology, result over all copies, sorted"),
        **WEIGHT,
    ),
    table(
        "contexts",
        "corpus/contexts/{bucket}.parquet",
        "Distinct sentences that cite, of each citing paper, without their citation markers; only with "
        "`corpus.contexts`. Sharded by citing modulo the number of buckets.",
        ("citing", "context"),
        citing=corpus_id("corpus id of the paper that contains the sentence"),
        context=required(ID, "negative id of the sentence as a short query, which follows from its text"),
        cited=corpus_ids("corpus ids of the papers that are cited in it, distinct, rising"),
        sentence=required(TEXT, "the sentence, cleaned of citation markers, with single spaces"),
    ),
    table(
        "matches",
        "corpus/matches.parquet",
        "Papers of the corpus that are papers of Semantic Scholar's by their MAG id or DOI, each matched with one; "
        "only with `corpus.match`.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        s2_corpusid=required(ID, "the id that the same paper has at Semantic Scholar"),
        matched_by=required(TEXT, "mag or doi: what both have"),
    ),
    table(
        "twins",
        "corpus/twins.parquet",
        "Papers that are one work with others, such as a preprint and its published version.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        group=corpus_id(
            "the paper that represents the work: the smallest id of those with a text, or of all if none has one"
        ),
        reason=required(
            TEXT, "why the paper is in the group, the strongest of its links: doi, title or abstract, in this order"
        ),
        score=optional(
            pa.float32(),
            "Jaccard index of the runs of three words in the abstracts that this link joins; null if one is missing or "
            "shorter than twelve words",
        ),
    ),
    table(
        "document_papers",
        "corpus/document_papers/{benchmark}.parquet",
        "Documents of a benchmark that are papers of the corpus, if their ids are of another origin than those of the "
        "corpus or hashes. A text may be that of several papers. Corpus ids of documents are here as well if papers "
        "has no record of them, since they may be cited.",
        ("document", "corpusid"),
        document=required(TEXT, "the benchmark's id of the document"),
        corpusid=corpus_id("corpus id"),
        matched_by=required(
            TEXT,
            "id: Semantic Scholar's corpus id; sha: hash, by the dataset paper-ids; mag or doi: by the table matches; "
            "doi, too, if the document's id is one; text: one title, and abstracts that agree or a telling title",
        ),
        has_record=required(pa.bool_(), "whether papers has a record of the id; it is kept out also if not"),
    ),
    table(
        "published_queries",
        "corpus/published_queries.parquet",
        "The queries of published training triplets, for queries from triplets.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
    ),
    table(
        "queries",
        "corpus/queries.parquet",
        "The papers that anchor triplets, the papers that are kept out of every graph, index, triplet and vocabulary "
        "(drawn to be held out, or excluded by the configuration), and the twins of other papers.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        split=required(
            TEXT,
            "train or validation: a query; holdout, excluded, holdout-by-time or later (after the cut): excluded from "
            "training; twin: none of these, and another paper represents it",
        ),
        work=extra(
            ID,
            "if the paper is one work with others, the one that represents it in splits, triplets and hold-outs; null "
            "for that one and for all other papers. The column exists only if there are twins",
            nullable=True,
        ),
    ),
    table(
        "leaks",
        "corpus/leaks.parquet",
        "Check for leaked papers: every downstream column of corpus ids, searched for the excluded papers.",
        ("path", "column_name"),
        path=required(TEXT, "file of a table, or folder of its buckets, in the results folder"),
        table_name=required(TEXT, "name of the table"),
        column_name=required(TEXT, "the column that was looked through"),
        rows=required(COUNT, "rows of the table"),
        kept_out=required(COUNT, "papers that are kept out, held out or excluded"),
        leaked=required(
            COUNT,
            "how many of them, of twins of held-out and excluded ones, and of sentences that name one are in the "
            "column; the step stops if one is",
        ),
        answers_of=extra(
            TEXT,
            "benchmarks whose answers the table contains as its own texts, by the sampler oracle; null for all other "
            "tables, and no column without an oracle",
            nullable=True,
        ),
    ),
    table(
        "leaks_by_text",
        "corpus/leaks_by_text.parquet",
        "What training reads of papers that are kept out, of benchmarks that others made, and as queries of validation "
        "queries. Each text counts once: by id, else by twin, else by title.",
        ("kind", "name"),
        kind=required(TEXT, "split or benchmark"),
        name=required(TEXT, "the split of the papers in `queries`, or the name of the benchmark"),
        texts=required(COUNT, "papers, or documents without short queries, that were looked for"),
        by_id=required(COUNT, "how many are read themselves; 0 for papers that are kept out"),
        by_twin=required(COUNT, "further ones of which a twin is read"),
        by_title=required(COUNT, "further ones whose title is read, in words and their order"),
        common_title=required(
            COUNT, "further ones likewise, whose title has one or two words or is that of more than five papers"
        ),
        examples=required(pa.list_(TEXT), "ids and titles of up to three, those by title first"),
    ),
    table(
        "unresolved",
        "corpus/unresolved/{dataset}/{part}.parquet",
        "Entries of `corpus.list` without a work, or with that of an earlier entry.",
        ("entry",),
        entry=required(COUNT, "number of the entry, from 1"),
        place=required(TEXT, "its line, or its number in JSON, and its key if it has one"),
        ids=required(pa.list_(TEXT), "its ids, each after its filter of the API, such as `doi:10.1000/a`"),
        reason=required(TEXT, "why it is here"),
        earlier=optional(TEXT, "place of the earlier entry of the same work"),
    ),
    table(
        "omissions",
        "{stage}/omissions/{step}.parquet",
        "What a step met and left out, counted by reason.",
        ("reason",),
        reason=required(TEXT, "what was left out, and why"),
        count=required(COUNT, "how many"),
    ),
]


def _changes_in(dataset: str, key: str) -> Table:
    """The table of what diffs change in the rows of a dataset, which have this primary key in the release."""
    [ingested] = [each for each in TABLES if each.name == f"ingested_{dataset}"]
    columns = {name: replace(column, nullable=True) for name, column in ingested.columns.items() if not column.optional}
    meaning = "the release's primary key of a record; a row that has no more says that it is replaced or deleted"
    columns[key] = replace(columns[key], nullable=False, meaning=meaning)
    return table(
        f"changed_{dataset}",
        f"corpus/changes/{dataset}/{{part}}.parquet",
        f"Temporary: what a file of diffs changes in the {dataset} of an earlier release.",
        (key,),
        "unordered",
        step=required(pa.uint16(), "number of the diff, from 1; a later one has the last word"),
        **columns,
    )


PRIMARY_KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citationid"}
"""What names a record of each dataset of a release, and so in its diffs."""
TABLES += [_changes_in(dataset, key) for dataset, key in PRIMARY_KEYS.items()]
