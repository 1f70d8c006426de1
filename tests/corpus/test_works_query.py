"""A corpus from a query of OpenAlex's API: the tables of a copy of the same works, whatever goes wrong on the way."""

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tests.corpus.made import files_of, merged
from tests.corpus.made_openalex import work, write_copy
from tests.releases.faults import Fault, Faults, Mishaps
from tests.releases.server import FAILING_STATUSES, Arrival
from tests.releases.works_server import OneMishap, WorksCatalogue, WorksHandler, serve_works
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
FAULTS = (Fault.DROPPED, Fault.CUT, Fault.SHORT, Fault.STALLED, Fault.ALL_LAPSED, *FAILING_STATUSES)


def number_of(url: str) -> int:
    return int(url.rpartition("W")[2])


def made(count: int = 60) -> list[dict]:
    """Works of ten years, of which two in three have the topic T0; each cites up to four, one of them unknown."""
    return [
        work(
            FAR + number,
            title=f"Title {number}",
            year=2001 + number % 20,
            fields=["Art"] if number % 3 else [],
            abstract=f"about it {number} é" if number % 4 else None,
            references=[FAR + (number * factor + 1) % (count + 5) for factor in range(number % 5)],
            citation_count=number % 7,
        )
        for number in range(count)
    ]


WORKS = made()
MATCHING = [each for each in WORKS if each["primary_topic"] and 2005 <= each["publication_year"] <= 2014]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    monkeypatch.setattr(works_query, "PER_PAGE", SIZE)
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 0.6))


@contextmanager
def served(*, catalogue=None, corpus=None, **options) -> Iterator[OpenAlex]:
    """A source whose API is served."""
    with serve_works(catalogue or WorksCatalogue(WORKS), key=KEY, **options) as origin:
        yield OpenAlex(source="openalex", api=origin, **({"filter": FILTER} | (corpus or {})))


def fetch(source: OpenAlex, folder: Path) -> Path:
    manifest = source.list_release("2026-11-20", folder)
    places = {"results": folder, "state": folder / "state", "output": folder / "raw"}
    source.fetch(manifest, "works", manifest.datasets["works"].shards, **places)
    assert not (folder / "state").exists()
    return folder / "raw/works.gz"


def tables(read_works, *paths: Path) -> tuple[object, dict[str, bytes]]:
    """The rows of papers and citations, and the files that have them."""
    folder = read_works(*paths)
    rows = merged(folder)
    return rows[0], {path.name: path.read_bytes() for path in (folder / "merged").glob("[pc]*")}


def copied(read_works, folder: Path, works: list[dict]) -> tuple[object, dict[str, bytes]]:
    """The same of a copy."""
    write_copy(folder / "bucket", "jsonl", works, per_file=10**6)
    return tables(read_works, *files_of(folder / "bucket", "jsonl"))


def answered(requests: list[Arrival]) -> Counter[str]:
    """Requests for works that were answered, and whose answer was whole, by what they ask for."""
    whole = [
        each for each in requests if each.status == 200 and each.fault not in (Fault.CUT, Fault.SHORT, Fault.STALLED)
    ]
    return Counter(each.target for each in whole if "per_page=1&" not in f"{each.target}&")


def lines_of(path: Path) -> bytes:
    """The works of a file, from which all tables follow."""
    return gzip.decompress(path.read_bytes())


def everything_in(folder: Path) -> str:
    return " ".join(f"{path} {path.read_bytes()!r}" for path in folder.rglob("*") if path.is_file())


def test_a_query_gives_the_tables_of_a_copy_of_the_works_that_match(read_works, tmp_path):
    requests: list[Arrival] = []
    with served(requests=requests) as source:
        rows, files = tables(read_works, fetch(source, tmp_path))
    assert (rows, files) == copied(read_works, tmp_path, MATCHING)
    assert len(rows["papers"]) == len(MATCHING)
    assert len(answered(requests)) == -(-len(MATCHING) // SIZE) + 1


def test_a_search_may_go_without_a_filter_or_with_one(read_works, tmp_path):
    with served(corpus={"search": "Title", "filter": None}) as source:
        rows, _ = tables(read_works, fetch(source, tmp_path / "search"))
    assert len(rows["papers"]) == len(WORKS)
    with served(corpus={"search": "title 7"}) as source:
        rows, _ = tables(read_works, fetch(source, tmp_path / "both"))
    assert (
        [row["title"] for row in rows["papers"]] == [each["title"] for each in MATCHING if "7" in each["title"]] != []
    )


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, len(FAULTS)))])
def test_any_fault_at_any_request_leaves_the_works_as_they_are(tmp_path, first, capfd):
    with served(corpus=EXPANDED) as source:
        expected = lines_of(fetch(source, tmp_path / "good"))
    number, requests = 0, list[Arrival]()
    while number <= len(requests):
        requests.clear()
        fault = FAULTS[(first + number) % len(FAULTS)]
        mishap = OneMishap(number, fault, cut_after=60, retry_after="0")
        with served(corpus=EXPANDED, mishaps=mishap, requests=requests) as source:
            assert lines_of(fetch(source, tmp_path / str(number))) == expected
        # After a lapse the query starts again: its pages until then are the only ones that come twice.
        again = [target for target, times in answered(requests).items() if times > 1]
        assert not again or (fault == Fault.ALL_LAPSED and len(again) < number)
        number += 1
    assert number > 10
    assert KEY not in capfd.readouterr().err
    assert KEY not in everything_in(tmp_path)


def test_the_works_that_are_cited_and_those_that_cite_are_added_up_to_a_limit(read_works, tmp_path):
    known = {number_of(each["id"]): [number_of(cited) for cited in each["referenced_works"]] for each in WORKS}
    queried = [number_of(each["id"]) for each in MATCHING]
    times = Counter(cited for each in queried for cited in known[each] if cited not in queried)
    chosen = sorted(times, key=lambda cited: (-times[cited], cited))
    for limit in (3, 100):
        with served(corpus={"expand": {"limit": limit}}) as source:
            rows, _ = tables(read_works, fetch(source, tmp_path / f"cited {limit}"))
        assert {row["corpusid"] for row in rows["papers"]} == {*queried, *({*chosen[:limit]} & known.keys())}
    with served(corpus={"expand": {"references": 0, "citing": 1}}) as source:
        rows, _ = tables(read_works, fetch(source, tmp_path / "citing"))
    citing = {each for each in known if {*known[each]} & {*queried}}
    assert {row["corpusid"] for row in rows["papers"]} == {*queried} | citing
    with served(corpus={"expand": {"references": 0, "citing": 1, "limit": 3}}) as source:
        rows, _ = tables(read_works, fetch(source, tmp_path / "some"))
    assert len(rows["papers"]) == len(queried) + 3


def test_a_used_up_allowance_stops_the_run_and_the_next_day_resumes_it(tmp_path):
    with served(corpus=EXPANDED) as source:
        expected = lines_of(fetch(source, tmp_path / "good"))
    requests, said = list[Arrival](), list[str]()
    while not (tmp_path / "raw").exists():
        with suppress_input_errors(said), served(corpus=EXPANDED, allowance=4, requests=requests) as source:
            fetch(source, tmp_path)
    assert len(said) > 2
    for each in said:
        assert "The day's allowance of the key in OPENALEX_API_KEY is used up after 3 calls of this run" in each
        assert "run again after midnight UTC" in each
    assert lines_of(tmp_path / "raw/works.gz") == expected
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


@contextmanager
def suppress_input_errors(said: list[str]) -> Iterator[None]:
    """Collect what errors say."""
    try:
        yield
    except InputError as error:
        said.append(str(error))


class Changing(list[Arrival]):
    """The requests of a server whose works change after some of them."""

    def __init__(self, catalogue: WorksCatalogue, vanishing: list[dict]) -> None:
        super().__init__()
        self._catalogue, self._vanishing = catalogue, vanishing

    def append(self, arrival: Arrival) -> None:
        super().append(arrival)
        if len(self) == 4:
            for each in self._vanishing:
                del self._catalogue.works[each["id"].rpartition("/")[2]]


def test_works_that_vanish_while_they_are_paged_are_counted(read_works, tmp_path, capfd):
    ranked = sorted(MATCHING, key=lambda each: (-each["cited_by_count"], each["id"]))
    catalogue = WorksCatalogue(WORKS)
    with served(catalogue=catalogue, requests=Changing(catalogue, ranked[-3:])) as source:
        found = tables(read_works, fetch(source, tmp_path))
    assert found == copied(read_works, tmp_path, ranked[:-3])
    assert f"3 of the {len(MATCHING)} works that matched at first did not come" in capfd.readouterr().err


def test_cited_works_that_were_merged_or_deleted_are_counted(read_works, tmp_path, capfd):
    merged_id = next(cited for each in MATCHING for cited in each["referenced_works"] if number_of(cited) < FAR + 60)
    catalogue = WorksCatalogue([each for each in WORKS if each["id"] != merged_id])
    with served(catalogue=catalogue, corpus={"expand": {}}) as source:
        rows, _ = tables(read_works, fetch(source, tmp_path))
    assert number_of(merged_id) not in {row["corpusid"] for row in rows["papers"]}
    assert "18 works that are cited were requested; 1 are not there (merged or deleted)" in capfd.readouterr().err


REFUSED = {
    "no key": (
        {"key": ""},
        r"OPENALEX_API_KEY is not set; ask for a key at https://openalex.org/settings/api \(free\)",
    ),
    "wrong key": ({"key": "another"}, r"refuses the key in OPENALEX_API_KEY \(status 401.*openalex.org/settings/api"),
    "wrong filter": (
        {"filter": "author_name:Ada"},
        r"refuses the query \(status 400: .*author_name is not a valid field",
    ),
    "wrong place": ({"api": "/nowhere"}, "answers with status 404.*is corpus.api the base URL"),
    "redirect": ({"api": "/moved"}, "answers with status 301: Moved: elsewhere; is corpus.api the base URL"),
    "no match": ({"filter": f"{FILTER},language:xx"}, "publication_year:2005-2014 matches 30, language:xx matches 0"),
    "many": (
        {"limit": 19},
        r"20 works of OpenAlex match .*corpus.limit \(19\).*about 4 calls.*set corpus.limit to 1000",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_api_refuses_is_a_sentence_without_the_key(tmp_path, monkeypatch, case):
    corpus, said = REFUSED[case]
    key = corpus.get("key", KEY)
    monkeypatch.setenv("OPENALEX_API_KEY", key)
    with served() as source:
        changed = source.model_copy(update=corpus | {"api": source.api + corpus.get("api", "")})
        with pytest.raises(InputError, match=said) as caught:
            changed.list_release("latest", tmp_path)
    assert not key or key not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ({"filter": "a:b", "jobs": 3}, "corpus.jobs is for a copy and has no effect with filter, search or list"),
        ({"filter": "a:b", "path": "/data"}, "corpus.path is for a copy"),
        ({"expand": {}}, "corpus.expand has no effect without filter, search or list"),
        ({"list": "papers.txt", "filter": "a:b"}, "corpus.filter does not go together with list"),
        ({"list": "/no/papers.txt"}, "corpus.list: there is no file /no/papers.txt"),
        ({"limit": 5}, "corpus.limit has no effect without"),
        ({"filter": "a:b", "expand": {"references": 0}}, "corpus.expand adds nothing"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(corpus, said):
    with pytest.raises(InputError, match=said):
        resolve({"release": "latest", "corpus": {"source": "openalex", **corpus}})


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


def test_a_bad_day_ends_well(tmp_path, monkeypatch):
    monkeypatch.setattr(retry, "RETRIES", 10)
    requests: list[Arrival] = []
    with served(corpus=EXPANDED) as source:
        expected = lines_of(fetch(source, tmp_path / "good"))
    mishaps = Mishaps(Faults(share=0.4, seed=3, retry_after="0"))
    with served(corpus=EXPANDED, mishaps=mishaps, requests=requests) as source:
        assert lines_of(fetch(source, tmp_path / "bad")) == expected
    assert len({request.fault for request in requests} - {None}) >= 5
    assert set(answered(requests).values()) == {1}
