"""The check of the finished tables finds every paper that is kept out, wherever it is planted."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.spoiling import spoil_page
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.errors import InputError
from cocite.core.tables import TABLES, VECTOR
from cocite.core.tables.files import read_table, write_table
from cocite.core.text_ids import text_id
from cocite.corpus.leaks import check_leaks

SPLITS = {1: "train", 2: "validation", 90: "holdout", 91: "excluded", 92: "excluded"}
KNOWN = (1, 2, 3)
"""Papers that may stand anywhere."""
FILES = {
    "couplings": "graph/g/couplings/1.parquet",
    "cocitations": "graph/g/cocitations/1.parquet",
    "edges": "graph/g/edges/1.parquet",
    "graph_embeddings": "embeddings/e/graph_embeddings.parquet",
    "neighbours": "neighbours/e/neighbours/0.parquet",
    "triplets": "triplets/t/triplets.parquet",
    "sampled_examples": "triplets/e/sampled_examples.parquet",
    "training_examples": "triplets/t/examples.parquet",
    "training_documents": "triplets/t/documents/0.parquet",
    "validation_examples": "triplets/validation_all/examples.parquet",
    "validation_documents": "triplets/validation_all/documents/0.parquet",
    "sampled_relations": "triplets/sampled_relations.parquet",
}
COLUMNS = {
    "couplings": ["other", "paper"],
    "cocitations": ["other", "paper"],
    "edges": ["source", "target"],
    "graph_embeddings": ["corpusid"],
    "neighbours": ["neighbour", "query"],
    "sampled_relations": ["paper", "query"],
    "triplets": ["negative", "positive", "query"],
    **{f"{use}_examples": ["negatives", "positives", "query"] for use in ("sampled", "training", "validation")},
    **{f"{use}_documents": ["corpusid"] for use in ("training", "validation")},
}


def write_rows(path: Path, name: str, **planted: int) -> None:
    """A row for each paper of KNOWN, in every column of corpus ids, and one more with what is planted."""
    columns = {}
    count = len(KNOWN) + bool(planted)
    for column, declared in TABLES[name].columns.items():
        if declared.optional:
            continue
        if declared.of_papers:
            ids = sorted([*KNOWN, planted.get(column, KNOWN[-1])])[:count]
            columns[column] = pa.array(
                ids if declared.type == pa.int64() else [[1, paper] for paper in ids], declared.type
            )
        elif declared.type == VECTOR:
            columns[column] = pa.array([[1.0, 2.0]] * count, pa.list_(pa.float32(), 2))
        elif pa.types.is_string(declared.type):
            columns[column] = pa.array(["train"] * count)
        elif pa.types.is_boolean(declared.type):
            columns[column] = pa.array([True] * count)
        else:
            columns[column] = pa.array([91, 92, 93, 94][:count], declared.type)  # no ids, though they look alike
    write_table(path, name, pa.table(columns))


@pytest.fixture
def results(tmp_path):
    """A results folder with every table that the check is about, and the kept-out papers 90, 91 and 92."""
    write_table(
        tmp_path / "corpus/queries.parquet",
        "queries",
        pa.table({"corpusid": list(SPLITS), "split": list(SPLITS.values())}),
    )
    for name, file in FILES.items():
        write_rows(tmp_path / file, name)
    return tmp_path


def check(results, *tables, **changed):
    limits = {"memory_mb": 400, "threads": 1, "output": results / "corpus/leaks.parquet"}
    check_leaks(tables, results=results, queries=results / "corpus/queries.parquet", **limits | changed)
    return read_table(results / "corpus/leaks.parquet", "leaks").to_pylist()


def test_a_spoilt_page_of_a_table_is_named_before_its_ids_are_searched(results):
    edges = results / FILES["edges"]
    spoil_page(edges, list(TABLES["edges"].columns).index("target"), group=0)
    with pytest.raises(InputError, match=r"1\.parquet: bytes .* do not match their checksum"):
        check(results)


def test_every_column_of_corpus_ids_is_looked_through(results):
    rows = check(results)
    assert "answers_of" not in rows[0]  # there is no oracle
    looked_through = [(row["table_name"], row["column_name"]) for row in rows]
    assert sorted(looked_through) == sorted((name, column) for name, columns in COLUMNS.items() for column in columns)


def test_a_column_that_is_said_to_hold_corpus_ids_is_declared_so():
    for table in TABLES.values():
        for name, column in table.columns.items():
            if "corpus id" in column.meaning and column.type in (pa.int64(), pa.list_(pa.int64())):
                assert column.of_papers, (table.name, name)


def test_the_rows_of_all_buckets_count(results):
    write_rows(results / "graph/g/edges/2.parquet", "edges")
    (source, target) = (row for row in check(results) if row["table_name"] == "edges")
    assert (source["path"], source["column_name"], target["column_name"]) == ("graph/g/edges", "source", "target")
    assert (source["rows"], source["kept_out"], source["leaked"]) == (6, 3, 0)


@pytest.mark.parametrize(
    ("name", "column", "leaked"),
    [(name, column, 90 + 2 * (place % 2)) for name in COLUMNS for place, column in enumerate(COLUMNS[name])],
)
def test_a_leak_is_reported_with_its_file_table_column_number_and_paper(results, name, column, leaked):
    write_rows(results / FILES[name], name, **{column: leaked})
    with pytest.raises(InputError) as error:
        check(results)
    assert f"{FILES[name]} (table {name}), column {column}: 1 ({leaked})" in str(error.value)
    assert str(error.value).count("(table ") == 1
    assert not (results / "corpus/leaks.parquet").exists()


def test_an_oracle_and_its_validation_set_are_said_to_be_that_and_are_searched_like_all_others(results):
    oracles = '{"e": ["scirepeval"], "validation_all": ["scirepeval"]}'
    said = {(row["path"], row["answers_of"]) for row in check(results, oracles=oracles)}
    of_oracles = {path for path, answers in said if answers == "scirepeval"}
    assert of_oracles == {
        "triplets/e/sampled_examples.parquet",
        "triplets/validation_all/examples.parquet",
        "triplets/validation_all/documents",
    }
    assert ("neighbours/e/neighbours", None) in said
    assert {answers for path, answers in said if path not in of_oracles} == {None}
    write_rows(results / FILES["sampled_examples"], "sampled_examples", query=90)
    with pytest.raises(InputError, match="table sampled_examples"):
        check(results, oracles=oracles)


def test_a_leak_in_one_bucket_names_that_file_and_all_leaks_are_reported(results):
    write_rows(results / "graph/g/edges/7.parquet", "edges", source=90, target=91)
    write_rows(results / "neighbours/e/neighbours/0.parquet", "neighbours", neighbour=92)
    message = r"(?s)edges/7\.parquet .* source: 1 \(90\)\n.* target: 1 \(91\)\n.* neighbour: 1 \(92\)$"
    with pytest.raises(InputError, match=message):
        check(results)


def test_a_paper_counts_once_however_often_it_leaks_and_few_are_named(results):
    many = dict.fromkeys(range(100, 120), "excluded")
    table = pa.table({"corpusid": list(many), "split": list(many.values())})
    write_table(results / "corpus/queries.parquet", "queries", table)
    rows = pa.table({"source": [1, 2], "target": [100, 100], "weight": pa.array([1.0, 1.0], pa.float32())})
    write_table(results / "graph/g/edges/1.parquet", "edges", rows)
    with pytest.raises(InputError, match=r"column target: 1 \(100\)$"):
        check(results)
    rows = pa.table({"source": [1] * 20, "target": list(many), "weight": pa.array([1.0] * 20, pa.float32())})
    write_table(results / "graph/g/edges/1.parquet", "edges", rows)
    with pytest.raises(InputError, match=r"column target: 20 \(100, 101, 102, 103, 104, …\)$"):
        check(results)


def test_tables_that_are_named_are_looked_through_and_no_others(results):
    write_rows(results / "neighbours/e/neighbours/0.parquet", "neighbours", neighbour=92)
    rows = check(results, results / "graph/g/edges", results / "triplets/t/triplets.parquet")
    assert {row["path"] for row in rows} == {"graph/g/edges", "triplets/t/triplets.parquet"}
    with pytest.raises(InputError, match="corpus: is not the file or folder of a table of papers"):
        check(results, results / "corpus")


SENTENCES = {"cites a held-out one": (1, [2, 90]), "is of an excluded one": (91, [1]), "names none": (1, [2, 3])}


def write_contexts(results: Path) -> dict[str, int]:
    """The table contexts with these sentences, and their ids."""
    ids = {words: text_id(words, None, is_query=True) for words in SENTENCES}
    for bucket in (0, 1):
        rows = sorted((SENTENCES[words][0], ids[words], words) for words in SENTENCES if SENTENCES[words][0] == 1)
        rows = rows if bucket else [(91, ids["is of an excluded one"], "is of an excluded one")]
        columns = {
            "citing": [row[0] for row in rows],
            "context": [row[1] for row in rows],
            "cited": pa.array([SENTENCES[row[2]][1] for row in rows], pa.list_(pa.int64())),
            "sentence": [row[2] for row in rows],
        }
        write_table(results / f"corpus/contexts/{bucket}.parquet", "contexts", pa.table(columns))
    return ids


@pytest.mark.parametrize("words", ["cites a held-out one", "is of an excluded one"])
@pytest.mark.parametrize(
    ("name", "column"),
    [("sampled_examples", "query"), ("training_examples", "query"), ("training_documents", "corpusid")],
)
def test_a_planted_sentence_that_names_a_kept_out_paper_is_found_in_an_example(results, name, column, words):
    ids = write_contexts(results)
    write_rows(results / FILES[name], name, **{column: ids["names none"]})
    assert {row["leaked"] for row in check(results)} == {0}
    write_rows(results / FILES[name], name, **{column: ids[words]})
    with pytest.raises(InputError) as error:
        check(results)
    found = f"{FILES[name]} (table {name}), column {column}: 1 ({ids[words]}; negative ids are of sentences that name"
    assert found in str(error.value)


def test_the_command_reports_how_much_was_checked(results):
    options = [
        f"--results={results}",
        f"--queries={results / 'corpus/queries.parquet'}",
        "--memory-mb=400",
        "--threads=1",
    ]
    result = CliRunner().invoke(app, ["corpus", "leaks", *options, f"--output={results / 'corpus/leaks.parquet'}"])
    assert result.exit_code == 0, result.output
    assert "12 tables checked, 25 columns of corpus ids: none of the 3 papers" in result.stderr
