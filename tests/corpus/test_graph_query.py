"""A corpus from a query of Semantic Scholar's API: the tables of a release of the same papers, whatever goes wrong."""

import gzip
import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.corpus.made import LIMITS, Made, make_corpus
from tests.evaluation.folders import write_lines
from tests.releases.faults import Fault, Faults, Mishaps
from tests.releases.graph_server import GraphCatalogue, GraphHandler, Paper, serve_graph
from tests.releases.server import FAILING_STATUSES, Arrival
from tests.releases.works_server import OneMishap
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import resolve
from cocite.config.release_folder import DATASETS
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table
from cocite.corpus.ingest.merge import merge
from cocite.corpus.ingest.release_shards import ingest
from cocite.corpus.release import graph_query, retry
from cocite.corpus.release.manifest import write_manifest
from cocite.corpus.sources.s2_api import SemanticScholarQuery
from cocite.tools import machine

KEY = "a-key-that-must-stay-secret"
SIZE = 7
"""Papers on a page, and ids in a batch."""
QUERY = {"query": "paper", "years": "2004-2013"}
FAULTS = (Fault.DROPPED, Fault.CUT, Fault.SHORT, Fault.STALLED, Fault.ALL_LAPSED, *FAILING_STATUSES)


def made(count: int = 50) -> list[Paper]:
    """Papers of ten years, of which two in three have the word that is searched for; each cites up to four papers,
    some of which are unknown, or no paper of Semantic Scholar's."""
    return [
        {
            "paperId": hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest(),
            "corpusId": 1000 + number,
            "externalIds": {"DOI": f"10.1000/X{number}", "CorpusId": 1000 + number}
            | ({"PubMed": str(number)} if number % 5 == 0 else {})
            | ({"ArXiv": f"2101.{number:05}"} if number % 7 == 0 else {}),
            "title": f"{'Paper' if number % 3 else 'Note'} {number}",
            "abstract": f"About it {number} é" if number % 4 else None,
            "year": 2000 + number % 16,
            "publicationDate": f"{2000 + number % 16}-03-01",
            "venue": "A venue",
            "s2FieldsOfStudy": [{"category": "Art", "source": "s2-fos-model"}],
            "citationCount": number,
            "referenceCount": number % 5,
            "authors": [{"authorId": "1", "name": f"Ada {number}"}],
            "references": None
            if number % 11 == 0
            else [
                {"paperId": None, "corpusId": None} if factor == 3 else {"paperId": "x", "corpusId": 1000 + to}
                for factor in range(number % 5)
                if (to := (number * factor + 1) % (count + 5)) is not None
            ],
        }
        for number in range(count)
    ]


PAPERS = made()
MATCHING = [each for each in PAPERS if "Paper" in each["title"] and 2004 <= each["year"] <= 2013]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_API_KEY", KEY)
    monkeypatch.setattr(graph_query, "PER_BATCH", SIZE)
    monkeypatch.setattr(retry, "DISTANCE", 0.0)
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 0.6))


@contextmanager
def served(*, corpus: Any = None, papers: Any = None, longest: int = 10**7, **options: Any) -> Iterator[Any]:
    """A source whose API is served."""
    catalogue = GraphCatalogue(PAPERS if papers is None else papers, SIZE, longest)
    with serve_graph(catalogue, **({"key": KEY} | options)) as api:
        yield SemanticScholarQuery(source="semantic-scholar-api", api=api, **(QUERY if corpus is None else corpus))


def fetch(source: SemanticScholarQuery, folder: Path, datasets: Any = DATASETS) -> dict[str, bytes]:
    """Dataset → the lines of its shard."""
    manifest = source.list_release("2026-11-20", folder)
    write_manifest(folder / "corpus/manifest.json", manifest)
    for name in datasets:
        place = {"results": folder, "state": folder / "unused", "output": folder / f"corpus/raw/{name}/0"}
        if not place["output"].exists():
            source.fetch(manifest, name, manifest.datasets[name].shards, **place)
    assert not (folder / ".state/semantic-scholar-api").exists()
    return {name: gzip.decompress((folder / f"corpus/raw/{name}/0/{name}.gz").read_bytes()) for name in datasets}


def tables(folder: Path) -> Made:
    """The tables of what was fetched."""
    corpus = folder / "corpus"
    for name in DATASETS:
        written = {
            "output": corpus / f"ingested/{name}/0.parquet",
            "report": corpus / f"ingest_report/{name}/0.parquet",
        }
        place = {"manifest": corpus / "manifest.json", "shards": corpus / f"raw/{name}/0", "part": 0, "parts": 1}
        ingest(name, ids="drop", buckets=2, **place, **LIMITS, **written)
    for table in ("papers", "citations"):
        for bucket in range(2):
            written = {"output": corpus / f"{table}/{bucket}.parquet", "omissions": corpus / "omitted.parquet"}
            merge(table, ingested=corpus / "ingested", bucket=bucket, **written, **LIMITS)
    return Made(folder)


def released(folder: Path, papers: list[Paper]) -> Made:
    """The tables of a release of the same papers."""
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in DATASETS}
    for paper in papers:
        number = paper["corpusId"]
        record = {"corpusid": number, "externalids": paper["externalIds"], "title": paper["title"]}
        record |= {"year": paper["year"], "publicationdate": paper["publicationDate"], "venue": paper["venue"]}
        record |= {"citationcount": paper["citationCount"], "referencecount": paper["referenceCount"]}
        records["papers"].append(record | {"s2fieldsofstudy": paper["s2FieldsOfStudy"]})
        if paper["abstract"]:
            records["abstracts"].append({"corpusid": number, "abstract": paper["abstract"]})
        cited = [each["corpusId"] for each in paper["references"] or () if each["corpusId"]]
        records["citations"] += [{"citingcorpusid": number, "citedcorpusid": each} for each in cited]
    for name, lines in records.items():
        (folder / "release" / name).mkdir(parents=True)
        write_lines(folder / "release" / name / "0.jsonl", lines)
    return make_corpus(folder / "released", {"source": "directory", "path": str(folder / "release")})


def files_of(made: Made) -> dict[str, bytes]:
    found = [path for table in ("papers", "citations") for path in (made.results / "corpus" / table).glob("*.parquet")]
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}


def answered(requests: list[Arrival]) -> Counter[str]:
    """Requests whose answer was whole, by what they ask for, without the first one, which counts what matches."""
    broken = (Fault.CUT, Fault.SHORT, Fault.STALLED)
    whole = [each for each in requests if each.status == 200 and each.fault not in broken]
    return Counter(f"{each.method} {each.target}" for each in whole[1:])


def test_a_query_gives_the_tables_of_a_release_of_the_papers_that_match(tmp_path):
    requests: list[Arrival] = []
    with served(requests=requests) as source:
        fetch(source, tmp_path)
    found, expected = tables(tmp_path), released(tmp_path, MATCHING)
    assert found.papers == expected.papers
    assert found.pairs == expected.pairs
    assert files_of(found) == files_of(expected)
    assert len(found.papers) == len(MATCHING) > 2 * SIZE
    # Those that count, the pages of the search, and the batches; the answers serve all three datasets.
    calls = -(-len(MATCHING) // SIZE)
    assert sorted(each.method for each in requests) == ["GET"] * (1 + calls) + ["POST"] * calls
    assert all(each.headers["x-api-key"] == KEY for each in requests)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, len(FAULTS)))])
def test_any_fault_at_any_request_leaves_the_shards_as_they_are(tmp_path, first, capfd):
    corpus = QUERY | {"expand": {}}
    with served(corpus=corpus) as source:
        expected = fetch(source, tmp_path / "good")
    number, requests = 0, list[Arrival]()
    while number <= len(requests):
        requests.clear()
        fault = FAULTS[(first + number) % len(FAULTS)]
        mishap = OneMishap(number, fault, cut_after=60, retry_after="0")
        with served(corpus=corpus, mishaps=mishap, requests=requests) as source:
            assert fetch(source, tmp_path / str(number)) == expected
        again = [target for target, times in answered(requests).items() if times > 1]
        assert not again or fault == Fault.ALL_LAPSED
        number += 1
    assert number > 8
    assert KEY not in capfd.readouterr().err
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_bad_day_ends_well_and_a_stop_repeats_nothing(tmp_path, monkeypatch):
    corpus = QUERY | {"expand": {}}
    with served(corpus=corpus) as source:
        expected = fetch(source, tmp_path / "good")
    requests: list[Arrival] = []
    monkeypatch.setattr(retry, "RETRIES", 0)
    stops = 0
    while True:
        mishaps = Mishaps(Faults(share=0.3, seed=stops + 1, retry_after="0"))
        try:
            with served(corpus=corpus, mishaps=mishaps, requests=requests) as source:
                manifest = source.list_release("2026-11-20", tmp_path)
                requests.clear() if stops == 0 else None
                place = {"results": tmp_path, "state": tmp_path / "unused", "output": tmp_path / "papers"}
                source.fetch(manifest, "papers", (), **place)
                break
        except InputError:
            stops += 1
    assert stops > 2
    lines = gzip.decompress((tmp_path / "papers/papers.gz").read_bytes())
    assert sorted(lines.splitlines()) == sorted(expected["papers"].splitlines())
    batches = {target: times for target, times in answered(requests).items() if target.startswith("POST")}
    assert set(batches.values()) == {1}


def test_answers_are_kept_until_all_datasets_of_one_query_are_there(tmp_path):
    answers = tmp_path / ".state/semantic-scholar-api"
    for corpus, names in ((QUERY, DATASETS[:2]), (QUERY | {"expand": {}}, DATASETS[1:])):
        with served(corpus=corpus) as source:
            manifest = source.list_release("2026-11-20", tmp_path)
            for name in names:
                source.fetch(
                    manifest, name, (), results=tmp_path, state=tmp_path, output=tmp_path / f"{name}-{len(corpus)}"
                )
        assert answers.exists()


def test_an_answer_that_would_be_too_long_is_asked_for_in_parts(tmp_path):
    with served() as source:
        expected = fetch(source, tmp_path / "good")
    requests: list[Arrival] = []
    with served(longest=2000, requests=requests) as source:
        assert fetch(source, tmp_path / "parts") == expected
    assert Counter(each.status for each in requests)[400] > 2
    with (
        served(longest=100) as source,
        pytest.raises(InputError, match=r"refuses ids of papers \(status 400: Response"),
    ):
        fetch(source, tmp_path / "never")


def test_a_single_paper_that_is_too_long_by_status_413_is_refused_and_not_halved_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(GraphHandler, "too_long", (413, "Payload too large"))
    with served(longest=100) as source, pytest.raises(InputError, match=r"refuses ids of papers \(status 413: Payload"):
        fetch(source, tmp_path)


def test_the_papers_that_are_cited_are_added_up_to_a_limit(tmp_path, capfd):
    known = {each["corpusId"] for each in PAPERS}
    queried = [each["corpusId"] for each in MATCHING]
    listed = [cited["corpusId"] for each in MATCHING for cited in each["references"] or () if cited["corpusId"]]
    times = Counter(cited for cited in listed if cited not in queried)
    chosen = sorted(times, key=lambda cited: (-times[cited], cited))
    for limit in (3, 100):
        with served(corpus=QUERY | {"expand": {"limit": limit}}) as source:
            fetch(source, tmp_path / str(limit))
        assert tables(tmp_path / str(limit)).papers.keys() == {*queried, *({*chosen[:limit]} & known)}
    assert f"{len(chosen):,} works that are cited were requested" in capfd.readouterr().err


LIST = f"""id
{PAPERS[3]["paperId"]}
CorpusId:1004
https://www.semanticscholar.org/paper/A-title/{PAPERS[5]["paperId"]}
10.1000/x6
PMID:10
arXiv:2101.00014
https://doi.org/10.1000/X6
10.1000/unknown
W77
"""


def test_a_list_gives_each_paper_once_and_names_the_entries_without_one(tmp_path):
    (tmp_path / "papers.txt").write_text(LIST.partition("\n")[2])
    with served(corpus={"list": str(tmp_path / "papers.txt")}) as source:
        fetch(source, tmp_path)
    assert sorted(tables(tmp_path).papers) == [1003, 1004, 1005, 1006, 1010, 1014]
    folder = tmp_path / "corpus/unresolved"
    rows = read_table(folder / "papers/0.parquet", "unresolved").to_pylist()
    assert [(row["place"], row["reason"]) for row in rows] == [
        ("line 7", "the work of an earlier entry"),
        ("line 8", "Semantic Scholar has no work with this DOI"),
        ("line 9", "OpenAlex's id, which Semantic Scholar does not have"),
    ]
    assert not read_table(folder / "citations/0.parquet", "unresolved").num_rows


REFUSED = {
    "wrong key": ({"key": "another"}, r"refuses the key in S2_API_KEY \(status 403\)"),
    "no key": ({"key": ""}, r"refuses requests without a key \(status 401\): ask for one at .*export S2_API_KEY="),
    "wrong query": ({"query": 'a "phrase'}, r"refuses the query \(status 400: Bad query parameters: unbalanced"),
    "wrong place": ({"api": "/nowhere"}, "answers with status 404; is it the base URL"),
    "no match": ({"query": "zebra"}, "No paper of Semantic Scholar matches query: zebra with year: 2004-2013"),
    "many": ({"limit": 9}, r"papers of Semantic Scholar match .*corpus.limit \(9\).*set corpus.limit to 1000"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_api_refuses_is_a_sentence_without_the_key(tmp_path, monkeypatch, case):
    corpus, said = REFUSED[case]
    monkeypatch.setenv("S2_API_KEY", corpus.get("key", KEY))
    with served() as source:
        changed = source.model_copy(update=corpus | {"api": source.api + corpus.get("api", "")})
        with pytest.raises(InputError, match=said) as caught:
            changed.list_release("latest", tmp_path)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ({}, "corpus needs either query or list"),
        ({"query": "a", "list": "papers.txt"}, "corpus needs either query or list"),
        ({"query": "a", "years": "2020 on"}, "corpus.years"),
        ({"list": "papers.txt", "years": "2020"}, "corpus.years does not go together with list"),
        ({"list": "/no/papers.txt"}, "corpus.list: there is no file /no/papers.txt"),
        ({"query": "a", "expand": {"citing": 1}}, "corpus.expand.citing needs a call per paper"),
        ({"query": "a", "contexts": {}}, "corpus.contexts does not go with source: semantic-scholar-api"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(corpus, said):
    with pytest.raises(InputError, match=said):
        resolve({"release": "latest", "corpus": {"source": "semantic-scholar-api", **corpus}})


def test_the_plan_and_the_doctor_say_what_it_costs_with_and_without_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("S2_API_KEY")
    requests: list[Arrival] = []
    with served(requests=requests, key=None) as source:
        corpus = {"source": "semantic-scholar-api", "api": source.api, "query": "paper", "expand": {}}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump({"release": "latest", "corpus": corpus}))
        said = CliRunner().invoke(app, ["corpus", "plan", "--configfile", "run.yaml"], catch_exceptions=False).output
        config = {"release": "latest", "corpus": corpus, "pathvars": {"results": str(tmp_path / "results")}}
        findings = list(machine.examine_source(config))
    assert "33 papers match: about 6 calls of the API, which cost nothing" in said
    assert "expand.references adds perhaps 660 papers" in said
    assert "Without a key, calls share a limit with all who have none" in said
    assert [finding.verdict for finding in findings] == ["ok", "ok"]
    assert not any("x-api-key" in request.headers for request in requests)
