"""A corpus from a query of OpenAlex's API: the tables of a copy of the same works, whatever goes wrong on the way."""

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tests.corpus.made import files_of, merged
from tests.corpus.made_openalex import work, write_copy
from tests.releases.faults import EVERY_FAULT, Fault, Faults, Mishaps, each_request
from tests.releases.server import Arrival
from tests.releases.works_server import WorksCatalogue, WorksHandler, serve_works
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import resolve
from cocite.core.errors import InputError
from cocite.corpus.release import retry, works_query
from cocite.corpus.sources.openalex import OpenAlex
from cocite.tools import machine

KEY = "a-key-that-must-stay-secret"
SIZE = 8
"""Works on a page, and ids in a batch."""
FAR = 5_000_000_000
FILTER = "primary_topic.id:T0,publication_year:2005-2014"
EXPANDED = {"expand": {"citing": 1}}


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def number_of(url: str) -> int:
    return int(url.rpartition("W")[2])


WORKS = [
    work(
        FAR + number,
        title=f"Title {number}",
        year=2001 + number % 20,
        fields=["Art"] if number % 3 else [],
        abstract=f"about it {number} é" if number % 4 else None,
        references=[FAR + (number * factor + 1) % 65 for factor in range(number % 5)],
        citation_count=number % 7,
    )
    for number in range(60)
]
"""Works of ten years, of which two in three have the topic T0; each cites up to four, some of them unknown."""
MATCHING = [each for each in WORKS if each["primary_topic"] and 2005 <= each["publication_year"] <= 2014]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    monkeypatch.setattr(works_query, "PER_PAGE", SIZE)
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 0.6))


@contextmanager
def served(*, catalogue=None, corpus=None, **options) -> Iterator[OpenAlex]:
    with serve_works(catalogue or WorksCatalogue(WORKS), key=KEY, **options) as origin:
        yield OpenAlex(source="openalex", api=origin, **({"filter": FILTER} | (corpus or {})))


def fetch(source: OpenAlex, folder: Path) -> Path:
    """The file of the works, from which all tables follow."""
    manifest = source.list_release("2026-11-20", folder)
    places = {"results": folder, "state": folder / "state", "output": folder / "raw"}
    source.fetch(manifest, "works", manifest.datasets["works"].shards, **places)
    assert not (folder / "state").exists()
    return folder / "raw/works.gz"


@pytest.fixture
def tables(read_works):
    """The rows of papers and citations of a file of works."""
    return lambda path: merged(read_works(path))[0]


@pytest.fixture
def papers(tables):
    return lambda path: {row["corpusid"]: row["title"] for row in tables(path)["papers"]}


def copy_of(works: list[dict], folder: Path) -> Path:
    write_copy(folder, "jsonl", works, per_file=10**6)
    return files_of(folder, "jsonl")[0]


def answered(requests: list[Arrival]) -> Counter[str]:
    """Requests for works that were answered, and whose answer was whole, by what they ask for."""
    return Counter(each.target for each in requests if each.is_whole and "per_page=1&" not in f"{each.target}&")


def test_a_query_gives_the_tables_of_a_copy_of_the_works_that_match(tables, tmp_path):
    requests: list[Arrival] = []
    with served(requests=requests) as source:
        found = tables(fetch(source, tmp_path))
    assert found == tables(copy_of(MATCHING, tmp_path / "copy"))
    assert len(found["papers"]) == len(MATCHING)
    assert len(answered(requests)) == -(-len(MATCHING) // SIZE) + 1


def test_a_search_may_go_without_a_filter_or_with_one(papers, tmp_path):
    sevens = [each for each in MATCHING if "7" in each["title"]]
    for corpus, expected in (({"search": "Title", "filter": None}, WORKS), ({"search": "title 7"}, sevens)):
        with served(corpus=corpus) as source:
            found = papers(fetch(source, tmp_path / corpus["search"]))
        assert sorted(found.values()) == sorted(each["title"] for each in expected) != []


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, len(EVERY_FAULT)))])
def test_any_fault_at_any_request_leaves_the_works_as_they_are(tmp_path, first, capfd):
    with served(corpus=EXPANDED) as source:
        expected = unpacked(fetch(source, tmp_path / "good"))
    requests: list[Arrival] = []
    for mishap in each_request(requests, first):
        with served(corpus=EXPANDED, mishaps=mishap, requests=requests) as source:
            assert unpacked(fetch(source, tmp_path / str(mishap.number))) == expected
        # After a lapse the query starts again: its pages until then are the only ones that come twice.
        again = [target for target, times in answered(requests).items() if times > 1]
        assert not again or (mishap.fault == Fault.ALL_LAPSED and len(again) < mishap.number)
    assert mishap.number > 9
    assert KEY not in capfd.readouterr().err
    assert KEY not in " ".join(f"{path} {path.read_bytes()!r}" for path in tmp_path.rglob("*") if path.is_file())


def test_a_bad_day_ends_well(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "RETRIES", 10)
    requests, mishaps = list[Arrival](), Mishaps(Faults(share=0.4, seed=3, retry_after="0"))
    with served(corpus=EXPANDED) as source:
        expected = unpacked(fetch(source, tmp_path / "good"))
    with served(corpus=EXPANDED, mishaps=mishaps, requests=requests) as source:
        assert unpacked(fetch(source, tmp_path / "bad")) == expected
    assert len({request.fault for request in requests} - {None}) >= 5
    assert set(answered(requests).values()) == {1}


def test_the_works_that_are_cited_and_those_that_cite_are_added_up_to_a_limit(papers, tmp_path):
    known = {number_of(each["id"]): [number_of(cited) for cited in each["referenced_works"]] for each in WORKS}
    queried = {number_of(each["id"]) for each in MATCHING}
    times = Counter(cited for each in queried for cited in known[each] if cited not in queried)
    chosen = sorted(times, key=lambda cited: (-times[cited], cited))
    citing = {each for each in known if {*known[each]} & queried}

    def added(**expand: int) -> set[int]:
        with served(corpus={"expand": expand}) as source:
            found = papers(fetch(source, tmp_path / str(expand))).keys()
        assert queried < found
        return found - queried

    assert added(limit=3) == {*chosen[:3]} & known.keys()
    assert added(limit=100) == {*chosen} & known.keys()
    assert added(references=0, citing=1) == citing - queried
    assert len(added(references=0, citing=1, limit=3)) == 3


def test_a_used_up_allowance_stops_the_run_and_the_next_day_resumes_it(tmp_path):
    with served(corpus=EXPANDED) as source:
        expected = unpacked(fetch(source, tmp_path / "good"))
    requests, said = list[Arrival](), list[str]()
    while not (tmp_path / "raw").exists():
        try:
            with served(corpus=EXPANDED, allowance=4, requests=requests) as source:
                fetch(source, tmp_path)
        except InputError as error:
            said.append(str(error))
    assert len(said) > 2
    stopped = "The day's allowance of the key in OPENALEX_API_KEY is used up after 3 calls of this run"
    assert all(re.search(f"{stopped}.*run again after midnight UTC", each) for each in said)
    assert unpacked(tmp_path / "raw/works.gz") == expected
    assert set(answered(requests).values()) == {1}


@pytest.mark.parametrize(
    ("status", "message", "headers"),
    [
        (429, "Too many.", {"Retry-After": "40000"}),
        (429, "Too many.", {"X-RateLimit-Remaining": "0"}),
        (429, "Insufficient budget.", {"Retry-After": "1"}),
        (403, "Your daily limit is reached.", {}),
    ],
)
def test_a_used_up_allowance_is_known_in_whatever_way_it_is_said_and_not_asked_again(
    tmp_path, monkeypatch, status, message, headers
):
    monkeypatch.setattr(WorksHandler, "used_up", (status, "Rate limit exceeded", f"{message} Key {KEY}.", headers))
    requests: list[Arrival] = []
    said = f"after 1 calls of this run.*{message} Key ….*midnight UTC"
    with served(allowance=2, requests=requests) as source, pytest.raises(InputError, match=said):
        fetch(source, tmp_path)
    assert [request.status for request in requests] == [200, 200, status]


class Changing(list[Arrival]):
    """The requests of a server from which some works vanish after the fourth."""

    def __init__(self, catalogue: WorksCatalogue, vanishing: list[dict]) -> None:
        super().__init__()
        self._catalogue, self._vanishing = catalogue, vanishing

    def append(self, arrival: Arrival) -> None:
        super().append(arrival)
        if len(self) == 4:
            for each in self._vanishing:
                del self._catalogue.works[each["id"].rpartition("/")[2]]


def test_works_that_vanish_while_they_are_paged_are_counted(tables, tmp_path, capfd):
    ranked = sorted(MATCHING, key=lambda each: (-each["cited_by_count"], each["id"]))
    catalogue = WorksCatalogue(WORKS)
    with served(catalogue=catalogue, requests=Changing(catalogue, ranked[-3:])) as source:
        found = tables(fetch(source, tmp_path))
    assert found == tables(copy_of(ranked[:-3], tmp_path / "copy"))
    assert f"3 of the {len(MATCHING)} works that matched at first did not come" in capfd.readouterr().err


def test_cited_works_that_were_merged_or_deleted_are_counted(papers, tmp_path, capfd):
    merged_id = next(cited for each in MATCHING for cited in each["referenced_works"] if number_of(cited) < FAR + 60)
    catalogue = WorksCatalogue([each for each in WORKS if each["id"] != merged_id])
    with served(catalogue=catalogue, corpus={"expand": {}}) as source:
        assert number_of(merged_id) not in papers(fetch(source, tmp_path))
    assert "18 works that are cited were requested; 1 are not there (merged or deleted)" in capfd.readouterr().err


PAGE = "openalex.org/settings/api"
MANY = r"20 works of OpenAlex match .*corpus.limit \(19\).*about 4 calls.*set corpus.limit to 1000"
REFUSED = {
    "no key": ({"key": ""}, rf"OPENALEX_API_KEY is not set; ask for a key at https://{PAGE} \(free\)"),
    "wrong key": ({"key": "another"}, rf"refuses the key in OPENALEX_API_KEY \(status 401.*{PAGE}"),
    "wrong filter": (
        {"filter": "author_name:A"},
        r"refuses the query \(status 400: .*author_name is not a valid field",
    ),
    "wrong place": ({"api": "/nowhere"}, "answers with status 404.*is corpus.api the base URL"),
    "redirect": ({"api": "/moved"}, "answers with status 301: Moved: elsewhere; is corpus.api the base URL"),
    "no match": ({"filter": f"{FILTER},language:xx"}, "publication_year:2005-2014 matches 30, language:xx matches 0"),
    "many": ({"limit": 19}, MANY),
}


@pytest.mark.parametrize(("corpus", "said"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_refuses_is_a_sentence_without_the_key(tmp_path, monkeypatch, corpus, said):
    key = corpus.get("key", KEY)
    monkeypatch.setenv("OPENALEX_API_KEY", key)
    with served() as source:
        changed = source.model_copy(update=corpus | {"api": source.api + corpus.get("api", "")})
        with pytest.raises(InputError, match=said) as caught:
            changed.list_release("latest", tmp_path)
    assert not key or key not in str(caught.value)
    assert caught.value.__cause__ is None


APIS = ("openalex", "semantic-scholar-api")
FOR_A_COPY = "corpus.jobs is for a copy and has no effect with filter, search or list"


@pytest.mark.parametrize(
    ("source", "corpus", "said"),
    [
        *((api, {"list": "/no/papers.txt"}, "corpus.list: there is no file /no/papers.txt") for api in APIS),
        (APIS[0], {"filter": "a:b", "jobs": 3}, FOR_A_COPY),
        (APIS[0], {"filter": "a:b", "path": "/data"}, "corpus.path is for a copy"),
        (APIS[0], {"expand": {}}, "corpus.expand has no effect without filter, search or list"),
        (APIS[0], {"list": "papers.txt", "filter": "a:b"}, "corpus.filter does not go together with list"),
        (APIS[0], {"limit": 5}, "corpus.limit has no effect without"),
        (APIS[0], {"filter": "a:b", "expand": {"references": 0}}, "corpus.expand adds nothing"),
        (APIS[1], {}, "corpus needs either query or list"),
        (APIS[1], {"query": "a", "list": "papers.txt"}, "corpus needs either query or list"),
        (APIS[1], {"query": "a", "years": "2020 on"}, "corpus.years"),
        (APIS[1], {"list": "papers.txt", "years": "2020"}, "corpus.years does not go together with list"),
        (APIS[1], {"query": "a", "expand": {"citing": 1}}, "corpus.expand.citing needs a call per paper"),
        (APIS[1], {"query": "a", "contexts": {}}, "corpus.contexts does not go with source: semantic-scholar-api"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(source, corpus, said):
    with pytest.raises(InputError, match=said):
        resolve({"release": "latest", "corpus": {"source": source, **corpus}})


def test_the_plan_and_the_doctor_say_what_it_costs_and_ask_for_little(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    requests: list[Arrival] = []
    with served(requests=requests) as source:
        corpus = {"source": "openalex", "api": source.api, "search": "title", "expand": {}}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump({"release": "latest", "corpus": corpus}))
        said = CliRunner().invoke(app, ["corpus", "plan", "--configfile", "run.yaml"], catch_exceptions=False).output
        assert len(requests) == 1
        config = {"release": "latest", "corpus": corpus, "pathvars": {"results": str(tmp_path / "results")}}
        findings = list(machine.examine_source(config))
    assert "60 works match: about 9 calls of the API, $0.01 by its price list" in said
    assert "expand.references adds perhaps 1,200 works" in said
    assert [finding.verdict for finding in findings] == ["ok", "ok"]
    assert len(requests) == 3
    assert KEY not in f"{said} {findings}"
