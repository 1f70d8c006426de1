"""The report's tables of what the models were made from say what the results say."""

import polars as pl
import pyarrow as pa
from tests.configurations import recorded

from cocite.core.tables.files import write_omissions, write_table
from cocite.report.inputs import (
    band_quality,
    graph_embeddings,
    leaks,
    leaks_by_text,
    leaks_in_words,
    omissions,
    searches,
    trained_models,
    triplet_sets,
)


def test_a_graph_embedding_is_described_by_its_last_epoch_raw_and_filtered():
    rows = [(1, "mrr", True, 0.1), (2, "mrr", False, 0.25), (2, "mrr", True, 0.5), (2, "auc", False, 0.9)]
    table = pl.DataFrame(
        [
            {"epoch": epoch, "metric": metric, "filtered": filtered, "value": value, "edges": 1200}
            for epoch, metric, filtered, value in rows
        ]
    )
    shared = {"embedding": "g", "graph": "cited", "epochs": "2", "held-out edges": "1,200"}
    configuration = {"embeddings": {"g": {"graph": "cited"}}, "corpus": {"source": "directory"}}
    assert graph_embeddings({"g": table}, recorded(configuration)).to_dicts() == [
        {**shared, "negatives": "raw", "MRR": "0.250", "AUC": "0.900"},
        {**shared, "negatives": "filtered", "MRR": "0.500", "AUC": None},
    ]
    of_s2 = graph_embeddings({"g": table}, recorded({**configuration, "corpus": {"source": "s2"}})).to_dicts()
    values = {(row["graph"], row["embedding"]): (row["mean rank"], row["MRR"], row["AUC"]) for row in of_s2[2:]}
    assert len(values) == 8
    assert values["CoCite, Table 6.6", "dot, 768"] == ("12.32", "0.65", "0.99")
    assert values["SciNCL, Table 5", "dot, 128"] == (None, "0.8975", "0.9770")


def test_omissions_are_listed_by_step_whose_jobs_count_together_without_entries_that_are_gone(tmp_path):
    write_omissions(tmp_path / "corpus/omissions/ingest.parquet", {"gone": 3, "never": 0})
    steps = {
        "corpus": {"merge-papers-0": 3, "merge-papers-10": 4, "read-triplets": 1, "update-papers-0": 1},
        "graph": {"a-edges-0": 1, "a-cocitations-0": 1, "a-b-edges-0": 1, "a-2-edges-0": 1, "a-2-edges-1": 1},
        "neighbours": {"a_0": 1, "a-b_0": 1},
        "triplets": {"cocite-25-1000": 5, "cocite-25-5000": 6, "a": 1},
    }
    for stage, counts in steps.items():
        for name, count in counts.items():
            write_omissions(tmp_path / stage / f"omissions/{name}.parquet", {"gone": count})
    configuration = {"queries": {"from": "rule"}, "corpus": {}, "graphs": {"a": {}, "a-2": {}}, "embeddings": {"a": {}}}
    configuration["triplets"] = {"cocite-25-1000": {}, "cocite-25-5000": {}}  # names may end in numbers
    assert sorted(omissions(tmp_path, recorded(configuration)).rows()) == [
        ("corpus", "ingest", "gone", 3),
        ("corpus", "merge-papers", "gone", 7),
        ("graph", "a-2-edges", "gone", 2),
        ("graph", "a-cocitations", "gone", 1),
        ("graph", "a-edges", "gone", 1),
        ("neighbours", "a", "gone", 1),
        ("triplets", "cocite-25-1000", "gone", 5),
        ("triplets", "cocite-25-5000", "gone", 6),
    ]


def test_found_leaks_are_summed_up_in_a_sentence():
    found = pl.DataFrame({"table": ["t", "t"], "papers found": ["1,200", "3"]})
    said = "2 columns of 1 tables were searched for papers that are kept out: 1,203 were found."
    assert leaks_in_words(found) == said


def test_only_searches_that_are_not_exact_are_listed_with_their_recall(tmp_path):
    row = {"metric": "l2", "index": "ivf", "k": 5000, "queries": 1200, "seconds": 0.4, "exact_seconds": 4.0}
    table = pa.Table.from_pylist([row | {"k": 10, "recall": 1.0}, row | {"recall": 0.98765}])
    write_table(tmp_path / "neighbours/listed/search_quality.parquet", "search_quality", table)
    kinds = {"exact": "flat", "listed": "ivf"}
    embeddings = {name: {"neighbours": {"index": {"kind": kind}}} for name, kind in kinds.items()}
    rows = searches(tmp_path, recorded({"embeddings": embeddings})).rows()
    assert rows[0][5] == "1.000"
    assert rows[1:] == [("listed", "ivf", "l2", "1,200", "5,000", "0.988", "0.4", "4.0")]


def test_leaks_are_listed_by_table_and_column_and_oracles_are_told_apart_from_them(tmp_path):
    counts = {"column_name": "query", "table_name": "t", "rows": 12000, "kept_out": 1500, "leaked": 0}
    paths = {"triplets/oracle/sampled_examples.parquet": "scirepeval", "triplets/t/triplets.parquet": None}
    rows = [{**counts, "path": path, "answers_of": answers} for path, answers in paths.items()]
    write_table(tmp_path / "corpus/leaks.parquet", "leaks", pa.Table.from_pylist(rows))
    found = leaks(tmp_path)
    assert found["answers of"].to_list() == ["scirepeval", "–"]
    said = "Tables of oracles, which contain the answers of scirepeval on purpose: 1."
    assert leaks_in_words(found).endswith(f"and none was found. {said}")
    edges = {**counts, "path": "graph/g/edges", "column_name": "source"}
    write_table(tmp_path / "corpus/leaks.parquet", "leaks", pa.Table.from_pylist([edges]))
    assert leaks(tmp_path).rows() == [("graph/g/edges", "source", "12,000", "1,500", "0")]


def test_an_embedding_has_a_row_for_each_way_to_be_related_and_a_column_a_band():
    columns = {"first_rank": [1, 6, 96], "last_rank": [5, 10, 100], "papers": [8, 10, 10], "cited": [2, 0, 0]}
    wide = pl.DataFrame({**columns, "cocited": [6, 5, 1]})
    table = band_quality({"wide": wide, "narrow": wide.head(2)})
    assert table.columns == ["embedding", "neighbours", "ranks 1–5", "ranks 6–10", "ranks 96–100"]
    assert table.rows() == [
        ("wide", "co-cited with the query", "75.0", "50.0", "10.0"),
        ("wide", "citing it or cited by it", "25.0", "0.0", "0.0"),
        ("narrow", "co-cited with the query", "75.0", "50.0", "–"),
        ("narrow", "citing it or cited by it", "25.0", "0.0", "–"),
    ]


def test_a_set_of_triplets_has_its_size_its_queries_and_its_checks_in_a_row():
    counts = pl.DataFrame({"split": ["train", "train", "validation"], "count": [0, 5, 5], "queries": [2, 300, 10]})
    checks = pl.DataFrame(
        [
            {"check": "collision", "part": "pairs", "found": 3, "among": 1500},
            {"check": "in benchmark", "part": "scirepeval", "found": 0, "among": 70},
            {"check": "no text", "part": "query", "found": 0, "among": 310},
        ]
    )
    assert len(band_quality({})) == len(triplet_sets({}, {})) == 0
    assert triplet_sets({"cocite": counts}, {"cocite": checks}).to_dicts() == [
        {
            "triplets": "cocite",
            "number": "1,550",
            "queries served": "310 of 312",
            "colliding pairs": "3 of 1,500",
            "papers of scirepeval": "0 of 70",
            "query papers without text": "0 of 310",
        }
    ]


def test_a_model_is_described_by_its_triplets_what_they_are_sampled_from_its_encoder_and_its_seeds():
    trained = {"encoder": "e", "loss": {"kind": "triplet"}, "trainable": {"kind": "all"}, "epochs": 2, "seeds": [1, 2]}
    further = {"loss": {"kind": "mnrl"}, "trainable": {"kind": "lora"}, "epochs": 1, "seeds": [3]}
    configuration = {
        "triplets": {"t": {"sampler": "neighbours", "embedding": "dot"}, "u": {"sampler": "union", "of": ["t", "s"]}},
        "models": {"m": {**trained, "triplets": "t"}, "n": {**trained, **further, "triplets": "u"}},
    }
    assert trained_models(recorded(configuration)).rows() == [
        ("m", "t", "neighbours", "dot", "e", "triplet", "all", "2", "1, 2"),
        ("n", "u", "union", "t, s", "e", "mnrl", "lora", "1", "3"),
    ]


def test_what_training_reads_of_other_papers_is_listed_with_examples(tmp_path):
    counts = {"texts": 12000, "by_id": 0, "by_twin": 1, "by_title": 2, "common_title": 3}
    found = [
        {"kind": "benchmark", "name": "beir", **counts, "examples": ["MED-1: Maps", "MED-2: Deep"]},
        {"kind": "split", "name": "holdout", **counts, "examples": []},
    ]
    write_table(tmp_path / "corpus/leaks_by_text.parquet", "leaks_by_text", pa.Table.from_pylist(found))
    shared = ("12,000", "0", "1", "2", "3")
    rows = [("documents of beir", *shared, "MED-1: Maps; MED-2: Deep"), ("held-out papers", *shared, "")]
    assert leaks_by_text(tmp_path).rows() == rows
