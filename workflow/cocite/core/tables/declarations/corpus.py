"""What the stage corpus writes: the rows of a release as they are read, papers and citations, and queries."""

from dataclasses import replace

import pyarrow as pa

from cocite.core.tables.declarations.columns import (
    COUNT,
    ID,
    TEXT,
    Column,
    Table,
    corpus_id,
    corpus_ids,
    extra,
    optional,
    required,
)

SHARD_NAME = pa.dictionary(pa.int32(), TEXT)
"""Type of a column with the names of few shards in many rows."""

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
}

_AUTHORS = {
    AUTHORS: extra(
        pa.list_(TEXT), "names of the authors, in the release's order, empty where unknown; only with `corpus.authors`"
    )
}
_MAG = {
    MAG: extra(
        ID,
        "id in the Microsoft Academic Graph; null if there is none; only for works of OpenAlex, with `corpus.match`",
        nullable=True,
    )
}
_SHARD = {
    SHARD: extra(
        SHARD_NAME, "file of the copy that the row is from, which begins with the day; only of works of OpenAlex"
    )
}
_LEFT_OUT = {
    "left_out": extra(
        pa.bool_(),
        "true if `corpus.filters` exclude the paper: the row then only overrides earlier files; only for works of "
        "OpenAlex",
    )
}
_BUCKET = required(pa.uint16(), "id of the paper (the citing one) modulo the number of buckets")

CITATION_ENDS = {
    "citing": corpus_id("corpus id of the paper that cites"),
    "cited": corpus_id("corpus id of the paper that is cited"),
}
WEIGHT = {
    "weight": extra(pa.float32(), "what the citation counts for, only in a graph with `citations.weights`"),
}

TABLES = [
    Table(
        "ingested_papers",
        "corpus/ingested/papers/{part}.parquet",
        "Temporary: the papers of a shard, sorted by bucket, before they are merged.",
        key=("corpusid",),
        ordered=False,
        columns={
            "bucket": _BUCKET,
            "corpusid": corpus_id("corpus id: Semantic Scholar's, or of the space that `id_spaces` names"),
            **_PAPER_COLUMNS,
            **_AUTHORS,
            **_MAG,
            **_SHARD,
            **_LEFT_OUT,
        },
    ),
    Table(
        "ingested_abstracts",
        "corpus/ingested/abstracts/{part}.parquet",
        "Temporary: the abstracts of a shard, sorted by bucket, before they are merged.",
        key=("corpusid",),
        ordered=False,
        columns={
            "bucket": _BUCKET,
            "corpusid": corpus_id("corpus id: Semantic Scholar's, or of the space that `id_spaces` names"),
            "abstract": required(TEXT, "abstract, not empty"),
            **_SHARD,
        },
    ),
    Table(
        "ingested_citations",
        "corpus/ingested/citations/{part}.parquet",
        "Temporary: the citations of a shard, with all copies, sorted by bucket, before they are merged.",
        key=("citing", "cited"),
        ordered=False,
        columns={
            "bucket": _BUCKET,
            "citationid": optional(ID, "the release's id of this copy; null unless it is kept for updates"),
            "citing": corpus_id("corpus id of the paper that cites"),
            "cited": corpus_id("corpus id of the paper that is cited"),
            "traits": required(
                pa.uint8(),
                "sum of 1 for background, 2 for methodology, 4 for result, 8 for influential, 16 for an unknown intent",
            ),
            **_SHARD,
        },
    ),
    Table(
        "ingested_contexts",
        "corpus/ingested/citations/contexts/{part}.parquet",
        "Temporary: the sentences that contain the citations of a shard, if the configuration needs them, "
        "sorted by bucket, before they are merged.",
        key=("citing", "cited"),
        ordered=False,
        read_once=True,
        columns={
            "bucket": _BUCKET,
            **CITATION_ENDS,
            "contexts": Column(
                type=pa.binary(),
                meaning="the list of sentences of this copy of the citation, as the release's JSON",
                encoding="PLAIN",
            ),
        },
    ),
    Table(
        "listed_names",
        "corpus/ingested/{dataset}/names/{part}.parquet",
        "Temporary: the distinct ids in a file of the source table, where ids are texts.",
        key=("name",),
        columns={"name": required(TEXT, "id of a paper as the file has it, without its prefix")},
    ),
    Table(
        "names",
        "corpus/names.parquet",
        "The ids of papers if the source table has text ids, and the numbers that replace them everywhere else: "
        "their ranks among all names of the corpus, so that both columns rise.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "name": required(TEXT, "id of the paper in the user-supplied tables, without its prefix"),
        },
    ),
    Table(
        "cited_ids",
        "corpus/cited_ids.parquet",
        "How many of the cited ids in each file of a source table are papers.",
        key=("shard",),
        columns={
            "shard": required(TEXT, "the file"),
            "citations": required(COUNT, "its citations, without those by the paper itself and those with one id"),
            "touching": required(COUNT, "those of which at least one end is a paper"),
            "inside": required(COUNT, "those that lead to a paper"),
            "outside_example": optional(TEXT, "a cited id that is no paper, as the file has it"),
            "paper_example": optional(TEXT, "the id of a paper, as its file has it"),
        },
    ),
    Table(
        "ingest_report",
        "corpus/ingest_report/{dataset}/{part}.parquet",
        "What became of the lines of each shard; the lines of a shard's outcomes sum up to all it has.",
        key=("dataset", "shard", "outcome"),
        columns={
            "dataset": required(
                TEXT,
                "papers, abstracts or citations, or works of OpenAlex; contexts of citations, and abstracts and "
                "citations of works, are counted in addition to the lines that are kept",
            ),
            "shard": required(TEXT, "name of the shard"),
            "outcome": required(TEXT, "kept, or why a line was left out"),
            "lines": required(COUNT, "how many lines"),
            "first_line": optional(COUNT, "number, from 1, of the first malformed line"),
            "fault": optional(TEXT, "what is wrong with that line"),
        },
    ),
    Table(
        "papers",
        "corpus/papers/{bucket}.parquet",
        "The papers of the release with their abstracts; sharded by corpusid modulo the number of buckets.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id: Semantic Scholar's, or of the space that `id_spaces` names"),
            "abstract": optional(TEXT, "abstract; null if there is none"),
            "has_text": required(
                pa.bool_(),
                "true if the paper has a title, and an abstract unless corpus.allow_missing_abstract; triplets need a "
                "text",
            ),
            **_PAPER_COLUMNS,
            **_AUTHORS,
            **_MAG,
        },
    ),
    Table(
        "citations",
        "corpus/citations/{bucket}.parquet",
        "Distinct citations of the release; sharded by citing modulo the number of buckets. Either end may be a "
        "paper without a record in `papers`.",
        key=("citing", "cited"),
        columns={
            **CITATION_ENDS,
            "influential": required(pa.bool_(), "true if any copy of the citation in the release is influential"),
            "intents": required(pa.list_(TEXT), "union of background, methodology, result over all copies, sorted"),
            **WEIGHT,
        },
    ),
    Table(
        "contexts",
        "corpus/contexts/{bucket}.parquet",
        "Distinct sentences that cite, of each citing paper, without their citation markers; only with "
        "`corpus.contexts`. Sharded by citing modulo the number of buckets.",
        key=("citing", "context"),
        columns={
            "citing": corpus_id("corpus id of the paper that contains the sentence"),
            "context": required(ID, "negative id of the sentence as a short query, which follows from its text"),
            "cited": corpus_ids("corpus ids of the papers that are cited in it, distinct, rising"),
            "sentence": required(TEXT, "the sentence, cleaned of citation markers, with single spaces"),
        },
    ),
    Table(
        "matches",
        "corpus/matches.parquet",
        "Papers of the corpus that are papers of Semantic Scholar's by their MAG id or DOI, each matched with one; "
        "only with `corpus.match`.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "s2_corpusid": required(ID, "the id that the same paper has at Semantic Scholar"),
            "matched_by": required(TEXT, "mag or doi: what both have"),
        },
    ),
    Table(
        "twins",
        "corpus/twins.parquet",
        "Papers that are one work with others, such as a preprint and its published version.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "group": corpus_id(
                "the paper that represents the work: the smallest id of those with a text, or of all if none has one"
            ),
            "reason": required(
                TEXT, "why the paper is in the group, the strongest of its links: doi, title or abstract, in this order"
            ),
            "score": optional(
                pa.float32(),
                "Jaccard index of the runs of three words in the abstracts that this link joins; null if one is "
                "missing or shorter than twelve words",
            ),
        },
    ),
    Table(
        "document_papers",
        "corpus/document_papers/{benchmark}.parquet",
        "Documents of a benchmark that are papers of the corpus, if their ids are of another origin than those of "
        "the corpus or hashes. A text may be that of several papers. Corpus ids of documents are here as well if "
        "papers has no record of them, since they may be cited.",
        key=("document", "corpusid"),
        columns={
            "document": required(TEXT, "the benchmark's id of the document"),
            "corpusid": corpus_id("corpus id"),
            "matched_by": required(
                TEXT,
                "id: Semantic Scholar's corpus id; sha: hash, by the dataset paper-ids; mag or doi: by the table "
                "matches; doi, too, if the document's id is one; text: one title, and abstracts that agree or a "
                "telling title",
            ),
            "has_record": required(pa.bool_(), "whether papers has a record of the id; it is kept out also if not"),
        },
    ),
    Table(
        "published_queries",
        "corpus/published_queries.parquet",
        "The queries of published training triplets, for queries from triplets.",
        key=("corpusid",),
        columns={"corpusid": corpus_id("corpus id")},
    ),
    Table(
        "queries",
        "corpus/queries.parquet",
        "The papers that anchor triplets, the papers that are kept out of every graph, index, triplet and vocabulary "
        "(drawn to be held out, or excluded by the configuration), and the twins of other papers.",
        key=("corpusid",),
        columns={
            "corpusid": corpus_id("corpus id"),
            "split": required(
                TEXT,
                "train or validation: a query; holdout, excluded, holdout-by-time or later (after the cut): excluded "
                "from training; twin: none of these, and another paper represents it",
            ),
            "work": extra(
                ID,
                "if the paper is one work with others, the one that represents it in splits, triplets and hold-outs; "
                "null for that one and for all other papers. The column exists only if there are twins",
                nullable=True,
            ),
        },
    ),
    Table(
        "leaks",
        "corpus/leaks.parquet",
        "Check for leaked papers: every downstream column of corpus ids, searched for the excluded papers.",
        key=("path", "column_name"),
        columns={
            "path": required(TEXT, "file of a table, or folder of its buckets, in the results folder"),
            "table_name": required(TEXT, "name of the table"),
            "column_name": required(TEXT, "the column that was looked through"),
            "rows": required(COUNT, "rows of the table"),
            "kept_out": required(COUNT, "papers that are kept out, held out or excluded"),
            "leaked": required(
                COUNT,
                "how many of them, of twins of held-out and excluded ones, and of sentences that name one are in the "
                "column; the step stops if one is",
            ),
            "answers_of": extra(
                TEXT,
                "benchmarks whose answers the table contains as its own texts, by the sampler oracle; null for "
                "all other tables, and no column without an oracle",
                nullable=True,
            ),
        },
    ),
    Table(
        "leaks_by_text",
        "corpus/leaks_by_text.parquet",
        "What training reads of papers that are kept out, of benchmarks that others made, and as queries of validation "
        "queries. Each text counts once: by id, else by twin, else by title.",
        key=("kind", "name"),
        columns={
            "kind": required(TEXT, "split or benchmark"),
            "name": required(TEXT, "the split of the papers in `queries`, or the name of the benchmark"),
            "texts": required(COUNT, "papers, or documents without short queries, that were looked for"),
            "by_id": required(COUNT, "how many are read themselves; 0 for papers that are kept out"),
            "by_twin": required(COUNT, "further ones of which a twin is read"),
            "by_title": required(COUNT, "further ones whose title is read, in words and their order"),
            "common_title": required(
                COUNT, "further ones likewise, whose title has one or two words or is that of more than five papers"
            ),
            "examples": required(pa.list_(TEXT), "ids and titles of up to three, those by title first"),
        },
    ),
    Table(
        "unresolved",
        "corpus/unresolved/{dataset}/{part}.parquet",
        "Entries of `corpus.list` without a work, or with that of an earlier entry.",
        key=("entry",),
        columns={
            "entry": required(COUNT, "number of the entry, from 1"),
            "place": required(TEXT, "its line, or its number in JSON, and its key if it has one"),
            "ids": required(pa.list_(TEXT), "its ids, each after its filter of the API, such as `doi:10.1000/a`"),
            "reason": required(TEXT, "why it is here"),
            "earlier": optional(TEXT, "place of the earlier entry of the same work"),
        },
    ),
    Table(
        "omissions",
        "{stage}/omissions/{step}.parquet",
        "What a step met and left out, counted by reason.",
        key=("reason",),
        columns={
            "reason": required(TEXT, "what was left out, and why"),
            "count": required(COUNT, "how many"),
        },
    ),
]


def _changes_in(ingested: Table, key: str) -> Table:
    """The table of what diffs change in the rows of a dataset, which have this primary key in the release."""
    dataset = ingested.name.removeprefix("ingested_")
    meaning = "the release's primary key of a record; a row that has no more says that it is replaced or deleted"
    held = {name: column for name, column in ingested.columns.items() if not column.optional}
    columns = {name: replace(column, nullable=True) for name, column in held.items()}
    return Table(
        name=f"changed_{dataset}",
        path=f"corpus/changes/{dataset}/{{part}}.parquet",
        description=f"Temporary: what a file of diffs changes in the {dataset} of an earlier release.",
        key=(key,),
        ordered=False,
        columns={
            "step": required(pa.uint16(), "number of the diff, from 1; a later one has the last word"),
            **columns,
            key: replace(ingested.columns[key], nullable=False, meaning=meaning),
        },
    )


PRIMARY_KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citationid"}
"""What names a record of each dataset of a release, and so in its diffs."""
BY_NAME = {table.name: table for table in TABLES}
TABLES += [_changes_in(BY_NAME[f"ingested_{dataset}"], key) for dataset, key in PRIMARY_KEYS.items()]
