"""Copies of OpenAlex: listed in each layout, and downloaded or linked to, nothing twice from its beginning."""

import json
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.corpus.made_openalex import DATE, FOLDERS, url_of, work, write_copy
from tests.releases.faults import Fault, Faults
from tests.releases.server import Arrival, serve_copy

from cocite.core.errors import InputError
from cocite.corpus.release import copies, retry
from cocite.corpus.release.copies import NAMES_OF_AUTHORS, columns_downloaded
from cocite.corpus.release.manifest import Manifest, read_manifest, write_manifest
from cocite.corpus.sources.openalex import OpenAlex

OLDER_DAY = "2026-05-01"
ALWAYS = 10**6


def works(count: int = 240) -> list[dict]:
    """Works in two partitions, with texts that hardly pack."""
    return [
        work(
            2**31 + number,
            title=f"Title {number * 7919 % 1013}",
            abstract=" ".join(str(number * factor % 9973) for factor in range(60)),
            authors=[f"Author {number * 31 % 97}"],
            fields=["Computer Science"],
            references=[2**31 + other for other in range(number % 5)],
            related_works=[url_of(number * factor % 9967) for factor in range(400)],
            updated_date=DATE if number % 3 else OLDER_DAY,
        )
        for number in range(count)
    ]


@pytest.fixture(autouse=True)
def no_file_is_small(monkeypatch):
    monkeypatch.setattr(copies, "GAP", 0)
    monkeypatch.setattr(copies, "USUAL_FOOTER", 1000)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with a copy in each layout."""
    folder = tmp_path_factory.mktemp("original")
    for layout in FOLDERS:
        write_copy(folder, layout, works(), per_file=10)
    return folder


EACH = pytest.mark.parametrize("format", FOLDERS)


@pytest.fixture
def bucket(original: Path, tmp_path: Path) -> Path:
    """Such a bucket, which a test may change."""
    return shutil.copytree(original, tmp_path / "bucket")


@contextmanager
def served(bucket: Path, format: str, **options) -> Iterator[OpenAlex]:
    with serve_copy(bucket, **options) as origin:
        yield OpenAlex(source="openalex", format=format, url=f"{origin}/{FOLDERS[format]}", jobs=1)


@contextmanager
def in_folder(bucket: Path, format: str) -> Iterator[OpenAlex]:
    yield OpenAlex(source="openalex", format=format, path=str(bucket / FOLDERS[format]))


EITHER = pytest.mark.parametrize("place", [served, in_folder])


def files_of(bucket: Path, format: str) -> dict[str, Path]:
    """The files of works, by the names that shards have."""
    folder = bucket / FOLDERS[format] / "works"
    return {f"{path.parent.name}_{path.name}": path for path in sorted(folder.glob("*/part*"))}


def fetch(source: OpenAlex, manifest: Manifest, folder: Path) -> Path:
    shards = sorted(manifest.datasets["works"].shards)
    source.fetch(manifest, "works", shards, results=folder, state=folder / "state", output=folder / "raw")
    return folder / "raw"


def needed(path: Path, names: Collection[str] = columns_downloaded(authors=False)) -> object:
    """What a Parquet file holds of the columns that are needed."""
    file = pq.ParquetFile(path)
    leaves = [column.path for column in map(file.schema.column, range(len(file.schema.names)))]
    chosen = [leaf for leaf in leaves if leaf.replace(".list.element", "") in names]
    assert len(chosen) == len(names)
    return file.read(columns=chosen).to_pylist()


@EACH
@EITHER
def test_the_works_of_a_copy_are_listed_with_their_lengths_and_the_day_of_the_copy(bucket, format, place, tmp_path):
    with place(bucket, format) as source:
        listed = source.list_release("latest", tmp_path)
    assert listed.release == DATE
    shards, files = listed.datasets["works"].shards, files_of(bucket, format)
    assert {shard.name: shard.bytes for shard in shards} == {name: file.stat().st_size for name, file in files.items()}
    assert sum(shard.records for shard in shards) == 240
    assert {shard.path for shard in shards} == {f"works/{file.parent.name}/{file.name}" for file in files.values()}


def test_the_older_layout_is_of_the_day_that_the_configuration_names(bucket, tmp_path):
    with in_folder(bucket, "legacy") as source:
        assert source.list_release("2026-06-30", tmp_path).release == "2026-06-30"
        with pytest.raises(InputError, match=f"has works that changed on {DATE}, after the release 2026-06-01"):
            source.list_release("2026-06-01", tmp_path)


def test_of_parquet_only_the_columns_that_are_needed_are_downloaded(bucket, tmp_path):
    requests: list[Arrival] = []
    with served(bucket, "parquet", requests=requests) as source:
        manifest = source.list_release(DATE, tmp_path)
        requests.clear()
        fetch(source, manifest, tmp_path)
    sent = sum(request.body_sent for request in requests)
    shards = manifest.datasets["works"].shards
    assert sent < 0.8 * sum(shard.bytes for shard in shards)
    assert sum(shard.needed for shard in shards) == pytest.approx(sent, rel=0.5)


def test_the_names_of_authors_are_downloaded_where_they_are_asked_for(bucket, tmp_path):
    with serve_copy(bucket) as origin:
        source = OpenAlex(source="openalex", url=f"{origin}/data/parquet", authors=True)
        raw = fetch(source, source.list_release(DATE, tmp_path), tmp_path)
    for name, path in files_of(bucket, "parquet").items():
        assert needed(raw / name, (NAMES_OF_AUTHORS,)) == needed(path, (NAMES_OF_AUTHORS,))


def test_a_copy_in_a_folder_is_linked_to(bucket, tmp_path):
    (bucket / "data/parquet/manifest.json").unlink()  # that of the works alone is enough
    with in_folder(bucket, "parquet") as source:
        listed = source.list_release(DATE, tmp_path)
        raw = fetch(source, listed, tmp_path)
    assert {link.name: link.resolve() for link in raw.iterdir()} == files_of(bucket, "parquet")
    write_manifest(tmp_path / "manifest.json", listed)
    assert read_manifest(tmp_path / "manifest.json") == listed
    assert "s3://" not in (tmp_path / "manifest.json").read_text()


def places(requests: list[Arrival], path: str) -> Iterator[int]:
    """The bytes that were sent of a file."""
    for request in requests:
        asked = re.fullmatch(r"bytes=(\d+)-\d*", request.range)
        if request.path.endswith(path) and asked and request.status == 206:
            yield from range(int(asked[1]), int(asked[1]) + request.body_sent)


def assert_all_arrived_once(bucket: Path, format: str, manifest: Manifest, raw: Path, requests: list[Arrival]) -> None:
    """No byte came twice; but for the footer of Parquet, which a run that breaks off while it comes asks for again."""
    files = files_of(bucket, format)
    assert {file.name for file in raw.iterdir()} == files.keys()
    for shard in manifest.datasets["works"].shards:
        file, end = files[shard.name], shard.bytes
        assert (raw / shard.name).stat().st_size == file.stat().st_size
        if format == "parquet":
            assert needed(raw / shard.name) == needed(file)
            end -= pq.read_metadata(file).serialized_size + 8
        else:
            assert (raw / shard.name).read_bytes() == file.read_bytes()
        sent = [place for place in places(requests, shard.path) if place < end]
        assert len(sent) == len(set(sent)), file


@EACH
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_from_a_server_on_a_bad_day_everything_arrives_and_nothing_twice(bucket, format, seed, tmp_path, monkeypatch):
    monkeypatch.setenv("S2_API_KEY", "a-key-that-must-stay-secret")
    monkeypatch.setattr(retry, "TIMEOUT", (10.0, 0.3))
    monkeypatch.setattr(retry, "RETRIES", 10)
    requests: list[Arrival] = []
    faults = Faults(share=0.5, seed=seed, retry_after="0")
    with served(bucket, format, requests=requests, faults=faults) as source:
        manifest = source.list_release(DATE, tmp_path)
        listing = len(requests)
        raw = fetch(source, manifest, tmp_path)
    assert len({request.fault for request in requests} - {None, Fault.ALL_LAPSED}) >= 3
    assert "a-key-that-must-stay-secret" not in str(requests)
    assert_all_arrived_once(bucket, format, manifest, raw, requests[listing:])


class Stopping(list[Arrival]):
    """The requests of a server that breaks off every answer, and gives none after some."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = Faults(cuts=ALWAYS, cut_after=700)

    def append(self, arrival: Arrival) -> None:
        super().append(arrival)
        self.faults.storage_unavailable = ALWAYS if len(self) > 5 else 0


@EACH
def test_a_later_run_fetches_only_what_an_earlier_one_did_not(bucket, format, tmp_path):
    with in_folder(bucket, format) as source:
        manifest = source.list_release(DATE, tmp_path)
    first, second = Stopping(), list[Arrival]()
    with served(bucket, format, faults=first.faults, requests=first) as source, pytest.raises(InputError, match="503"):
        fetch(source, manifest, tmp_path)
    with served(bucket, format, requests=second) as source:
        raw = fetch(source, manifest, tmp_path)
    assert_all_arrived_once(bucket, format, manifest, raw, [*first, *second])


def gone(path: Path) -> str:
    path.unlink()
    return rf"works/{path.parent.name}/{path.name} is not in the copy at (http://\S*|{path.parents[2]}), "


def of_another_length(path: Path) -> str:
    path.write_bytes(path.read_bytes() * 2)
    return rf"{path.name} (has|in the copy)"


@EACH
@EITHER
@pytest.mark.parametrize("change", [gone, of_another_length])
def test_a_file_that_has_changed_since_it_was_listed_is_named_with_what_to_do(bucket, format, place, change, tmp_path):
    with place(bucket, format) as source:
        manifest = source.list_release(DATE, tmp_path)
        said = change(next(iter(files_of(bucket, format).values())))
        with pytest.raises(InputError, match=rf"{said}.*delete the manifest") as caught:
            fetch(source, manifest, tmp_path)
    assert str(caught.value).count(". ") == 0


def files_in(content: dict) -> list[dict]:
    return content["entities"][0]["files"]


OUTSIDE = "s3://openalex/data/jsonl/works/../x.gz"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content["entities"].pop(0), "lists authors and no works"),
        (lambda content: files_in(content).clear(), "lists no file of works"),
        (lambda content: content.pop("date"), r"is no manifest .* \(date: Field required"),
        (lambda content: files_in(content)[0].pop("meta"), "is no manifest of a copy"),
        (lambda content: files_in(content)[0].update(url=OUTSIDE), f"lists {OUTSIDE}, which is no file of works"),
        (lambda content: files_in(content).append(files_in(content)[0]), "twice"),
        (lambda content: content.update(date="2026-06-25"), "is of 2026-06-25, and release is 2026-06-24; set release"),
    ],
)
def test_a_manifest_that_is_none_of_works_is_refused(bucket, change, said, tmp_path):
    path = bucket / "data/jsonl/manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with in_folder(bucket, "jsonl") as source, pytest.raises(InputError, match=said):
        source.list_release(DATE, tmp_path)


@EACH
def test_a_folder_that_holds_no_copy_is_named_with_the_keys_to_check(format, tmp_path):
    with pytest.raises(InputError, match=rf"copy at {tmp_path} has no .*corpus\.format, which is {format}"):
        OpenAlex(source="openalex", format=format, path=str(tmp_path)).list_release(DATE, tmp_path)
    with serve_copy(tmp_path) as origin, pytest.raises(InputError, match=r"has no .*check corpus\.url"):
        OpenAlex(source="openalex", format=format, url=origin).list_release(DATE, tmp_path)


def test_a_parquet_file_without_its_end_is_refused_when_it_is_listed(bucket, tmp_path):
    for path in files_of(bucket, "parquet").values():
        path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    with in_folder(bucket, "parquet") as source, pytest.raises(InputError, match="does not end as a Parquet file of"):
        source.list_release(DATE, tmp_path)
