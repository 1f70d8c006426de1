"""Listing a release, or the diffs that lead to it: what the manifest holds, and why it cannot be made."""

import json
import shutil
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from tests.corpus.conftest import QuietHandler
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve
from tests.releases.successor import generate_successor
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import Corpus
from cocite.config.release_folder import DATASETS
from cocite.config.settings import validated
from cocite.core.errors import InputError
from cocite.corpus.release import client, retry
from cocite.corpus.release.client import DatasetsApi
from cocite.corpus.release.manifest import Dataset, Manifest, read_manifest, shards_of_part, write_manifest
from cocite.corpus.release.plan import download, list_shards
from cocite.corpus.sources.demo import Demo
from cocite.corpus.sources.directory import Directory
from cocite.corpus.sources.s2 import SemanticScholar
from cocite.demo.release import generate_release

RELEASE = "2026-01-06"


@pytest.fixture
def list_release(tmp_path):
    def list_release_at(origin: str, release: str) -> Manifest:
        if origin.startswith("http"):
            return SemanticScholar(source="s2", api=origin).list_release(release, tmp_path)
        return Directory(source="directory", path=origin).list_release(release, tmp_path)

    return list_release_at


def test_the_api_and_the_folder_behind_it_give_the_same_shards(list_release, release, key):
    with serve(release, key=key) as origin:
        listed = list_release(origin, RELEASE)
    assert listed.datasets.keys() == {"papers", "abstracts", "citations"}
    for name, dataset in list_release(str(release), RELEASE).datasets.items():
        assert listed.datasets[name].shards == dataset.shards
        on_disk = sorted((file.name, file.stat().st_size) for file in (release / name).iterdir())
        assert [(shard.name, shard.bytes) for shard in dataset.shards] == on_disk


def test_the_shards_of_the_demo_are_those_of_the_release_that_was_generated(release, tmp_path):
    generated = tmp_path / "demo" / "release"
    shutil.copytree(release, generated)
    demo = Demo(source="demo")
    manifest = demo.list_release(RELEASE, tmp_path)
    shards = shards_of_part(manifest, "papers", part=1, parts=3)
    demo.fetch(manifest, "papers", shards, results=tmp_path, state=tmp_path / "state", output=tmp_path / "raw")
    (shard,) = (tmp_path / "raw").iterdir()
    assert shard.read_bytes() == (generated / "papers" / shard.name).read_bytes()


def test_the_manifest_is_the_same_at_every_listing_and_holds_neither_link_nor_key(release, key, tmp_path):
    with serve(release, key=key) as origin:
        for name in ("first", "second"):
            settings = json.dumps({"source": "s2", "api": origin})
            arguments = ["corpus", "list", "--settings", settings, "--release", RELEASE]
            arguments += ["--results", str(tmp_path), "--output", str(tmp_path / name)]
            assert CliRunner().invoke(app, arguments).exit_code == 0
    text = (tmp_path / "first").read_text()
    assert text == (tmp_path / "second").read_text()
    assert not any(secret in text for secret in ("://", "Signature", key))


@pytest.mark.parametrize("through_api", [True, False])
def test_latest_is_pinned_to_a_date_and_the_readme_of_a_dataset_is_kept(list_release, release, key, through_api):
    (release / "papers" / "README.txt").write_text("Cite Kinney et al.")
    with serve(release, key=key) as origin:
        listed = list_release(origin if through_api else str(release), "latest")
    assert (listed.release, listed.datasets["papers"].readme) == (RELEASE, "Cite Kinney et al.")


def test_every_shard_belongs_to_exactly_one_part(list_release, release):
    (release / "papers/._20260101_000000_00000_papers.gz").write_bytes(b"what a Mac notes of a file, which is no shard")
    manifest = list_release(str(release), RELEASE)
    parts = [shards_of_part(manifest, "papers", part=part, parts=2) for part in range(2)]
    assert [len(part) for part in parts] == [2, 1]
    assert sorted(shard for part in parts for shard in part) == list(manifest.datasets["papers"].shards)


def test_without_a_key_the_error_says_how_to_get_one_and_a_folder_needs_none(list_release, release, key, monkeypatch):
    monkeypatch.delenv("S2_API_KEY")
    assert list_release(str(release), RELEASE).release == RELEASE
    with serve(release, key=key) as origin, pytest.raises(InputError, match=r"S2_API_KEY is not set.*export"):
        list_release(origin, RELEASE)


@pytest.mark.parametrize("given", ["another-key", "broken\nkey", "clé"])
def test_a_wrong_key_is_refused_without_being_shown(list_release, release, key, monkeypatch, given):
    monkeypatch.setenv("S2_API_KEY", given)
    with serve(release, key=key) as origin, pytest.raises(InputError, match="S2_API_KEY") as caught:
        list_release(origin, RELEASE)
    assert given not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("through_api", [True, False])
def test_an_unknown_release_is_named_with_those_that_exist(list_release, release, key, through_api):
    with serve(release, key=key) as origin, pytest.raises(InputError, match=f"2024-02-30 does not exist.*{RELEASE}"):
        list_release(origin if through_api else str(release), "2024-02-30")


@pytest.mark.parametrize("through_api", [True, False])
def test_a_release_without_a_dataset_is_refused(list_release, release, key, through_api):
    (release / "abstracts").rename(release.parent / "elsewhere")
    (release / "release.json").write_text(json.dumps({"release_id": RELEASE, "datasets": ["papers", "citations"]}))
    with serve(release, key=key) as origin, pytest.raises(InputError, match=f"{RELEASE} lacks the dataset abstracts"):
        list_release(origin if through_api else str(release), RELEASE)


def test_an_api_that_never_recovers_is_given_up(list_release, release, key):
    requests: list[Arrival] = []
    with (
        serve(release, key=key, faults=Faults(api_unavailable=1000), requests=requests) as origin,
        pytest.raises(InputError, match="answers with status 503, even after 4 retries"),
    ):
        list_release(origin, RELEASE)
    assert len(requests) == 1 + retry.RETRIES


def test_a_place_where_nothing_is_is_named(list_release, tmp_path):
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 cannot be reached"):
        list_release("http://127.0.0.1:9/datasets/v1", RELEASE)
    with pytest.raises(InputError, match="nowhere does not exist"):
        list_release(str(tmp_path / "nowhere"), RELEASE)


def test_the_key_does_not_follow_a_redirect_to_another_host(serve_handler, key, tmp_path):
    seen: dict[str, str | None] = {}

    class Elsewhere(QuietHandler):
        def respond(self):
            seen["elsewhere"] = self.headers.get("x-api-key")
            self.send(200, b"[]")

    with serve_handler(Elsewhere) as elsewhere:

        class Redirecting(QuietHandler):
            def respond(self):
                if self.path.endswith("/here"):
                    seen["here"] = self.headers.get("x-api-key")
                onward = elsewhere if self.path.endswith("/here") else f"{self.path}here"
                self.send(307, headers={"Location": onward})

        with serve_handler(Redirecting) as origin:
            assert DatasetsApi(origin, tmp_path / "turns").releases() == []
    assert seen == {"here": key, "elsewhere": None}


def test_a_password_of_the_api_is_read_from_netrc_and_is_in_no_message(tmp_path, serve_handler, key, monkeypatch):
    class Guarded(QuietHandler):
        def respond(self):
            is_known = self.headers.get("Authorization") == f"Basic {b64encode(b'user:secret').decode()}"
            self.send(*((200, b"[]") if is_known else (404, b"")))

    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve_handler(Guarded) as origin:
        api = DatasetsApi(origin, tmp_path / "turns")
        assert api.releases() == []
        (tmp_path / "netrc").write_text("")
        with pytest.raises(InputError) as refused:
            api.releases()
    assert "secret" not in str(refused.value)


class Answering(QuietHandler):
    """An API that gives the same answers as JSON, by the end of the path."""

    answers: ClassVar[dict[str, object]] = {}

    def respond(self):
        answer = next(answer for end, answer in self.answers.items() if self.path.endswith(end))
        self.send(200, json.dumps(answer).encode())


SUMMARIES = {
    "release_id": RELEASE,
    "datasets": [{"name": name, "README": ""} for name in ("papers", "abstracts", "citations")],
}
SIGNED = "http://127.0.0.1:9/part-{}/data.gz?Signature=x"


ODD_ANSWERS = [
    *((answer, "release_id: Field required") for answer in ({}, {"message": "Try later"})),
    ([], "Input should be a valid dictionary"),
    ({"release_id": RELEASE, "datasets": ["papers"]}, r"datasets\.0: "),
    *(({"README": "", "files": files}, "files") for files in ([5], None, "shard", [SIGNED.format(0), 5])),
]


@pytest.mark.parametrize(("answer", "expected"), ODD_ANSWERS)
def test_an_answer_of_another_shape_is_reported_with_the_host_and_no_link(
    list_release, serve_handler, key, answer, expected
):
    answers = {RELEASE: SUMMARIES, "papers": answer} if "README" in answer else {RELEASE: answer}
    handler = type("Odd", (Answering,), {"answers": answers})
    message = rf"127\.0\.0\.1:\d+ answers release/2026-01-06.* expected \({expected}"
    with serve_handler(handler) as origin, pytest.raises(InputError, match=message) as caught:
        list_release(origin, RELEASE)
    assert "Signature" not in str(caught.value)
    assert key not in str(caught.value)


def test_two_shards_of_one_name_are_refused(list_release, serve_handler):
    listed = {"README": "", "files": [SIGNED.format(0), SIGNED.format(1)]}
    handler = type("Doubled", (Answering,), {"answers": {RELEASE: SUMMARIES, "papers": listed}})
    message = rf"Release {RELEASE}: the dataset papers lists several shards named data\.gz"
    with serve_handler(handler) as origin, pytest.raises(InputError, match=message) as caught:
        list_release(origin, RELEASE)
    assert "Signature" not in str(caught.value)


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


def whole(release: str) -> Manifest:
    return Manifest(release=release, datasets=dict.fromkeys(DATASETS, Dataset(shards=(), readme="")))


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
        assert sorted(files) == sorted(
            path for kind in ("updates", "deletes") for path in newest.glob(f"{kind}/*/{name}/*")
        )
    write_manifest(tmp_path / "manifest.json", manifest)
    assert read_manifest(tmp_path / "manifest.json") == manifest
    assert "://" not in (tmp_path / "manifest.json").read_text()


def test_links_that_have_lapsed_are_found_again_by_step_and_kind(newest, key, tmp_path):
    requests: list[Arrival] = []
    write_manifest(tmp_path / "base/corpus/manifest.json", whole(RELEASES[0]))

    def asked(origin: str) -> dict[str, object]:
        source = {"source": "s2", "api": origin, "base": str(tmp_path / "base")}
        return {"settings": validated(Corpus, source), "results": tmp_path}

    with serve(newest, key=key) as origin:
        list_shards(**asked(origin), release=RELEASES[2], output=tmp_path / "manifest")
    with serve(newest, key=key, faults=Faults(lapsed_listings=2), requests=requests) as origin:
        where = {"manifest": tmp_path / "manifest", "part": 0, "parts": 1, "state": tmp_path / "state"}
        download("papers", **asked(origin), **where, output=tmp_path / "raw")
    assert sum("/diffs/" in request.path for request in requests) == 3
    shards = read_manifest(tmp_path / "manifest").datasets["papers"].shards
    assert {file.name for file in (tmp_path / "raw").iterdir()} == {shard.name for shard in shards}
    for shard in shards:
        assert (tmp_path / "raw" / shard.name).read_bytes() == file_of(shard, "papers", newest).read_bytes()


@pytest.mark.parametrize("since", [RELEASES[2], "2026-02-01"])
def test_a_release_that_is_not_later_is_refused(newest, key, tmp_path, since):
    with (
        serve(newest, key=key) as origin,
        pytest.raises(InputError, match=f"Release {RELEASES[2]} is not later than {since}"),
    ):
        client.list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", since)


def test_a_release_that_no_diff_leads_on_from_is_named(newest, key, tmp_path):
    message = f"no diffs of papers from release 2025-01-01 to {RELEASES[2]}; ingest {RELEASES[2]} whole"
    with serve(newest, key=key) as origin, pytest.raises(InputError, match=message):
        client.list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", "2025-01-01")


@pytest.mark.parametrize("steps", ["AB XY BC", "XY AC", "AB"])
def test_diffs_that_do_not_follow_on_are_refused(steps):
    diffs = [SimpleNamespace(from_release=of, to_release=to, update_files=[]) for of, to in steps.split()]
    api = SimpleNamespace(diffs=lambda *_: SimpleNamespace(diffs=diffs))
    with pytest.raises(InputError, match="and not on to C; ingest that release whole"):
        list(client.RemoteDataset(api, "C", "papers", "A").shards())


def test_diffs_with_a_gap_are_refused(newest, key, tmp_path, monkeypatch):
    complete = DatasetsApi.diffs

    def without_the_second_step(self, *names):
        answer = complete(self, *names)
        return answer.model_copy(update={"diffs": answer.diffs[:1]})

    monkeypatch.setattr(DatasetsApi, "diffs", without_the_second_step)
    message = f"from release {RELEASES[0]} lead to {RELEASES[1]} and not on to {RELEASES[2]}"
    with serve(newest, key=key) as origin, pytest.raises(InputError, match=message):
        client.list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", RELEASES[0])
