"""`cocite show`: what tables there are, what one holds, and what it holds of a paper."""

import csv
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.papers import papers_table
from tests.tools.builders import invoke, write_vectors

from cocite import cli
from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.core.tables import TABLES
from cocite.core.tables.files import write_table
from cocite.tools import contents
from cocite.tools.answers import Answer, as_text, print_answer

FLOWERS = "Flowers [of spring]"


@pytest.fixture
def show(results):
    """Runs the command on the results, and returns what it prints; raises what it raises."""
    return lambda *arguments: invoke("show", "--results", results, *arguments).stdout


@pytest.fixture
def rows(show):
    """The rows that the command prints for programs."""
    return lambda *arguments: json.loads(show(*arguments, "--format", "json"))


def test_every_table_is_listed_with_rows_size_columns_and_meaning(rows, results):
    listed = {row["table"]: row for row in rows()}
    assert set(listed) == {"papers", "citations", "cocitations", "neighbours", "triplets"}
    size = sum(path.stat().st_size for path in results.glob("graph/*/cocitations/*.parquet"))
    told = {"table": "cocitations", "rows": 5, "bytes": size, "meaning": TABLES["cocitations"].description}
    assert listed["cocitations"] == told | {"columns": ["graph", "paper", "other", "count", "strength"]}


def test_the_list_for_people_fits_a_terminal_and_loses_no_word(show, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    printed = show()
    assert max(map(len, printed.splitlines())) <= 80
    for word in f"{TABLES['papers'].description} reference_count".split():
        assert word in printed


def test_a_table_without_a_paper_shows_its_first_rows_or_its_columns_with_their_meanings(show):
    assert "dot" in show("neighbours").splitlines()[-1]
    printed = show("neighbours", "--columns")
    assert "1 is the nearest" in printed
    assert "the embedding whose table it is" in printed
    assert "dot" not in printed
    assert invoke("show", "neighbours", "--columns", "--results", "no-run").stdout == printed


def test_rows_can_be_chosen_and_ordered(rows):
    everything = rows("neighbours")
    found = rows("neighbours", "--where", "rank = 1 OR distance > 1", "--order", "neighbour DESC, query")
    expected = [row for row in everything if row["rank"] == 1 or row["distance"] > 1]
    assert found == sorted(expected, key=lambda row: (-row["neighbour"], row["query"]))
    assert rows("neighbours", "--of", "dot", "--where", "true OR true") == everything


def test_rows_have_a_line_each_in_the_terminal_and_what_is_left_out_is_named(show, monkeypatch):
    monkeypatch.setenv("COLUMNS", "64")
    monkeypatch.setenv("LINES", "9")
    lines = show("papers").splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 64
    notes = " ".join(lines)
    assert "Columns without values: " in notes
    assert "More columns, in a wider terminal or with --format json: " in notes
    named = set(re.findall(r"\w+", notes)) | set(lines[1].split())
    assert named >= set(TABLES["papers"].columns)


def test_an_answer_can_be_pasted_as_a_table_of_markdown_whose_rows_are_lines(show, capsys):
    lines = show("neighbours", "--format", "markdown").splitlines()
    assert lines[1:3] == ["| embedding | query | rank | neighbour | distance |", "| --- | --- | --- | --- | --- |"]
    assert lines[3].startswith("| dot | 2 | 1 | 3 | 0.25 |")
    print_answer(Answer("", ["a", "b"], [("x\n y|z", 1)]), "markdown")
    assert capsys.readouterr().out == "\n| a | b |\n| --- | --- |\n| x y\\|z | 1 |\n\n"


@pytest.mark.parametrize(
    ("about", "columns", "expected"),
    [
        ("cocitations --paper 2 --of all", "corpusid count year", [(1, 7, 2001), (3, 4, 2003), (4, 1, 2004)]),
        ("cocitations --paper 2 --of all", "title", [("Bees",), (FLOWERS,), ("Compilers",)]),
        ("cocitations --paper 2 --of all --limit 2", "corpusid", [(1,), (3,)]),
        ("neighbours --paper 2", "rank corpusid distance title", [(1, 3, 0.25, FLOWERS), (2, 1, 0.5, "Bees")]),
        ("triplets --paper 2", "positive_title negative_title", [(FLOWERS, "Loops")]),
        ("triplets --paper 2", "positive_rank negative_rank negative_kind", [(1, 9, "hard")]),
        ("citations --paper 2", "corpusid role", [(4, "citing"), (3, "citing")]),  # the influential one first
        ("citations --paper 5", "corpusid role", [(1, "cited")]),
        ("papers --where 'corpusid = 2'", "date title", [("2002-05-01", "Nectar")]),
    ],
)
def test_rows_about_a_paper_come_from_either_end_the_strongest_first_and_a_date_is_text(rows, about, columns, expected):
    assert [tuple(row[name] for name in columns.split()) for row in rows(*shlex.split(about))] == expected


def test_a_paper_is_shown_with_all_that_is_known_with_a_record_or_without(show, results):
    printed = show("papers", "--paper", "3")
    assert FLOWERS in printed
    assert "Abstract 3." in printed
    write_vectors(results / "encoder/model/seed-1/papers/0.parquet", {8: [0.5]})
    assert show("paper_embeddings", "--paper", "8").startswith("Paper 8, of which the corpus has no record")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("cocitations --paper 2", "several tables cocitations: choose one with --of all or few"),
        ("cocitations --paper 2 --of many", "no table cocitations of 'many'; --of can be all or few"),
        ("papers --paper 9", "no paper 9 in the corpus"),
        (f"papers --paper {2**63 - 1}", "no paper 9223372036854775807 in the corpus"),
        (f"papers --paper {'7' * 43}", f"{'7' * 43} is not a corpus id; it must be a whole number from 0 to 9,223,"),
        ("papers --paper Bees", "Bees is not a corpus id; it must be a whole number from 0"),
        ("papers --paper -1", "-1 is not a corpus id"),
        ("neighbours --paper 3", "(2003), is not in neighbours of embedding dot, which holds queries alone"),
        ("--paper 3", "Name a table"),
        ('""', "holds no table ; there are papers"),
        ("nosuch", "holds no table nosuch; there are papers, citations, cocitations"),
        ("paper", "holds no table paper; did you mean papers?"),
        ("PAPERS", "holds no table PAPERS; did you mean papers?"),
        ("couplings", "holds no table couplings yet; there are papers, citations, cocitations"),
        ("neighbour --columns", "There is no table neighbour; did you mean neighbours?"),
        ("neighbours --where 'runk = 1'", '--where or --order: …"runk" not found'),
        ("cocitations --paper 1 --where true", "leave --where, --order and --columns out"),
        ("--results nowhere", "nowhere does not exist; start a run"),
        (f"--results {__file__}", "test_show.py is no folder that can be read (Not a directory)"),
        (f"--results {Path(__file__).parent}", "holds no tables yet; start a run"),
    ],
)
def test_a_wrong_question_gets_a_sentence(show, arguments, message):
    with pytest.raises(InputError, match=re.escape(message).replace("…", ".*")):
        show(*shlex.split(arguments))


def test_a_table_that_was_made_a_moment_ago_is_shown_whatever_the_views_of_a_finished_run_say(rows, results):
    (results / "cocite.duckdb").write_bytes(b"no database" * 1000)
    assert len(rows()) == 5
    write_vectors(results / "encoder/model/seed-1/papers/0.parquet", {2: [0.5]})
    assert rows("paper_embeddings") == [{"model": "model", "seed": 1, "corpusid": 2, "vector": [0.5]}]


def test_a_run_that_is_not_finished_is_shown_as_far_as_it_is(rows, show, results):
    (results / "cocite.duckdb").unlink()
    for folder in ("corpus", "neighbours", "triplets"):
        shutil.rmtree(results / folder)
    assert [row["table"] for row in rows()] == ["cocitations"]
    found = rows("cocitations", "--paper", "1", "--of", "few")
    assert [(row["corpusid"], row["title"]) for row in found] == [(2, None)]
    assert show("cocitations", "--paper", "1", "--of", "few").startswith("Paper 1, whose title is not known without")


def test_the_folder_that_is_named_is_shown_and_not_the_one_that_it_was_copied_from(rows, results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "copy")
    shutil.rmtree(results / "neighbours")
    assert len(rows("neighbours", "--results", str(copied))) == 2
    (tmp_path / "config.yaml").write_text(f"pathvars: {{results: {copied}}}\n")
    shown = invoke("show", "neighbours", "--configfile", tmp_path / "config.yaml", "--format", "json").stdout
    assert len(json.loads(shown)) == 2


def test_a_broken_file_is_named_and_everything_else_is_shown(results):
    broken = results / "graph/few/cocitations/0.parquet"
    broken.write_bytes(broken.read_bytes()[:100])
    outcome = invoke("show", "--results", results, "--format", "json")
    assert {row["table"]: row["rows"] for row in json.loads(outcome.stdout)}["cocitations"] == 4
    assert outcome.stderr.startswith(f"Left out: {broken}: not a readable Parquet file")
    assert len(outcome.stderr.splitlines()) == 1


def test_broken_files_lead_to_the_command_that_names_them(show, results):
    path = results / "corpus/citations/0.parquet"
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 4] = bytes(len(content) // 4 - 4)
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"cocite check --results {results}` names what is broken"):
        show("citations")
    (results / "neighbours/dot/neighbours/0.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=f"Table neighbours cannot be read; .*check --results {results}` names"):
        show("neighbours")


def test_a_table_whose_files_are_replaced_meanwhile_is_left_out_and_the_others_are_shown(results, monkeypatch):
    """Its files are there when they are looked for, and gone a moment later."""
    look = contents.files_by_place

    def look_and_remove(results, table, config):
        found = look(results, table, config)
        if table.name == "neighbours":
            shutil.rmtree(results / "neighbours")
        return found

    monkeypatch.setattr(contents, "_readable", lambda groups, _: groups)
    monkeypatch.setattr(contents, "files_by_place", look_and_remove)
    outcome = invoke("show", "--results", results, "--format", "json")
    assert [row["table"] for row in json.loads(outcome.stdout)] == ["papers", "citations", "cocitations", "triplets"]
    assert outcome.stderr.startswith("Left out: table neighbours, a file of which is broken or being replaced (")


def test_names_of_folders_may_be_any(rows, results):
    shutil.copytree(results / "graph/few", results / "graph/it's [a] *few")
    assert len(rows("cocitations", "--of", "it's [a] *few")) == 1


def test_a_stage_that_may_not_be_read_is_named(results, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name != "graph")  # root may read anything
    said = invoke("show", "--results", results).stderr
    assert said == f"Left out: {results}/graph: its permissions do not let you read it.\n"


def test_a_broken_record_of_the_configuration_is_named(show, results):
    for content in ("{", "[]", "7"):
        (results / "configuration.yaml").write_text(content)
        with pytest.raises(InputError, match=r"configuration\.yaml"):
            show()


def test_csv_holds_the_columns_as_they_are_named(show):
    read = list(csv.DictReader(io.StringIO(show("cocitations", "--paper", "1", "--of", "all", "--format", "csv"))))
    assert [(row["corpusid"], row["count"], row["strength"]) for row in read] == [("3", "9", ""), ("2", "7", "")]


def test_rows_of_too_many_columns_become_records(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    columns = [f"column_{number}" for number in range(9)]
    print_answer(Answer(heading="Wide", columns=columns, rows=[["a value of some length"] * 9]), "text")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[0] == "column_0"
    assert lines[9].split()[0] == "column_8"


def test_values_read_well():
    values = [None, True, 0.123456, 12, ["Biology", "Art"], [0.5, 0.25, 0.125, 1.0]]
    texts = ["–", "yes", "0.1235", "12", "Biology, Art", "0.5, 0.25, 0.125, … (4)"]
    assert [as_text(value) for value in values] == texts


HOSTILE = {  # titles that a terminal obeys, or that a spreadsheet computes
    1: "\x1b]0;owned\x07Bees\x1b[2J",
    2: "Nectar\x9b31m \u202eEVIL",
    3: "Flowers \x08\x7f",
    4: '=HYPERLINK("http://evil","x")',
    5: "@SUM(A1)\r\n+1",
}


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown"])
@pytest.mark.parametrize("about", [["papers"], ["cocitations", "--paper", "1", "--of", "all"]])
def test_no_title_reaches_the_terminal_as_anything_but_text(results, show, form, about):
    for bucket in (0, 1):
        texts = {paper: (title, None) for paper, title in HOSTILE.items() if paper % 2 == bucket}
        write_table(results / f"corpus/papers/{bucket}.parquet", "papers", papers_table(texts))
    printed = show(*about, "--format", form)
    assert [each for each in printed if not each.isprintable() and each != "\n"] == []
    if form == "json" and about == ["papers"]:
        assert {row["corpusid"]: row["title"] for row in json.loads(printed)} == HOSTILE
    if form == "csv" and about == ["papers"]:
        titles = [row["title"] for row in csv.DictReader(io.StringIO(printed))]
        assert sorted(titles)[:2] == ['\'=HYPERLINK("http://evil","x")', "'@SUM(A1)\\r\n+1"]
    if form == "table" and about != ["papers"]:
        assert r"\x1b]0;owned\x07Bees\x1b[2J" in printed  # the heading


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\t=1", "\r=1", "＝1", "－1"])
def test_what_a_spreadsheet_computes_begins_with_an_apostrophe(text, capsys):
    print_answer(Answer("", ["number", "text"], [[-1.5, text]]), "csv")
    number, _, cell = capsys.readouterr().out.splitlines()[1].partition(",")
    assert (number, cell[0]) == ("-1.5", "'")


def test_an_error_and_a_report_are_printed_without_characters_that_a_terminal_obeys(monkeypatch, capsys):
    def fail():
        report("Left out: \x1b[2J")
        raise InputError("Paper 1, “\x1b]0;owned\x07”, is not there.")

    monkeypatch.setattr(cli, "app", fail)
    assert cli._run() == 1
    assert capsys.readouterr().err == "Left out: \\x1b[2J\nError: Paper 1, “\\x1b]0;owned\\x07”, is not there.\n"
