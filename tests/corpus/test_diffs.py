"""Diffs at the API: listed in their order, distinguished though their names are alike, found again when links lapse."""

from itertools import pairwise
from pathlib import Path

import pytest
from tests.releases.faults import Faults
from tests.releases.server import Arrival, serve
from tests.releases.successor import generate_successor

from cocite.config.configuration import Corpus
from cocite.config.release_folder import DATASETS
from cocite.config.settings import validated
from cocite.core.errors import InputError
from cocite.corpus.release.client import DatasetsApi
from cocite.corpus.release.manifest import Dataset, Manifest, read_manifest, write_manifest
from cocite.corpus.release.plan import download, list_shards
from cocite.corpus.release.remote import list_release
from cocite.demo.release import generate_release

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
        manifest = list_release(DatasetsApi(origin, tmp_path / "turns"), release, RELEASES[0])
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
        list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", since)


def test_a_release_that_no_diff_leads_on_from_is_named(newest, key, tmp_path):
    message = f"no diffs of papers from release 2025-01-01 to {RELEASES[2]}; ingest {RELEASES[2]} whole"
    with serve(newest, key=key) as origin, pytest.raises(InputError, match=message):
        list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", "2025-01-01")


def test_diffs_with_a_gap_are_refused(newest, key, tmp_path, monkeypatch):
    from cocite.corpus.release.client import DatasetsApi

    complete = DatasetsApi.diffs

    def without_the_second_step(self, *names):
        answer = complete(self, *names)
        return answer.model_copy(update={"diffs": answer.diffs[:1]})

    monkeypatch.setattr(DatasetsApi, "diffs", without_the_second_step)
    message = f"from release {RELEASES[0]} lead to {RELEASES[1]} and not on to {RELEASES[2]}"
    with serve(newest, key=key) as origin, pytest.raises(InputError, match=message):
        list_release(DatasetsApi(origin, tmp_path / "turns"), "latest", RELEASES[0])
