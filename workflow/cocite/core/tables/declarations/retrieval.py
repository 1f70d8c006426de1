"""What the stage retrieval writes: what an index knows of its candidates, how it ranks them, and what that finds."""

import pyarrow as pa

from cocite.core.tables.columns import COUNT, TEXT, VECTOR, corpus_id, optional, required, table

NUMBER = pa.float32()

TABLES = [
    table(
        "candidates",
        "retrieval/{index}/seed-{seed}/{benchmark}/candidates.parquet",
        "The papers that an index finds for each held-out paper, and what it knows of them; also the candidates that "
        "tasks of the benchmark name. No edge of a paper that is kept out counts.",
        ("query", "paper"),
        query=corpus_id("corpus id of the held-out paper"),
        paper=corpus_id("corpus id of the candidate"),
        split=required(TEXT, "test, or selection for selection queries"),
        is_found=required(pa.bool_(), "whether the index finds it; if not, only a task names it"),
        cosines=required(VECTOR, "cosine of the vectors by each model of the index, in its order; NaN without vectors"),
        words=optional(
            NUMBER, "BM25 divided by the largest for the query; null if no paper shares a word with the query"
        ),
        votes_10=optional(
            NUMBER,
            "weights of those of the 10 nearest papers with links that are linked with it, a softmax of the mean "
            "cosine / 0.1; divided by the largest sum for the query; null if the paper has no links with searched "
            "papers",
        ),
        votes_30=optional(
            NUMBER, "the same of 30 papers, each weight divided by its paper's links^0.5, the sum by links^0.3"
        ),
        votes_100=optional(NUMBER, "the same as votes_10 of 100 papers"),
        citations=required(COUNT, "how often training sees the paper cited"),
        age=optional(pa.int16(), "years by which the paper is older than the newest one; null if its year is unknown"),
    ),
    table(
        "answers",
        "retrieval/{index}/seed-{seed}/{benchmark}/answers.parquet",
        "The scores that an index gives the candidates of held-out papers that do not choose between settings.",
        ("query", "paper"),
        query=corpus_id("corpus id of the held-out paper"),
        paper=corpus_id("corpus id of the candidate"),
        is_found=required(pa.bool_(), "whether the index finds it; if not, only a task names it"),
        score=required(NUMBER, "more is ranked first; comparable within a query"),
    ),
    table(
        "selection_scores",
        "retrieval/{index}/seed-{seed}/{benchmark}/selection_scores.parquet",
        "Scores of an index, and of each of its lists separately, on the selection queries.",
        ("task", "ranking"),
        task=required(TEXT, "name of the task"),
        ranking=required(TEXT, "`cosine <model>` or `words`; or `index, <known>`, all that it ranks by"),
        recall=optional(pa.float64(), "R@20, the mean over queries × 100; null without queries"),
        recall_never=optional(pa.float64(), "the same of papers that training never sees cited"),
        recall_seldom=optional(pa.float64(), "the same of papers that training sees cited one to three times"),
        queries=required(COUNT, "queries with a relevant paper"),
        chosen=required(pa.bool_(), "whether the index ranks by it"),
    ),
]
