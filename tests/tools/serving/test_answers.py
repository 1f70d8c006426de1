"""What a run answers over HTTP: records, filters, several papers, citations, files for reference managers, OpenAPI."""

import csv
import io
import json
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
from bibtexparser import parse_string
from jsonschema import Draft202012Validator
from tests.tools.serving.conftest import AUTHORS, DOI, MODELS, REQUESTS, SCRIPT, ids, vectors_of_model

from cocite.tools.answers import COLUMNS, written

MODEL = MODELS[0]


@pytest.fixture
def ask(server):
    def ask(path, **parameters):
        with urlopen(f"{server.url}api{path}?{urlencode(parameters)}", timeout=60) as response:  # noqa: S310
            content = response.read().decode()
            return json.loads(content) if response.headers["Content-Type"] == "application/json" else content

    return ask


def papers_of(hits):
    return [int(hit["paper"]) for hit in hits]


def nearest_to(vector, among, k):
    vectors = vectors_of_model(MODEL)
    return sorted((float(np.linalg.norm(vectors[paper] - vector)), paper) for paper in among if paper in vectors)[:k]


def test_a_paper_has_what_the_corpus_knows_of_it(ask):
    known = {"paper": "1", "title": "Bees and nectar", "year": 1901, "authors": AUTHORS[1], "venue": "Journal of Bees"}
    known |= {"fields": ["Art"], "doi": DOI, "url": f"https://doi.org/{DOI}", "cited": 10, "abstract": "An abstract."}
    assert ask("/paper", paper=1) == known
    other = ask("/paper", paper=20)
    assert [other[key] for key in ("authors", "venue", "url", "cited")] == [[], None, None, None]


@pytest.mark.parametrize("written", ["{}", "doi:{}", "https://doi.org/{}", "http://dx.doi.org/{}", " DOI: {} "])
def test_a_paper_is_looked_up_by_its_doi_however_it_is_written(ask, written):
    assert papers_of(ask("/papers", words=written.format(DOI))) == [1]
    assert papers_of(ask("/papers", words=written.format(DOI.upper()))) == [1]
    assert ask("/papers", words=written.format("10.1234/other")) == []


@pytest.mark.parametrize(
    ("filters", "is_kept"),
    [
        ({"years": "1905-1912"}, lambda paper: 5 <= paper % 100 <= 12),
        ({"years": "1930-"}, lambda paper: paper % 100 >= 30),
        ({"years": "-1903"}, lambda paper: paper % 100 <= 3),
        ({"years": "1907", "venue": "BEES"}, lambda paper: paper == 7),
        ({"field": "biology"}, lambda paper: paper % 3 == 0),
        ({"venue": "of bees", "field": "Biology"}, lambda paper: paper < 20 and paper % 3 == 0),
        ({"venue": "nowhere"}, lambda paper: False),
    ],
)
def test_only_the_papers_that_a_filter_leaves_are_found_the_nearest_first(ask, filters, is_kept):
    among = [paper for paper in ids() if paper != 1 and is_kept(paper)]
    expected = [paper for _, paper in nearest_to(vectors_of_model(MODEL)[1], among, 10)]
    assert papers_of(ask("/nearest", model=MODEL, paper=1, **filters)) == expected


def test_several_papers_are_asked_for_by_their_mean_away_from_others(ask):
    of = vectors_of_model(MODEL)
    mean = (of[1] + of[2] + of[3]) / 3
    away = mean + 0.5 * (mean - (of[4] + of[5]) / 2)
    others = [paper for paper in ids() if paper > 5]
    found = ask("/nearest", model=MODEL, paper="1,2,3", unlike="4,5", k=20)
    assert papers_of(found) == [paper for _, paper in nearest_to(away, others, 20)]
    text = ask("/nearest", model=MODEL, text="as paper 7", paper="1", k=20)  # the encoder gives any text its vector
    assert papers_of(text) == [paper for _, paper in nearest_to((of[1] + of[7]) / 2, {*ids()} - {1}, 20)]


def test_a_paper_that_is_found_names_the_words_that_it_shares(ask):
    words = {int(hit["paper"]): hit["words"] for hit in ask("/nearest", paper=1, k=50)}
    assert (words[2], words[7], words[3]) == (["nectar"], ["bees"], [])


def test_citations_among_papers_and_of_a_paper(ask):
    assert ask("/links", papers="1,2,3,5,39") == [["1", "2"], ["3", "1"]]
    assert (papers_of(ask("/citing", paper=1)), papers_of(ask("/cited", paper=1))) == ([3], [2])
    assert ask("/citing", paper=39) == []


def test_papers_are_exported_as_other_programs_read_them(ask):
    library = parse_string(ask("/export", papers="1,4,20", form="bibtex"))
    assert not library.failed_blocks
    first, script, _ = library.entries
    assert (first["author"], first["journal"]) == (" and ".join(AUTHORS[1]), "Journal of Bees")
    assert (first["title"], first["year"], first["doi"]) == ("Bees and nectar", "1901", DOI)
    assert script["title"] == SCRIPT
    lines = ask("/export", papers="1", form="ris").splitlines()
    assert (lines[0], lines[-1]) == ("TY  - JOUR", "ER  - ")
    assert {f"DO  - {DOI}", "AU  - Ada Bee", "PY  - 1901", "TI  - Bees and nectar"} <= {*lines}
    rows = [*csv.DictReader(io.StringIO(ask("/export", papers="4,1", form="csv")))]
    assert [row["paper"] for row in rows] == ["4", "1"]
    assert rows[0]["authors"] == "'=Ada"  # no formula


def test_no_name_or_sign_is_another_one_to_bibtex():
    record = dict.fromkeys(COLUMNS) | {"title": "10^6 ~ 5%", "authors": ["Research AND Sons", "Sand, A.", "A, B, C, D"]}
    [entry] = parse_string(written([record], "bibtex")).entries
    assert entry["author"] == "{Research AND Sons} and Sand, A. and {A, B, C, D}"
    assert entry["title"] == r"10\textasciicircum{}6 \textasciitilde{} 5\%"


def test_the_api_describes_each_request_and_answer(ask):
    document, requests = ask(""), {"/run": {}, **REQUESTS}
    assert {path.removeprefix("/api") for path in document["paths"]} == requests.keys()
    for path, parameters in requests.items():
        operation = document["paths"][f"/api{path}"]["get"]
        assert operation["summary"]
        needed = {each["name"] for each in operation["parameters"] if each["required"]}
        assert needed <= parameters.keys() <= {each["name"] for each in operation["parameters"]}
        for content in operation["responses"]["200"]["content"].values():
            schema = content["schema"] | {"components": document["components"]}
            Draft202012Validator(schema).validate(ask(path, **parameters))
