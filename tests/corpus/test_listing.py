"""Listing a release, or the diffs that lead to it: what the manifest holds, and why it cannot be made."""

import json
import re
import shutil
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve
from tests.releases.successor import generate_successor

from cocite.config.configuration import Corpus
from cocite.config.release_folder import DATASETS
from cocite.config.settings import validated
from cocite.core.errors import InputError
from cocite.corpus.release import client
from cocite.corpus.release.client import DatasetsApi
from cocite.corpus.release.manifest import Dataset, Manifest, read_manifest, shards_of_part, write_manifest
from cocite.corpus.release.plan import download, list_shards
from cocite.corpus.sources.demo import Demo
from cocite.corpus.sources.directory import Directory
from cocite.corpus.sources.s2 import SemanticScholar
from cocite.demo.release import generate_release

RELEASE = "2026-01-06"
EITHER = pytest.mark.parametrize("through_api", [True, False])


@pytest.fixture
def list_at(tmp_path):
    return lambda origin, name=RELEASE: SemanticScholar(source="s2", api=origin).list_release(name, tmp_path)


@pytest.fixture
def list_release(release, key, list_at, tmp_path):
    """List the release at the API that serves it, or in its folder."""

    def list_release(name: str = RELEASE, *, through_api: bool = True) -> Manifest:
        if not through_api:
            return Directory(source="directory", path=str(release)).list_release(name, tmp_path)
        with serve(release, key=key) as origin:
            return list_at(origin, name)

    return list_release


def test_the_api_and_the_folder_behind_it_give_the_same_shards_at_every_listing(list_release, release, tmp_path):
    listed = list_release()
    assert list_release() == listed
    assert listed.datasets.keys() == {"papers", "abstracts", "citations"}
    for name, dataset in list_release(through_api=False).datasets.items():
        assert listed.datasets[name].shards == dataset.shards
        on_disk = sorted((file.name, file.stat().st_size) for file in (release / name).iterdir())
        assert [(shard.name, shard.bytes) for shard in dataset.shards] == on_disk


def test_the_shards_of_the_demo_are_those_of_the_release_that_was_generated(release, tmp_path):
    shutil.copytree(release, tmp_path / "demo" / "release")
    demo = Demo(source="demo")
    manifest = demo.list_release(RELEASE, tmp_path)
    shards = shards_of_part(manifest, "papers", part=1, parts=3)
    demo.fetch(manifest, "papers", shards, results=tmp_path, state=tmp_path / "state", output=tmp_path / "raw")
    (shard,) = (tmp_path / "raw").iterdir()
    assert shard.read_bytes() == (release / "papers" / shard.name).read_bytes()


@EITHER
def test_latest_is_pinned_to_a_date_and_the_readme_of_a_dataset_is_kept(list_release, release, through_api):
    (release / "papers" / "README.txt").write_text("Cite Kinney et al.")
    listed = list_release("latest", through_api=through_api)
    assert (listed.release, listed.datasets["papers"].readme) == (RELEASE, "Cite Kinney et al.")


def test_every_shard_belongs_to_exactly_one_part(list_release, release):
    (release / "papers/._20260101_000000_00000_papers.gz").write_bytes(b"what a Mac notes of a file, which is no shard")
    manifest = list_release(through_api=False)
    parts = [shards_of_part(manifest, "papers", part=part, parts=2) for part in range(2)]
    assert [len(part) for part in parts] == [2, 1]
    assert sorted(shard for part in parts for shard in part) == list(manifest.datasets["papers"].shards)


def test_without_a_key_the_error_says_how_to_get_one_and_a_folder_needs_none(list_release, monkeypatch):
    monkeypatch.delenv("S2_API_KEY")
    assert list_release(through_api=False).release == RELEASE
    with pytest.raises(InputError, match=r"S2_API_KEY is not set.*export"):
        list_release()


@pytest.mark.parametrize("given", ["another-key", "broken\nkey", "clé"])
def test_a_wrong_key_is_refused_without_being_shown(list_release, monkeypatch, given):
    monkeypatch.setenv("S2_API_KEY", given)
    with pytest.raises(InputError, match="S2_API_KEY") as caught:
        list_release()
    assert given not in str(caught.value)
    assert caught.value.__cause__ is None


@EITHER
def test_a_release_that_is_unknown_or_lacks_a_dataset_is_named(list_release, release, through_api):
    with pytest.raises(InputError, match=f"2024-02-30 does not exist.*{RELEASE}"):
        list_release("2024-02-30", through_api=through_api)
    (release / "abstracts").rename(release.parent / "elsewhere")
    (release / "release.json").write_text(json.dumps({"release_id": RELEASE, "datasets": ["papers", "citations"]}))
    with pytest.raises(InputError, match=f"{RELEASE} lacks the dataset abstracts"):
        list_release(through_api=through_api)


def test_a_place_where_nothing_is_is_named(list_at, tmp_path):
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 cannot be reached"):
        list_at("http://127.0.0.1:9/datasets/v1")
    with pytest.raises(InputError, match="nowhere does not exist"):
        Directory(source="directory", path=str(tmp_path / "nowhere")).list_release(RELEASE, tmp_path)


def test_a_password_of_the_api_is_read_from_netrc_and_is_in_no_message(tmp_path, serve_answers, monkeypatch):
    def answer(request):
        is_known = request.headers.get("Authorization") == f"Basic {b64encode(b'user:secret').decode()}"
        return (200, b"[]") if is_known else (404, b"")

    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with serve_answers(answer) as origin:
        api = DatasetsApi(origin, tmp_path / "turns")
        assert api.releases() == []
        netrc.write_text("")
        with pytest.raises(InputError) as refused:
            api.releases()
    assert "secret" not in str(refused.value)


SUMMARIES = {"release_id": RELEASE, "datasets": [{"name": name, "README": ""} for name in DATASETS]}
LINKS = [f"http://127.0.0.1:9/part-{part}/data.gz?Signature=x" for part in range(2)]
EXPECTED = rf"127\.0\.0\.1:\d+ answers release/{RELEASE}.* expected \("


@pytest.mark.parametrize(
    ("summaries", "files", "message"),
    [
        ({}, None, f"{EXPECTED}release_id: Field required"),
        ({"message": "Try later"}, None, f"{EXPECTED}release_id: Field required"),
        ([], None, f"{EXPECTED}Input should be a valid dictionary"),
        ({"release_id": RELEASE, "datasets": ["papers"]}, None, rf"{EXPECTED}datasets\.0: "),
        *((SUMMARIES, files, f"{EXPECTED}files") for files in ([5], None, "shard", [LINKS[0], 5])),
        (SUMMARIES, LINKS, rf"Release {RELEASE}: the dataset papers lists several shards named data\.gz"),
    ],
)
def test_an_answer_of_another_shape_is_reported_with_the_host_and_no_link(
    list_at, serve_answers, key, summaries, files, message
):
    def answer(request):
        is_of_papers = request.path.endswith("papers")
        return 200, json.dumps({"README": "", "files": files} if is_of_papers else summaries).encode()

    with serve_answers(answer) as origin, pytest.raises(InputError, match=message) as caught:
        list_at(origin)
    assert "Signature" not in str(caught.value)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("datasets", "message"),
    [(None, "is not a manifest"), (("papers", "citations"), "lacks the dataset abstracts")],
)
def test_a_file_that_is_no_whole_manifest_is_named(tmp_path, datasets, message):
    content = {} if datasets is None else {"datasets": {name: {"shards": [], "readme": ""} for name in datasets}}
    (tmp_path / "other.json").write_text(json.dumps({"release": RELEASE, **content}))
    with pytest.raises(InputError, match=rf"other\.json: {message}"):
        read_manifest(tmp_path / "other.json")


RELEASES = ("2026-01-06", "2026-01-13", "2026-01-20")


@pytest.fixture(scope="module")
def newest(tmp_path_factory):
    """A release that follows two others, with the diffs from each to the next."""
    folders = [tmp_path_factory.mktemp("releases") / release for release in RELEASES]
    generate_release(folders[0], release=RELEASES[0], papers=200, topics=6, shards=2, seed=7)
    for older, newer in pairwise(folders):
        generate_successor(older, newer, release=newer.name, share=0.01, seed=7)
    return folders[-1]


def file_of(shard, dataset: str, folder: Path) -> Path:
    """The file in the folder of the release that a shard of a diff must be."""
    kind = "deletes" if shard.deletes else "updates"
    older, newer = RELEASES[shard.step - 1], RELEASES[shard.step]
    (path,) = (folder / kind / f"{older}-to-{newer}" / dataset).glob(f"*{shard.name.rpartition('_')[2]}")
    return path


@pytest.mark.parametrize("release", [RELEASES[2], "latest"])
def test_every_file_of_every_step_is_listed_with_its_size(newest, key, tmp_path, release):
    with serve(newest, key=key) as origin:
        manifest = client.list_release(DatasetsApi(origin, tmp_path / "turns"), release, RELEASES[0])
    assert (manifest.since, manifest.release) == (RELEASES[0], RELEASES[2])
    for name, dataset in manifest.datasets.items():
        files = [file_of(shard, name, newest) for shard in dataset.shards]
        assert [shard.bytes for shard in dataset.shards] == [file.stat().st_size for file in files]
        on_disk = [path for kind in ("updates", "deletes") for path in newest.glob(f"{kind}/*/{name}/*")]
        assert sorted(files) == sorted(on_disk)
    write_manifest(tmp_path / "manifest.json", manifest)
    assert read_manifest(tmp_path / "manifest.json") == manifest
    assert "://" not in (tmp_path / "manifest.json").read_text()


def test_links_that_have_lapsed_are_found_again_by_step_and_kind(newest, key, tmp_path):
    arrivals: list[Arrival] = []
    base = Manifest(release=RELEASES[0], datasets=dict.fromkeys(DATASETS, Dataset(shards=(), readme="")))
    write_manifest(tmp_path / "base/corpus/manifest.json", base)

    def asked(origin: str) -> dict[str, object]:
        source = {"source": "s2", "api": origin, "base": str(tmp_path / "base")}
        return {"settings": validated(Corpus, source), "results": tmp_path}

    with serve(newest, key=key) as origin:
        list_shards(**asked(origin), release=RELEASES[2], output=tmp_path / "manifest")
    with serve(newest, key=key, faults=Faults(lapsed_listings=2), requests=arrivals) as origin:
        where = {"manifest": tmp_path / "manifest", "part": 0, "parts": 1, "state": tmp_path / "state"}
        download("papers", **asked(origin), **where, output=tmp_path / "raw")
    assert sum("/diffs/" in request.path for request in arrivals) == 3
    shards = read_manifest(tmp_path / "manifest").datasets["papers"].shards
    assert {file.name for file in (tmp_path / "raw").iterdir()} == {shard.name for shard in shards}
    for shard in shards:
        assert (tmp_path / "raw" / shard.name).read_bytes() == file_of(shard, "papers", newest).read_bytes()


def test_the_server_of_the_tests_gives_diffs_the_keys_of_the_published_description(newest, key, shared):
    described = (shared / "data/s2-openapi/semantic-scholar-datasets-openapi.yml").read_text()
    with serve(newest, key=key) as origin:
        path = f"{origin}/diffs/{RELEASES[0]}/to/latest/papers"
        answer = requests.get(path, headers={"x-api-key": key}, timeout=5).json()
    for name in [*answer, *answer["diffs"][0]]:
        assert re.search(rf"^ +{name}:$", described, re.MULTILINE)


@pytest.mark.parametrize(
    ("since", "message"),
    [
        (RELEASES[2], f"Release {RELEASES[2]} is not later than {RELEASES[2]}"),
        ("2026-02-01", f"Release {RELEASES[2]} is not later than 2026-02-01"),
        ("2025-01-01", f"no diffs of papers from release 2025-01-01 to {RELEASES[2]}; ingest {RELEASES[2]} whole"),
    ],
)
def test_a_release_that_no_diffs_lead_to_is_refused(newest, key, tmp_path, since, message):
    with serve(newest, key=key) as origin, pytest.raises(InputError, match=message):
        client.list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", since)


@pytest.mark.parametrize(("steps", "reached"), [("AB XY BC", "B"), ("XY AC", "A"), ("AB", "B")])
def test_diffs_that_do_not_follow_on_are_refused(steps, reached):
    diffs = [SimpleNamespace(from_release=of, to_release=to, update_files=[]) for of, to in steps.split()]
    api = SimpleNamespace(diffs=lambda *_: SimpleNamespace(diffs=diffs))
    message = f"of papers from release A lead to {reached} and not on to C; ingest that release whole"
    with pytest.raises(InputError, match=message):
        list(client.RemoteDataset(api, "C", "papers", "A").shards())
