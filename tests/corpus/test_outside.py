"""Cited ids that are no paper are counted by file, and stop a run where no real corpus has as many."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from tests.corpus.made import LIMITS, Made, left_out, make_corpus
from tests.spoiling import spoil_page
from typer.testing import CliRunner

from cocite.cli import app
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.outside import check_cited, count_cited

Write = Callable[[dict[str, list[tuple[str, str]]]], dict[str, Any]]
PAPERS = [f"10.1/p{number}" for number in range(200)]


def ring(count: int, form: str = "{}", citing: str = "{}") -> list[tuple[str, str]]:
    """Citations from papers to papers, of which the cited ones, or both, are written in a form."""
    return [(citing.format(PAPERS[at % 200]), form.format(PAPERS[(at + 1 + at // 200) % 200])) for at in range(count)]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(files: dict[str, list[tuple[str, str]]], papers: list[str] = PAPERS) -> dict[str, Any]:
        pl.DataFrame({"id": papers}).write_csv(tmp_path / "papers.csv")
        for name, rows in files.items():
            pl.DataFrame(rows, schema=["citing", "cited"], orient="row").write_csv(tmp_path / f"citations-{name}.csv")
        columns = {"citing": "citing", "cited": "cited"}
        return {
            **{"source": "table", "ids": "string"},
            "papers": {"files": str(tmp_path / "papers.csv"), "columns": {"id": "id"}},
            "citations": {"files": f"{tmp_path}/citations-*.csv", "columns": columns},
        }

    return write


def check(made: Made, outside: float = 0.999) -> dict[str, int]:
    """Count and judge the cited ids; what the omissions have."""
    corpus = made.results / "corpus"
    names = corpus / "names.parquet" if (corpus / "names.parquet").exists() else None
    ingested = {table: corpus / "ingested" / table for table in ("papers", "citations")}
    places = {"manifest": corpus / "manifest.json", "output": corpus / "cited_ids.parquet"}
    count_cited(**places, **ingested, names=names, **LIMITS)
    check_cited(corpus / "cited_ids.parquet", outside=outside, omissions=corpus / "omissions/cited.parquet")
    omissions = left_out(corpus / "omissions/cited.parquet", zero=True)
    return {reason.partition("citations-")[2]: count for reason, count in omissions.items()}


def test_cited_ids_that_are_no_paper_are_counted_and_logged_by_file(write, tmp_path, capsys):
    outside = [("10.1/p0", f"elsewhere {number}") for number in range(30)]
    corpus = write({"a": ring(70) + outside, "b": ring(50), "c": [("nobody", "elsewhere 1"), ("nobody", "10.1/p1")]})
    found = check(make_corpus(tmp_path / "made", corpus))
    assert found == {
        "a.csv: 30.0% of 100 cited ids": 30,
        "b.csv: 0.0% of 50 cited ids": 0,
        "c.csv: 50.0% of 2 cited ids": 1,
    }
    assert "citations-a.csv: 30.0% of 100 cited ids are no paper." in capsys.readouterr().err
    rows = read_table(tmp_path / "made/corpus/cited_ids.parquet", "cited_ids").to_pylist()
    counts = [(row["citations"], row["touching"], row["inside"]) for row in rows]
    assert counts == [(100, 100, 70), (50, 50, 50), (2, 1, 1)]
    assert (rows[0]["outside_example"], rows[0]["paper_example"]) == ("elsewhere 0", "10.1/p0")


FORMS = ["https://doi.org/{}", "doi:{}", "{}v1", "{}.", "<{}>", "DOI {}", "{}​", "paper/{}.pdf", "doi:{}"]


@pytest.mark.parametrize("form", [*zip(FORMS, [True, False] * 4 + [True], strict=True)])
def test_a_file_whose_ids_are_written_otherwise_stops_although_the_others_match(form, write, tmp_path):
    odd = ring(80, form[0], form[0] if form[1] else "{}")
    made = make_corpus(tmp_path / "made", write({"a": ring(80), "b": odd, "c": ring(80)}))
    with pytest.raises(InputError, match=r"citations-b\.csv: 100\.0% of 80 cited ids are no paper.*corpus\.outside: 1"):
        check(made)
    assert check(made, 1)["b.csv: 100.0% of 80 cited ids"] == 80


def test_of_several_files_the_one_with_a_malformed_row_is_named(write, tmp_path):
    with pytest.raises(InputError, match=r"80 of 240 lines are malformed.*citations-b\.csv, line 2: "):
        make_corpus(tmp_path / "made", write({"a": ring(80), "b": ring(80, "'{}'"), "c": ring(80)}))


def test_a_corpus_none_of_whose_cited_ids_is_a_paper_stops_however_small_it_is(write, tmp_path):
    made = make_corpus(tmp_path / "made", write({"a": ring(2, "doi:{}"), "b": ring(1, "doi:{}")}))
    said = r"all files: 100\.0% of 3 cited ids.* A cited id is 'doi:10\.1/p1', a paper's"
    with pytest.raises(InputError, match=said):
        check(made)


def test_few_citations_that_all_lead_outside_say_nothing_of_their_file(write, tmp_path):
    few = [("10.1/p1", f"elsewhere {number}") for number in range(40)]
    elsewhere = [("10.1/p1", f"far {number}") for number in range(1000)]
    # With 8% inside elsewhere, as in synergy, a paper with 40 references would have three inside.
    made = make_corpus(tmp_path / "made", write({"a": ring(80) + elsewhere, "b": few}))
    assert check(made)["b.csv: 100.0% of 40 cited ids"] == 40


def test_a_table_of_all_citations_beside_the_papers_of_a_field_is_no_fault(write, tmp_path):
    others = [(f"x{number}", f"x{number + 1}") for number in range(50_000)]
    made = make_corpus(tmp_path / "made", write({"a": others + ring(20), "b": others + ring(10)}))
    assert check(made)["b.csv: 100.0% of 50,010 cited ids"] == 50_000


@pytest.mark.parametrize("table", ["ingested/papers/0", "ingested/citations/1", "names"])
def test_a_spoilt_page_is_named(table, write, tmp_path):
    made = make_corpus(tmp_path / "made", write({"a": ring(30), "b": ring(20)}))
    path = made.results / f"corpus/{table}.parquet"
    columns = pq.read_schema(path).names
    spoil_page(path, next(columns.index(name) for name in ("corpusid", "cited") if name in columns))
    with pytest.raises(InputError, match=rf"{table}\.parquet"):
        check(made)


def test_whole_numbers_are_counted_as_well(write, tmp_path):
    papers = [str(number) for number in range(100)]
    corpus = write({"a": [("1", "2"), ("2", "200")], "b": [("3", "4")]}, papers) | {"ids": "integer"}
    assert check(make_corpus(tmp_path / "made", corpus))["a.csv: 50.0% of 2 cited ids"] == 1


def plan(corpus: dict[str, Any], folder: Path) -> str:
    config = folder / "my.yaml"
    config.write_text(yaml.safe_dump({"release": "mine", "corpus": corpus, "pathvars": {"results": str(folder / "r")}}))
    result = CliRunner().invoke(app, ["corpus", "plan", "--configfile", str(config)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("ids", ["integer", "string"])
def test_a_plan_shows_the_share_of_cited_ids_that_are_no_paper(ids, write, tmp_path):
    papers = [str(number) for number in range(200)]
    half = [(papers[at], papers[at + 1] if at % 2 else "7" * 9) for at in range(100)]
    said = plan(write({"a": half}, papers) | {"ids": ids}, tmp_path)
    assert "citations-a.csv: 50.0% of 100 cited ids are no paper" in said
    assert "would stop" not in said
    wrong = [(citing, "8" * 9) for citing, _ in half * 4]
    misread = plan(write({"a": half, "b": wrong}, papers) | {"ids": ids}, tmp_path)
    assert "The run would stop." in misread
    assert "citations-b.csv: 100.0% of 400" in misread


def test_a_plan_reads_lists_and_parquet_as_the_run_does(tmp_path):
    records = [{"id": number, "refs": [number + 1.0, 10.0**6]} for number in range(30)]
    (tmp_path / "papers.json").write_text(json.dumps(records, indent=1))
    pl.DataFrame(records).write_parquet(tmp_path / "papers.parquet")
    for name in ("papers.json", "papers.parquet"):
        table = {"files": str(tmp_path / name)}
        corpus = {
            **{"source": "table", "papers": table | {"columns": {"id": "id"}}},
            "citations": table | {"columns": {"citing": "id", "cited": "refs"}},
        }
        assert f"{name}: 51.7% of 60 cited ids are no paper" in plan(corpus, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("release", "share"), [("hci", "56.8%"), ("synergy", "91.8%")])
def test_real_corpora_do_not_stop(release, share, shared, tmp_path):
    def table(name, **columns):
        files = f"{shared}/data/releases/{release}/{name}/*.gz"
        return {"files": files, "format": "jsonl", "columns": columns}

    citations = table("citations", citing="citingcorpusid", cited="citedcorpusid")
    corpus = {"source": "table", "papers": table("papers", id="corpusid"), "citations": citations}
    said = plan(corpus, tmp_path)
    assert said.count("are no paper") == 4
    assert "would stop" not in said
    check(make_corpus(tmp_path / "made", corpus))
    rows = read_table(tmp_path / "made/corpus/cited_ids.parquet", "cited_ids").to_pylist()
    assert f"{1 - sum(row['inside'] for row in rows) / sum(row['citations'] for row in rows):.1%}" == share
