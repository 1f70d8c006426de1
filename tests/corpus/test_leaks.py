"""The check of the finished tables finds every paper that is kept out, wherever it is planted."""

import gzip
import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.made import write_documents, write_twins
from tests.graph.conftest import write_queries
from tests.papers import papers_table
from tests.rows import write_rows as write_tuples
from tests.spoiling import spoil_page
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.errors import InputError
from cocite.core.tables import TABLES, VECTOR
from cocite.core.tables.files import read_table, write_table
from cocite.core.written_ids import text_id
from cocite.corpus.leaks import check_leaks, compare_texts

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


OF_TYPE = {VECTOR: [1.0, 2.0], pa.string(): "train", pa.bool_(): True}


def write_rows(path: Path, name: str, **planted: int) -> None:
    """A row for each paper of KNOWN, in every column of corpus ids, and one more with what is planted."""
    columns, count = {}, len(KNOWN) + bool(planted)
    for column, declared in TABLES[name].columns.items():
        if declared.of_papers:
            ids = sorted([*KNOWN, planted.get(column, KNOWN[-1])])[:count]
            values = ids if declared.type == pa.int64() else [[1, paper] for paper in ids]
        elif declared.type in OF_TYPE:
            values = [OF_TYPE[declared.type]] * count
        else:
            values = [91, 92, 93, 94][:count]  # no ids, though they look alike
        if not declared.optional:
            kind = pa.list_(pa.float32(), 2) if declared.type == VECTOR else declared.type
            columns[column] = pa.array(values, kind)
    write_table(path, name, pa.table(columns))


QUERIES, TWINS = "corpus/queries.parquet", "corpus/twins.parquet"


@pytest.fixture
def results(tmp_path):
    """A results folder with every table that the check is about, and the kept-out papers 90, 91 and 92."""
    write_queries(tmp_path / QUERIES, SPLITS)
    write_papers(tmp_path, dict.fromkeys(SPLITS, "A"))
    write_twins(tmp_path / TWINS, [])
    for name, file in FILES.items():
        write_rows(tmp_path / file, name)
    return tmp_path


def write_papers(results, titles, **columns):
    texts = {paper: (title, None) for paper, title in titles.items()}
    write_table(results / "corpus/papers/0.parquet", "papers", papers_table(texts, **columns))


def check(results, *tables, **changed):
    options = {"output": results / "corpus/leaks.parquet", "by_text": results / "corpus/leaks_by_text.parquet"}
    options |= {"memory_mb": 400, "threads": 1, **changed}
    check_leaks(tables, results=results, queries=results / QUERIES, **options)
    return read_table(results / "corpus/leaks.parquet", "leaks").to_pylist()


@pytest.mark.parametrize(("name", "column"), [("edges", "target"), ("training_documents", "title")])
def test_a_spoilt_page_of_a_table_is_named_before_it_is_searched(results, name, column):
    spoil_page(results / FILES[name], list(TABLES[name].columns).index(column), group=0)
    with pytest.raises(InputError, match=rf"{FILES[name]}: bytes .* do not match their checksum"):
        check(results)


def test_every_column_of_corpus_ids_is_looked_through_in_all_buckets(results):
    write_rows(results / "graph/g/edges/2.parquet", "edges")
    rows = check(results)
    assert "answers_of" not in rows[0]  # there is no oracle
    looked_through = [(row["table_name"], row["column_name"]) for row in rows]
    assert sorted(looked_through) == sorted((name, column) for name, columns in COLUMNS.items() for column in columns)
    edges = [row for row in rows if row["table_name"] == "edges"]
    found = [(row["path"], row["rows"], row["kept_out"], row["leaked"]) for row in edges]
    assert found == [("graph/g/edges", 6, 3, 0)] * 2


def test_a_column_that_is_said_to_hold_corpus_ids_is_declared_so():
    for table in TABLES.values():
        for name, column in table.columns.items():
            if "corpus id" in column.meaning and column.type in (pa.int64(), pa.list_(pa.int64())):
                assert column.of_papers, (table.name, name)


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


@pytest.mark.parametrize(
    ("targets", "said"),
    [([100, 100], r"1 \(100\)"), (range(100, 120), r"20 \(100, 101, 102, 103, 104, …\)")],
    ids=["one paper", "many"],
)
def test_a_paper_counts_once_however_often_it_leaks_and_few_are_named(results, targets, said):
    write_queries(results / QUERIES, dict.fromkeys(range(100, 120), "excluded"))
    rows = [(source, target, 1.0) for source, target in enumerate(targets)]
    write_tuples(results / FILES["edges"], "edges", "source target weight", rows)
    with pytest.raises(InputError, match=rf"column target: {said}$"):
        check(results)


def test_tables_that_are_named_are_looked_through_and_no_others(results):
    write_rows(results / "neighbours/e/neighbours/0.parquet", "neighbours", neighbour=92)
    rows = check(results, results / "graph/g/edges", results / "triplets/t/triplets.parquet")
    assert {row["path"] for row in rows} == {"graph/g/edges", "triplets/t/triplets.parquet"}
    with pytest.raises(InputError, match="corpus: is not the file or folder of a table of papers"):
        check(results, results / "corpus")


SENTENCES = {"cites a held-out one": (1, [2, 90]), "is of an excluded one": (91, [1]), "names none": (1, [2, 3])}


def write_contexts(results: Path) -> dict[str, int]:
    ids = {words: text_id(words, None, is_query=True) for words in SENTENCES}
    for bucket in (0, 1):
        rows = [(citing, ids[words], cited, words) for words, (citing, cited) in SENTENCES.items()]
        rows = sorted(row for row in rows if (row[0] == 1) == bool(bucket))
        write_tuples(results / f"corpus/contexts/{bucket}.parquet", "contexts", "citing context cited sentence", rows)
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
    paths = {"results": "", "queries": QUERIES, "output": "corpus/leaks.parquet", "by-text": "corpus/by_text.parquet"}
    options = [f"--{name}={results / path}" for name, path in paths.items()]
    result = CliRunner().invoke(app, ["corpus", "leaks", *options, "--memory-mb=400", "--threads=1"])
    assert result.exit_code == 0, result.output
    assert "12 tables checked, 25 columns of corpus ids: none of the 3 papers" in result.stderr


@pytest.mark.parametrize("split", ["holdout", "excluded", "holdout-by-time"])
def test_a_twin_of_a_paper_that_is_held_out_or_excluded_is_reported_wherever_it_is(results, split):
    write_queries(results / QUERIES, {1: "train", 90: split})
    write_twins(results / TWINS, [(50, 90), (3, 4)])
    check(results)
    write_rows(results / FILES["training_documents"], "training_documents", corpusid=50)
    with pytest.raises(InputError, match=r"documents/0\.parquet .* column corpusid: 1 \(50, a twin of 90\)$"):
        check(results)


def test_a_paper_that_is_kept_out_for_its_year_alone_may_have_a_twin_in_training(results):
    write_queries(results / QUERIES, {1: "train", 90: "later"})
    write_twins(results / TWINS, [(1, 90)])
    assert read_in_training(results)["split", "later"] == (1, 0, 1, 0, 0, ["90: A"])


def test_a_paper_that_stands_for_a_work_may_be_read_if_all_its_twins_are_excluded(results):
    write_twins(results / TWINS, [(1, 91), (50, 92)])
    with pytest.raises(InputError, match="a twin of 91"):
        check(results)
    check(results, without_twins=True)
    write_twins(results / TWINS, [(91, 150)])
    write_rows(results / FILES["training_documents"], "training_documents", corpusid=150)
    with pytest.raises(InputError, match=r"1 \(150, a twin of 91\)"):
        check(results, without_twins=True)


def test_a_paper_from_the_cut_on_is_found_though_no_table_says_that_it_is_kept_out(results):
    dates = {"year": [2019, None, 2020, 2021], "date": [None, None, date(2020, 6, 30), None]}
    write_papers(results, {1: "A", 2: "B", 50: "C", 60: "D"}, **dates)
    write_rows(results / FILES["training_documents"], "training_documents", corpusid=50)
    for later in (2021, "2020-07-01"):
        check(results, holdout_from=later)
    for cut in (2020, "2020-06-30"):
        with pytest.raises(InputError, match=r"documents/0\.parquet .* column corpusid: 1 \(50\)$"):
            check(results, holdout_from=cut)


MAPS, DEEP = "Maps of the deep sea", "Deep learning"


def read_in_training(results, documents=(), **changed):
    """What is found by id, by twin, by title and by a common title, and the examples, by kind and name."""
    check(results, documents=documents, **changed)
    rows = read_table(results / "corpus/leaks_by_text.parquet", "leaks_by_text").to_pylist()
    return {(row.pop("kind"), row.pop("name")): tuple(row.values()) for row in rows}


def write_read(results, titles, queries=(1,), name="t"):
    """A set of training that reads these papers and texts, by their titles, with these queries."""
    rows = [(paper, titles[paper], None) for paper in sorted(titles)]
    write_tuples(
        results / f"triplets/{name}/documents/0.parquet", "training_documents", "corpusid title abstract", rows
    )
    rows = [(query, [1], [1]) for query in queries]
    write_tuples(results / f"triplets/{name}/examples.parquet", "training_examples", "query positives negatives", rows)


def test_titles_of_kept_out_papers_are_found_and_common_ones_counted_apart(results):
    great, report = "Of great things", "Report of the year"
    write_queries(results / QUERIES, {**SPLITS, 95: "holdout"})
    write_papers(results, {1: "A", 2: "B", 90: MAPS, 91: DEEP, 92: report, 95: great})
    common = dict.fromkeys(range(30, 35), report)  # with paper 92, six papers have this title
    write_read(results, {1: "A", 5: "maps, of the <i>Deep</i> Sea!", 6: DEEP, 7: great, -9: great, **common})
    found = read_in_training(results)
    assert found["split", "holdout"] == (2, 0, 0, 2, 0, [f"90: {MAPS}", f"95: {great}"])
    assert found["split", "excluded"] == (2, 0, 0, 0, 2, [])


def test_validation_queries_are_looked_for_among_the_queries_of_training_alone(results):
    write_papers(results, {1: "A", 2: MAPS})
    write_read(results, {1: "A", 2: MAPS, 5: MAPS})
    assert read_in_training(results)["split", "validation"] == (1, 0, 0, 0, 0, [])
    write_read(results, {1: "A", 2: MAPS, 5: MAPS}, queries=(1, 5))
    assert read_in_training(results)["split", "validation"] == (1, 0, 0, 1, 0, [f"2: {MAPS}"])
    write_twins(results / TWINS, [(2, 5)])
    assert read_in_training(results)["split", "validation"] == (1, 0, 1, 0, 0, [f"2: {MAPS}"])
    write_read(results, {1: "A", 2: MAPS}, queries=(2,))
    assert read_in_training(results)["split", "validation"] == (1, 1, 0, 0, 0, [f"2: {MAPS}"])


def test_documents_of_benchmarks_are_found_by_id_by_twin_and_by_title_whatever_their_ids(results):
    write_read(results, {1: "A", 5: MAPS, 6: "Another old paper", -7: "Brought by a set"})
    write_twins(results / TWINS, [(6, 60)])
    of_s2 = {"5": None, "60": None, "70": MAPS, "8": "maps"}
    of_beir = {"5": "x y z", "MED-1": "Brought by a set", "q": MAPS, "MED-2": MAPS}
    documents = [
        write_documents(results / "evaluation/s2/documents.parquet", of_s2),
        write_documents(results / "evaluation/beir/documents.parquet", of_beir, ["q"]),
        results / "corpus/document_papers/beir.parquet",
    ]
    columns = "document corpusid matched_by has_record"
    write_tuples(documents[2], "document_papers", columns, [("MED-2", 6, "text", True)])
    found = read_in_training(results, documents)
    assert found["benchmark", "s2"] == (4, 1, 1, 1, 0, [f"70: {MAPS}", "60", "5"])
    assert found["benchmark", "beir"] == (3, 1, 0, 1, 0, ["MED-1: Brought by a set", f"MED-2: {MAPS}"])


@pytest.mark.parametrize(("papers", "by_title_and_common"), [(5, (1, 0)), (6, (0, 1))])
def test_a_title_of_five_papers_and_of_a_document_is_not_too_common(results, papers, by_title_and_common):
    documents = write_documents(results / "evaluation/beir/documents.parquet", {"MED-1": MAPS})
    write_read(results, {1: "A", **dict.fromkeys(range(30, 30 + papers), MAPS)})
    assert read_in_training(results, [documents])["benchmark", "beir"][3:5] == by_title_and_common


def test_what_an_oracle_reads_on_purpose_is_not_compared(results):
    documents = write_documents(results / "evaluation/beir/documents.parquet", {"MED-2": MAPS})
    write_read(results, {-7: MAPS}, name="o")
    assert read_in_training(results, [documents])["benchmark", "beir"][3] == 1
    assert read_in_training(results, [documents], oracles='{"o": ["beir"]}')["benchmark", "beir"][3] == 0


def found_in(path, titles):
    documents = write_documents(path.parent / "evaluation/beir/documents.parquet", titles)
    output = path.parent / "found.parquet"
    compare_texts([path], documents=[documents], output=output, memory_mb=400, threads=1)
    [row] = read_table(output, "leaks_by_text").to_pylist()
    return [*row.values()]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "json.gz"])
def test_published_triplets_and_other_texts_are_compared_with_benchmarks(tmp_path, ending):
    given = (
        [("query", MAPS), ("pos", "Never in a benchmark"), ("neg", DEEP)],
        [("query", MAPS), ("pos", "A"), ("neg", "B")],
    )
    rows = [
        {role: {"corpus_id": n, "title": title, "abstract": None} for n, (role, title) in enumerate(row)}
        for row in given
    ]
    path = tmp_path / f"train.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        lines = "\n".join(json.dumps(row) for row in rows).encode()
        path.write_bytes(gzip.compress(lines) if ending.endswith("gz") else lines)
    titles = {"a": MAPS.upper(), "b": DEEP, "c": "Of something else", "d": None}
    assert found_in(path, titles) == ["benchmark", "beir", 4, 0, 0, 1, 1, [f"a: {MAPS.upper()}"]]


def test_objects_in_lists_are_compared_as_well(tmp_path):
    row = {"query": {"title": "A query of today"}, "pos": [{"title": "B"}, {"title": MAPS}], "neg": [{"title": DEEP}]}
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    titles = {"a": MAPS, "b": DEEP, "c": "A query of today", "d": "Of something else"}
    found = ["benchmark", "beir", 4, 0, 0, 2, 1, [f"a: {MAPS}", "c: A query of today"]]
    assert found_in(tmp_path / "train.jsonl", titles) == found


def test_a_passage_without_a_title_is_found_by_its_text(results):
    titles, texts = dict.fromkeys(["MED-1", "MED-2", "MED-3"]), {"MED-1": "a passage of some words", "MED-2": "another"}
    documents = write_documents(results / "evaluation/beir/documents.parquet", titles, abstracts=texts)
    write_read(results, {text_id(None, "a passage of some words", is_query=False): "", 1: "A"})
    assert read_in_training(results, [documents])["benchmark", "beir"] == (3, 1, 0, 0, 0, ["MED-1"])


def test_a_file_without_titles_is_refused(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}')
    with pytest.raises(InputError, match=r"rows\.jsonl: no column is a title or an object with one"):
        compare_texts([tmp_path / "rows.jsonl"], documents=[], output=tmp_path / "o", memory_mb=400, threads=1)
