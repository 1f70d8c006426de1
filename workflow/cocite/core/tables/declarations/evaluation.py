"""What the stage evaluation writes: benchmarks, and what models reach on them."""

import pyarrow as pa

from cocite.core.tables.columns import COUNT, TEXT, Column, corpus_id, corpus_ids, extra, optional, required, table

_SCORED = {
    "model": required(TEXT, "name of the model or baseline"),
    "seed": required(pa.int32(), "the seed it was trained with; 0 for what is not trained"),
    "benchmark": required(TEXT, "name of the benchmark"),
    "task": required(TEXT, "name of the task"),
    "metric": required(TEXT, "name of the metric"),
    "evaluation_seed": required(pa.int32(), "seed of the random choices of the evaluation"),
    "mode": required(
        TEXT, "compat: as published; correct: as it should be; sklearn: as SciRepEval's code of 2026; both: all agree"
    ),
}

_JUDGED = {
    "task": required(TEXT, "name of the task"),
    "query": required(TEXT, "document id of the query"),
    "candidate": required(TEXT, "document id of the candidate; in reviewer matching, id of the reviewer"),
    "relevance": required(pa.int32(), "0 for not relevant, more for more relevant"),
}


def _of_searches(meaning: str) -> Column:
    return optional(COUNT, f"{meaning}; null where candidates are given")


TABLES = [
    table(
        "documents",
        "evaluation/{benchmark}/documents.parquet",
        "The distinct documents of a benchmark, each to be embedded once a model.",
        ("document",),
        document=required(TEXT, "the benchmark's id of the document"),
        title=optional(TEXT, "title, or the text of a query; null if there is none"),
        abstract=optional(TEXT, "abstract; null if there is none"),
        more=required(
            pa.list_(TEXT), "parts of its text after the abstract, in order: venue and year in the task search"
        ),
        field=optional(TEXT, "field of study, if the benchmark has one"),
        is_query=extra(
            pa.bool_(), "whether it is a short query of a search, not a paper; only if the benchmark has some"
        ),
    ),
    table(
        "document_fields",
        "evaluation/{benchmark}/document_fields.parquet",
        "Venue, authors and year of the documents of a benchmark that have any of them; only for encoders that read "
        "these fields.",
        ("document",),
        document=required(TEXT, "the benchmark's id of the document"),
        venue=optional(TEXT, "venue; null where unknown"),
        authors=optional(pa.list_(TEXT), "names of the authors, in order; null where unknown"),
        year=optional(pa.int16(), "year of publication; null where unknown"),
    ),
    table(
        "judgements",
        "evaluation/{benchmark}/judgements.parquet",
        "The ranking tasks of a benchmark: which candidate is how relevant to which query.",
        ("task", "query", "candidate"),
        **_JUDGED,
        propensity=optional(
            pa.float64(), "propensity of a click: the probability that its position was seen; null for other papers"
        ),
        fold=optional(pa.int8(), "the test fold of the query, from 1, if the benchmark has folds"),
    ),
    table(
        "selection",
        "evaluation/{benchmark}/selection.parquet",
        "Judgements of the selection queries of a hold-out, on which settings are selected; they are queries of no "
        "task in `judgements`. Empty without selection queries.",
        ("task", "query", "candidate"),
        **_JUDGED,
    ),
    table(
        "popularity",
        "evaluation/{benchmark}/popularity.parquet",
        "Of a benchmark of held-out papers: the papers with a text, which searches look among, and how often training "
        "sees each cited.",
        ("corpusid",),
        corpusid=corpus_id("corpus id"),
        citations=required(COUNT, "papers that cite it; neither side is held out or excluded"),
    ),
    table(
        "reference_lists",
        "evaluation/{benchmark}/reference_lists.parquet",
        "Of a benchmark of reviews that are screened: what their papers cite.",
        ("citing",),
        citing=corpus_id("paper of a review that cites any"),
        cited=corpus_ids("papers that it cites, which may have no record"),
    ),
    table(
        "searches",
        "evaluation/{benchmark}/searches.parquet",
        "The papers that each held-out paper has to find in the whole corpus; empty without `search`.",
        ("task", "query", "paper"),
        task=required(TEXT, "name of the task"),
        query=corpus_id("corpus id of the held-out paper"),
        paper=corpus_id("corpus id of the relevant paper"),
        relevance=required(pa.int32(), "1, or 2 for an influential citation with `graded`"),
        split=required(TEXT, "test, or selection for selection queries"),
    ),
    table(
        "clicks",
        "evaluation/{benchmark}/clicks.parquet",
        "The papers that were shown with each query of a task whose ranker learns from clicks (SciDocs' "
        "recommendation); empty if there are none.",
        ("task", "split", "name", "place"),
        task=required(TEXT, "name of the task"),
        split=required(TEXT, "train: the ranker learns from it; test: it is evaluated on it"),
        name=required(TEXT, "name of the click; in the split test, its query in `judgements`"),
        place=required(pa.int32(), "position at which it was shown, from 1"),
        query=required(TEXT, "document id of the query"),
        candidate=required(TEXT, "document id of a paper that was shown"),
        is_clicked=required(pa.bool_(), "whether it was clicked"),
        features=required(
            pa.list_(pa.float64()),
            "Jaccard similarity of authors, titles, citing papers and references; whether the candidate cites the "
            "query, and the query the candidate; age of the candidate and difference to the query's, in spans of 20 "
            "years; log(1 + citations) / 10",
        ),
    ),
    table(
        "collections",
        "evaluation/{benchmark}/collections.parquet",
        "The documents to search, for tasks without given candidates; empty if there are none.",
        ("task", "document"),
        task=required(TEXT, "name of the task"),
        document=required(TEXT, "document id"),
        query=optional(
            TEXT, "document id of the query that this document is, and that does not find it; null if none is"
        ),
        copy_of=optional(
            TEXT, "document id of the first document of the task with the same text; null for that one itself"
        ),
    ),
    table(
        "labels",
        "evaluation/{benchmark}/labels.parquet",
        "The classification and regression tasks of a benchmark.",
        ("task", "split", "document"),
        task=required(TEXT, "name of the task"),
        split=required(TEXT, "train or test"),
        document=required(TEXT, "document id"),
        labels=required(pa.list_(TEXT), "class names (several for multi-label tasks), or one number for regression"),
    ),
    table(
        "reviewers",
        "evaluation/{benchmark}/reviewers.parquet",
        "The papers of the reviewers who are candidates in the judgements of reviewer matching.",
        ("reviewer", "document"),
        reviewer=required(TEXT, "the benchmark's id of the reviewer"),
        document=required(TEXT, "document id of a paper that the reviewer wrote"),
    ),
    table(
        "signatures",
        "evaluation/{benchmark}/signatures.parquet",
        "The author disambiguation tasks of a benchmark: names of authors on papers; empty if there are none.",
        ("task", "signature"),
        task=required(TEXT, "name of the task"),
        signature=required(TEXT, "the benchmark's id of a name on a paper"),
        document=required(TEXT, "document id of the paper"),
        block=required(TEXT, "signatures with names that are alike; only such are compared"),
        author=required(TEXT, "the benchmark's id of the person: signatures of one author belong together"),
        split=required(TEXT, "train or test; a block is in one of them"),
    ),
    table(
        "scores",
        "evaluation/{benchmark}/scores/{suite}/{model}-{seed}.parquet",
        "Scores of models on a task, including encoders before fine-tuning, untrained_<encoder>, and baselines.",
        tuple(_SCORED),
        **_SCORED,
        format=required(
            TEXT, "classification, regression, proximity, reviewer-matching, search, disambiguation or screening"
        ),
        value=required(pa.float64(), "score × 100"),
        documents=required(COUNT, "documents of the task"),
        missing=required(COUNT, "documents among them without a vector"),
        scored=required(
            COUNT,
            "queries that were ranked, test documents that were predicted, or test signatures that were clustered",
        ),
        unscored=required(
            COUNT,
            "queries left out because they, or all their candidates, have no vector (in a search they count as 0); "
            "test documents, or signatures, without one",
        ),
        searched=_of_searches("documents of the collection that is searched"),
        copies=_of_searches(
            "documents of it that repeat the text of another one: which of them comes first is left to chance"
        ),
        unfindable=_of_searches(
            "judgements of relevant documents that are not in it; they count as documents that were not found"
        ),
    ),
    table(
        "outcomes",
        "evaluation/{benchmark}/outcomes/{suite}/{model}-{seed}.parquet",
        "What each query or test document contributed to a score, so that models can be compared on the same ones. Of "
        "classifications, the predictions of the training on everything, without few-shot stages.",
        (*_SCORED, "item"),
        **_SCORED,
        item=required(TEXT, "document id of the query or the test document; the test signature; the review"),
        value=optional(pa.float64(), "a ranking's metric for the query × 100; null for predictions"),
        weight=required(pa.float64(), "what the value counts for in the mean, an inverse propensity or 1"),
        predicted=required(
            pa.list_(TEXT),
            "predicted classes, a number, or the cluster; the places at which included papers were screened; empty for "
            "rankings",
        ),
        expected=required(
            pa.list_(TEXT), "true classes, the true number, the author, or the number of papers; empty for rankings"
        ),
    ),
    table(
        "scores_by_citations",
        "evaluation/{benchmark}/by_citations/{model}-{seed}.parquet",
        "Searches of the whole corpus by how often papers are cited in training: the recall of each class, and its "
        "share of the answers.",
        ("model", "seed", "benchmark", "task", "citations"),
        **{name: _SCORED[name] for name in ("model", "seed", "benchmark", "task")},
        citations=required(TEXT, "class of citations: 0, 1-3, 4-10, over 10, or top 1% of the papers"),
        recall=optional(
            pa.float64(), "share (%) of the relevant papers of the class among the first 20 answers, of at most 20"
        ),
        error=optional(pa.float64(), "standard error of the recall over queries"),
        queries=required(COUNT, "queries with a relevant paper of the class"),
        share=optional(pa.float64(), "share (%) of the first 20 answers that are of the class"),
    ),
    table(
        "scores_by_year",
        "evaluation/{benchmark}/scores_by_year.parquet",
        "Scores on a hold-out by time, by the year of its queries: the main metric of each task, such as R@20 of "
        "searches and MAP of rankings.",
        ("model", "seed", "benchmark", "task", "metric", "year"),
        **{name: _SCORED[name] for name in ("model", "seed", "benchmark", "task", "metric")},
        year=required(pa.int16(), "year of the queries"),
        queries=required(COUNT, "queries of the year that were ranked"),
        value=required(pa.float64(), "mean over these queries, × 100"),
        error=optional(pa.float64(), "standard error of the mean over queries; null for one query"),
    ),
    table(
        "failures",
        "evaluation/{benchmark}/failures/{suite}/{model}-{seed}.parquet",
        "Tasks that a model or baseline has no score on, because the data make one impossible.",
        ("model", "seed", "benchmark", "task"),
        **{name: _SCORED[name] for name in ("model", "seed", "benchmark", "task")},
        reason=required(TEXT, "why, in one sentence"),
    ),
    table(
        "probe_outcomes",
        "evaluation/probe_{probe}/outcomes/{triplets}.parquet",
        "What each held-out query contributed to the scores of the linear maps of a set in a probe.",
        ("loss", "batch_size", "seed", "part", "task", "query"),
        loss=required(TEXT, "the loss, with its settings; untrained for the vectors as they are"),
        batch_size=required(COUNT, "examples of a batch; 0 for the vectors as they are"),
        seed=required(pa.int32(), "the seed of the map; 0 for the vectors as they are"),
        part=required(TEXT, "selection, or test for the queries that the benchmark scores models on"),
        task=required(TEXT, "name of the task"),
        query=required(TEXT, "document id of the query"),
        value=required(pa.float64(), "average precision × 100"),
    ),
    table(
        "probe_scores",
        "evaluation/probe_{probe}/scores.parquet",
        "Scores of linear maps of fixed vectors, trained on the sets of a probe. They are ranked on the selection "
        "queries and scored on the test queries, which selection does not use.",
        ("triplets", "loss", "batch_size", "part", "task"),
        triplets=required(TEXT, "name of the set of triplets or examples; untrained for the vectors as they are"),
        loss=required(TEXT, "the loss, with its settings"),
        batch_size=required(COUNT, "examples of a batch"),
        part=required(TEXT, "selection or test"),
        task=required(TEXT, "name of the task; all for the mean of all tasks"),
        value=required(pa.float64(), "MAP × 100, the mean over seeds"),
        deviation=optional(pa.float64(), "standard deviation over the seeds; null for a single seed"),
        low=required(pa.float64(), "lower end of the 95% interval over queries, by a bootstrap"),
        high=required(pa.float64(), "upper end of it"),
        difference=required(pa.float64(), "value minus that of the set and training of rank 1"),
        difference_low=required(pa.float64(), "lower end of its 95% interval, both on the same queries"),
        difference_high=required(pa.float64(), "upper end of it"),
        queries=required(COUNT, "queries that were ranked"),
        rank=required(COUNT, "place by the mean over all tasks on the selection queries, from 1"),
    ),
    table(
        "averages",
        "evaluation/{benchmark}/averages.parquet",
        "The averages of each model on a benchmark: within each run over tasks and metrics, then over its training and "
        "evaluation seeds.",
        ("benchmark", "model", "mode", "over", "average"),
        **{name: _SCORED[name] for name in ("benchmark", "model", "mode")},
        over=required(TEXT, "what is averaged over: a format, a group of tasks, a metric, or all"),
        average=required(TEXT, "which format, group or metric; all"),
        mean=required(pa.float64(), "mean over the runs, × 100"),
        deviation=optional(pa.float64(), "standard deviation over the runs; null for a single run"),
        runs=required(COUNT, "pairs of a training and an evaluation seed"),
        values=required(
            COUNT, "metrics of tasks that every run has a score on; SciRepEval's published average is over 25"
        ),
        expected=optional(
            COUNT, "how many there would be if every task of the benchmark had a score; null over metrics"
        ),
    ),
    table(
        "comparisons",
        "evaluation/{benchmark}/comparisons.parquet",
        "Whether two models differ on a task: a paired bootstrap over its queries or test documents, each model's "
        "values averaged over its training and evaluation seeds first.",
        ("benchmark", "task", "metric", "mode", "model", "other"),
        **{name: _SCORED[name] for name in ("benchmark", "task", "metric", "mode")},
        model=required(TEXT, "name of a model or baseline"),
        other=required(TEXT, "name of the one that it is compared with, later in the alphabet"),
        items=required(COUNT, "queries or documents that both were scored on"),
        difference=required(pa.float64(), "value of the model minus value of the other, × 100"),
        low=required(pa.float64(), "lower end of the 95% interval of the difference"),
        high=required(pa.float64(), "upper end of it"),
        p_value=required(pa.float64(), "two-sided p-value of no difference"),
        wide_low=required(
            pa.float64(), "lower end of the 95% interval with two sources of chance, items and training seeds"
        ),
        wide_high=required(pa.float64(), "upper end of it"),
        p_adjusted=required(
            pa.float64(),
            "two-sided p-value of no difference by that error, raised for the number of pairs that the question "
            "compares (Holm, 1979)",
        ),
        detectable=required(
            pa.float64(), "the difference, × 100, that would be found in four of five repetitions at p_adjusted 5%"
        ),
    ),
    table(
        "reported_scores",
        "evaluation/{benchmark}/reported/{baseline}.parquet",
        "Scores that others reported in files of the library mteb, on tasks that the benchmark has as well. The run "
        "measured none of them; they are in no other table.",
        ("baseline", "benchmark", "task", "metric"),
        baseline=required(TEXT, "name of the baseline that names the files"),
        **{name: _SCORED[name] for name in ("benchmark", "task", "metric")},
        value=required(pa.float64(), "score × 100"),
        mteb_task=required(TEXT, "mteb's name of the task"),
        mteb_model=optional(TEXT, "mteb's name of the model, from its model_meta.json; null without one"),
        mteb_revision=optional(TEXT, "revision of the model, from there; null without one"),
        dataset_revision=optional(TEXT, "revision of the data set, from the file; null if it has none"),
        mteb_version=optional(TEXT, "version of mteb, from the file; null if it has none"),
    ),
    table(
        "task_comparisons",
        "evaluation/task_comparisons.parquet",
        "Which of two models is better over the tasks of a benchmark, and of all benchmarks: Wilcoxon's signed-rank "
        "test, with the difference on the first metric of each task as one pair. Two models with fewer than two tasks "
        "in common have no row.",
        ("over", "mode", "model", "other"),
        over=required(TEXT, "name of the benchmark whose tasks are the pairs, or `all benchmarks`"),
        mode=required(TEXT, "compat, correct or sklearn, and the tasks that have no mode; both if no task has one"),
        model=required(TEXT, "name of a model or baseline"),
        other=required(TEXT, "name of the one that it is compared with, later in the alphabet"),
        tasks=required(COUNT, "tasks that both were scored on"),
        better=required(COUNT, "tasks on which the model is better"),
        worse=required(COUNT, "tasks on which the other is better"),
        difference=required(
            pa.float64(), "mean over the tasks of the value of the model minus that of the other, × 100"
        ),
        low=required(pa.float64(), "lower end of its 95% interval over tasks, by Student's t"),
        high=required(pa.float64(), "upper end of it"),
        p_value=required(pa.float64(), "two-sided p-value of no difference, by the signed ranks"),
        least_p_value=required(
            pa.float64(),
            "the smallest p_value that can come out, 2 to the power of 1 minus the tasks on which they differ",
        ),
        p_adjusted=required(
            pa.float64(),
            "p_value raised for the number of pairs over the same tasks in the same mode (Holm, 1979) that can have "
            "one as small (Tarone, 1990)",
        ),
    ),
]
