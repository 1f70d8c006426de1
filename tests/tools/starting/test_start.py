"""`cocite start`: what it writes for tables and for questions, what it asks, and what it refuses."""

import csv
import random
from collections import Counter
from pathlib import Path
from unittest.mock import ANY, Mock

import pandas as pd
import pytest
from tests.corpus.test_graph_query import made
from tests.corpus.test_works_query import WORKS
from tests.releases.graph_server import GraphCatalogue, serve_graph
from tests.releases.works_server import WorksCatalogue, serve_works
from tests.terminal import answer
from tests.tools.builders import invoke

from cocite.config.configuration import resolve
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError
from cocite.tools.first_configuration import of_query
from cocite.tools.machine import cost_of_papers

EXPANDED = {"expand": {"references": 1}}
PAPERS = ["--papers", "papers.csv", "--citations", "citations.csv"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # what is not on this machine cannot be reached
    return tmp_path


def write_rows(name, header, rows, delimiter=","):
    with Path(name).open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])


def write_corpus(papers, *, references=7, years=range(2000, 2020), named="10.1/{}", abstracts=1.0):
    """Papers of random years that cite earlier ones and an unknown one; their years, citations and who has a text."""
    drawn = random.Random(papers)
    year = {named.format(paper): drawn.choice(years) if years else None for paper in range(papers)}
    cited = {
        (paper, other)
        for paper in year
        for other in drawn.sample(list(year), min(3 * references, papers))
        if paper != other and (not years or year[other] < year[paper])
    }
    texts = {paper: "Text." if drawn.random() < abstracts else "" for paper in year}
    write_rows("papers.csv", ["Id", "Title", "Abstract", "Published"], ([p, "On", texts[p], year[p]] for p in year))
    write_rows("citations.csv", ["from", "to"], [*sorted(cited), *((paper, named.format(10**6)) for paper in year)])
    return year, cited, {paper for paper, text in texts.items() if text}


def started(*options, file="my.yaml"):
    """What is said, and the configuration that is written, which can be run."""
    said = invoke("start", file, *options).output
    written = written_configuration(Path(file))
    resolve(written)
    return said, written


@pytest.mark.parametrize("forms", [("jsonl", "csv"), ("csv", "jsonl"), ("parquet", "csv"), ("csv", "parquet")])
def test_tables_may_have_different_forms_and_a_doi_is_known_as_one_where_it_is_the_id(forms):
    write_corpus(200)
    papers, citations = (pd.read_csv(f"{name}.csv", dtype=str) for name in ("papers", "citations"))
    papers = papers.rename(columns={"Id": "DOI"})
    writers = {"csv": lambda of, name: of.to_csv(name, index=False), "parquet": pd.DataFrame.to_parquet}
    writers["jsonl"] = lambda of, name: of.to_json(name, orient="records", lines=True)
    for name, form, of in zip(("papers", "citations"), forms, (papers, citations), strict=True):
        writers[form](of, f"{name}.{form}")
    written = started("--papers", f"papers.{forms[0]}", "--citations", f"citations.{forms[1]}")[1]
    columns = written["corpus"]["papers"]["columns"]
    assert (columns["id"], columns["doi"]) == ("DOI", "DOI")


def test_time_is_cut_where_a_tenth_of_the_papers_is_later_and_all_that_can_be_are_held_out():
    year, cited, with_text = write_corpus(900, abstracts=0.8)
    said, written = started(*PAPERS)

    def held_out(cut):
        earlier = Counter(paper for paper, other in cited if other in with_text and year[other] < cut)
        return sum(year[paper] >= cut and earlier[paper] >= 5 for paper in with_text)

    share = {cut: sum(when >= cut for when in year.values()) / len(year) for cut in range(2000, 2020)}
    cut = max(cut for cut in share if 0.1 <= share[cut] <= 0.3 and held_out(cut) >= 100)
    assert (written["queries"]["holdout_from"], written["queries"]["holdout"]) == (cut, held_out(cut))
    assert written["benchmarks"] == {"later": {"kind": "holdout", "search": True, "by_time": True, "selection": 0.3}}
    assert written["corpus"]["ids"] == "string"
    assert f"900 papers, {len(with_text):,} with title and abstract; {len(cited):,} citations among them" in said
    assert "--configfile my.yaml --replace-workflow-config all" in said


SEARCH = {"kind": "holdout", "search": True}


@pytest.mark.parametrize(
    ("papers", "years", "benchmarks", "sentence"),
    [
        (150, range(2000, 2020), [{**SEARCH, "by_time": True}], "so the index has the weights that come with CoCite"),
        (250, None, [SEARCH], "No test by time: no year has 30 papers"),
        (40, range(2000, 2020), [], "fewer than the 30 for a test and an index"),
    ],
)
def test_a_small_corpus_is_told_what_it_lacks_and_gets_what_works(papers, years, benchmarks, sentence):
    write_corpus(papers, years=years)
    said, written = started(*PAPERS)
    assert sentence in said
    assert [*written.get("benchmarks", {}).values()] == benchmarks
    assert ("indexes" in written, "--embed" in said) == (bool(benchmarks), not benchmarks)


@pytest.mark.parametrize(("papers", "batch", "is_told"), [(30, 64, True), (300, 64, False), (1500, 1024, False)])
def test_few_citations_are_learned_in_small_batches_and_very_few_are_named(papers, batch, is_told):
    _, cited, _ = write_corpus(papers)
    assert (len(cited) < 300, len(cited) < 5000) == (is_told, batch == 64)
    said, written = started(*PAPERS)
    assert written["models"]["static"]["batch_size"] == batch
    assert (f"{len(cited)} citations teach little: from 300 on" in said) == is_told


def test_whole_numbers_stay_ids_and_titles_do_where_abstracts_are_rare():
    write_corpus(300, named="{}", abstracts=0.2)
    _, written = started(*PAPERS)
    assert "ids" not in written["corpus"]
    assert written["corpus"]["allow_missing_abstract"] is True


def test_other_delimiters_columns_by_name_and_references_in_the_table_of_papers_are_read():
    rows = [[f"p{paper}", 'On; "maps"', "Text", str([f"p{paper - step}" for step in (1, 2)])] for paper in range(2, 60)]
    write_rows("all.csv", ["Paper ID", "Heading", "Abstract", "References"], rows, delimiter=";")
    _, written = started("--papers", "all.csv", "--column", "title=Heading")
    corpus = written["corpus"]
    assert corpus["papers"]["columns"] == {"id": "Paper ID", "title": "Heading", "abstract": "Abstract"}
    assert corpus["citations"]["columns"] == {"citing": "Paper ID", "cited": "References"}
    assert corpus["papers"]["format"] == corpus["citations"]["format"] == {"kind": "csv", "delimiter": ";"}


@pytest.mark.parametrize("sign", [";", ",", "|", " "])
def test_references_in_one_cell_and_dois_in_two_cases_are_known_and_years_that_are_none_are_told(sign):
    papers = [f"10.1/P{number}" for number in range(60)]
    cited = [sign.join(papers[max(place - 2, 0) : place]).lower() for place in range(60)]
    years = ["01/03/2001", "3000", *["2001 Jan"] * 58]
    rows = [[paper, "On", "Scopus", *more] for paper, *more in zip(papers, years, cited, strict=True)]
    write_rows("all.csv", ["DOI", "Title", "Source", "Year", "References"], rows)
    said, written = started("--papers", "all.csv")
    corpus = written["corpus"]
    assert corpus["citations"]["columns"] == {"citing": "DOI", "cited": {"column": "References", "separator": sign}}
    assert corpus["papers"]["lowercase"] is corpus["citations"]["lowercase"] is True
    assert "117 citations among them of 117" in said
    assert "2 years cannot be read, such as '01/03/2001'" in said


@pytest.mark.parametrize(
    ("filters", "cut"),
    [
        ("primary_topic.id:T10102,publication_year:2005-2016", 2014),
        ("publication_year:2011|2012,type:article", 2010),
        ("from_publication_date:1990-01-01,to_publication_date:2013-05-01", 2011),
        ('title.search:"a # b: c",publication_year:2015', 2013),
    ],
)
def test_works_of_openalex_are_cut_two_years_before_their_last(filters, cut):
    said, written = started("--filter", filters, "--search", "citing: papers")
    assert written["corpus"] == {"source": "openalex", "filter": filters, "search": "citing: papers", **EXPANDED}
    assert written["queries"]["holdout_from"] == cut
    assert "corpus plan --configfile my.yaml" in said


@pytest.fixture
def topics(monkeypatch):
    """OpenAlex's API with some works and two topics."""
    catalogue = WorksCatalogue(WORKS)
    catalogue.topics = {"T10102": "Scientometrics and bibliometrics research", "T0": "Scientometrics of art"}
    monkeypatch.setenv("OPENALEX_API_KEY", "a-key")
    with serve_works(catalogue, key="a-key") as api:
        monkeypatch.setattr("cocite.corpus.sources.openalex.API", api)
        yield


@pytest.mark.usefixtures("topics")
def test_a_topic_is_looked_up_by_its_name_and_the_nearest_are_named():
    said, _ = started("--topic", "scientometrics of ART", "--filter", "language:en")
    assert "T0 is the topic Scientometrics of art." in said
    for topic, sentence in {
        "scientometrics and bibliometrics RESEARCH": r"No work of OpenAlex matches filter: primary_topic\.id:T10102",
        "scientometrics": "the nearest are T10102: Scientometrics and .*; T0: Scientometrics of art, 1,",
        "zebras": "No topic of OpenAlex is named 'zebras'; name another one, or search",
    }.items():
        with pytest.raises(InputError, match=sentence):
            invoke("start", "other.yaml", "--topic", topic)
        assert not Path("other.yaml").exists()


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize(
    ("choice", "corpus"), [("T0", {"filter": "primary_topic.id:T0"}), ("words", {"search": "scientometrics"})]
)
def test_one_of_the_nearest_topics_is_chosen_or_the_words_are_searched_for(choice, corpus):
    ask = Mock(return_value=choice)
    found = of_query({"topic": "scientometrics"}, ask)
    ask.assert_called_once_with(ANY, ["T10102", "T0", "words"], "T10102")
    assert found.settings == {"source": "openalex", **corpus, **EXPANDED}


def said_of_cost(said):
    return next(line for line in said.splitlines() if "of the API, " in line or "not known yet" in line)


@pytest.mark.usefixtures("topics")
def test_what_a_query_costs_is_told_where_the_api_answers(monkeypatch):
    count = sum(bool(each["primary_topic"]) for each in WORKS)
    said, _ = started("--topic", "scientometrics of art")
    assert said_of_cost(said).startswith(f"{count} works match: about 2 calls of the API, $0.00 by its price list")
    assert "expand.references adds perhaps" in said_of_cost(said)
    assert "On the disk, it takes about" in said
    monkeypatch.setattr("cocite.corpus.release.query.USUAL_LIMIT", count - 1)
    said, _ = started("--topic", "scientometrics of art", file="many.yaml")
    assert f"{count} works of OpenAlex match filter: primary_topic.id:T0, more than corpus.limit" in said
    monkeypatch.delenv("OPENALEX_API_KEY")
    said, _ = started("--filter", "primary_topic.id:T0", file="no-key.yaml")
    assert said_of_cost(said) == "What it costs is not known yet: OPENALEX_API_KEY is not set."


def test_what_a_query_of_semantic_scholar_costs_is_told():
    said, written = started("--search", "paper", "--api", "semantic-scholar")
    assert "not known yet: https://api.semanticscholar.org/graph/v1 cannot be reached" in said_of_cost(said)
    papers = made()
    with serve_graph(GraphCatalogue(papers)) as api:
        cost, disk = cost_of_papers(resolve(written | {"corpus": written["corpus"] | {"api": api}}))
    assert cost.startswith(f"{sum('Paper' in each['title'] for each in papers)} papers match: about 2 calls of the API")
    assert disk.startswith("On the disk, it takes about")


@pytest.mark.parametrize("api", ["openalex", "semantic-scholar"])
def test_a_list_of_papers_and_words_are_looked_up_by_either_api(api):
    Path("papers.bib").write_text("@article{a, doi = {10.1000/a}}")
    source = "openalex" if api == "openalex" else "semantic-scholar-api"
    said, written = started("--list", "papers.bib", "--api", api)
    assert written["corpus"] == {"source": source, "list": "papers.bib", **EXPANDED}
    Path("my.yaml").unlink()
    answer("start", [("files of your own?", api), ("Which papers?", "papers.bib")])
    assert written_configuration(Path("my.yaml"))["corpus"] == written["corpus"]
    assert "1 entries of papers.bib have an id: about 1 call of the API" in said
    said, written = started("--search", "maps", "--api", api, file="words.yaml")
    assert written["corpus"] == {"source": source, "search" if api == "openalex" else "query": "maps", **EXPANDED}
    assert ("export OPENALEX_API_KEY" in said) == (api == "openalex")


REFUSED = [
    ([], "Name one corpus: --topic, --filter or --search, or several of them; --list; or --papers with --citations."),
    (["--search", "a", *PAPERS], "Name one corpus"),
    (["--citations", "citations.csv"], "Name one corpus"),
    (["--filter", "machine learning"], "words are for --search"),
    (["--api", "semantic-scholar", "--filter", "a:b"], "--filter is for OpenAlex; search Semantic Scholar for words"),
    (["--papers", "gone.csv"], "There is no file gone.csv"),
    (["--papers", "x}y.csv"], "a path must not have the character '}', so rename it"),
    (["--papers", "$NOPE/p.csv"], "key files is '$NOPE/p.csv', but that variable is not set"),
    (["--papers", ""], "key files is '', which should be non-empty"),
    (["--papers", "papers.csv", "--citations", ""], "key files is '', which should be non-empty"),
    (["--papers", "notes.txt"], "notes.txt: the name of a table must end in .csv, .tsv"),
    (["--list", "empty.csv"], "empty.csv"),
    (["--papers", "rowless.csv", *PAPERS[2:]], "are no paper: the files of corpus.papers have no row with an id"),
    (["--papers", "odd.csv", *PAPERS[2:]], "odd.csv has no column that is clearly `id`; it has a, b."),
    ([*PAPERS, "--column", "id=doi"], "papers.csv has no column doi, which corpus.papers.columns.id names; it has"),
    ([*PAPERS, "--column", "ids=doi"], "--column ids: write KEY=NAME, with one of the keys id, title, abstract, year"),
    (["--papers", "papers.csv", "--citations", "urls.csv"], "the two tables write ids differently"),
    (["--papers", "broken.csv", *PAPERS[2:]], "broken.csv, line 2: a cell begins with a double quote"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED)
def test_what_cannot_be_started_is_refused_and_nothing_is_written(options, sentence):
    year, *_ = write_corpus(50)
    write_rows("odd.csv", ["a", "b"], [[1, 2]])
    write_rows("urls.csv", ["from", "to"], [[f"doi:{paper}", f"doi:{paper}x"] for paper in year])
    contents = {"broken.csv": 'id,title\n1,"On\n', "notes.txt": "id\n", "empty.csv": "", "rowless.csv": "Id,Title\n"}
    for name, content in contents.items():
        Path(name).write_text(content)
    with pytest.raises(InputError) as refused:
        invoke("start", *options)
    assert sentence in str(refused.value)
    assert not Path("my.yaml").exists()


def test_a_file_that_exists_is_kept():
    Path("my.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"my\.yaml exists already; name another file"):
        invoke("start", "--search", "maps")
    with pytest.raises(InputError, match="is in a folder that does not exist"):
        invoke("start", "new/my.yaml", "--search", "maps")
    assert Path("my.yaml").read_text() == "mine"


def test_in_a_terminal_files_and_columns_without_a_usual_name_are_asked_for():
    year, *_ = write_corpus(300)
    write_rows("heads.csv", ["code", "heading", "text", "when"], ([paper, "On", "Text", year[paper]] for paper in year))
    asked = [("files of your own?", reply) for reply in ("file", "files")]
    asked += [("Table of papers", reply) for reply in ("gone.csv", "x}y.csv", "heads.csv")]
    asked += [("Table of citations", "citations.csv"), ("is `id`?", "coda"), ("is `id`?", "code")]
    asked += [("is `title`?", "heading"), ("is `abstract`?", "text"), ("is `year`?", "")]
    said = answer("start", asked)
    assert "There is no file gone.csv" in said
    assert "a path must not have the character '}'" in said
    assert "'coda' is none of code, heading, text, when" in said
    written = written_configuration(Path("my.yaml"))
    resolve(written)
    assert written["corpus"]["papers"]["columns"] == {"id": "code", "title": "heading", "abstract": "text"}


@pytest.mark.parametrize(
    ("reply", "key"), [("topics.id:T1,publication_year:>2004", "filter"), ("science: maps of it", "search")]
)
def test_in_a_terminal_a_filter_is_told_from_words(reply, key):
    answer("start", [("files of your own?", ""), ("Which papers?", reply)])
    corpus = written_configuration(Path("my.yaml"))["corpus"]
    assert corpus == {"source": "openalex", key: reply, **EXPANDED}
