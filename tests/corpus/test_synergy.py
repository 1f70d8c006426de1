"""`make synergy`, from a server of this machine in the layout of the archive to the corpus of the experiment."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.corpus.conftest import QuietHandler
from tests.corpus.made import make_corpus
from tests.corpus.made_openalex import work
from tests.workflow.conftest import ROOT

AT = ":persistentId/versions/1.0?persistentId=doi:10.34894/HE6NAQ"
REDIRECTION = """
import os
import synergy_dataset.base as base
base.DATAVERSE_RETRY_BACKOFF = 0
get = base.requests.get
base.requests.get = lambda url, **options: get(url.replace("https://dataverse.nl", os.environ["ARCHIVE"]), **options)
"""
"""The process of the library imports this first, so that its requests go to this machine."""

Paper = tuple[int, str | None, str | None, int | None, list[int]]
"""Number, title, abstract, year and references."""
IN_TWO_REVIEWS: Paper = (4_200_000_001, "In two reviews", "Once is enough, once.", 2019, [11, 12])
REVIEWS: dict[str, list[Paper]] = {
    "Chou_2004": [
        (11, 'A “title”, with commas, "quotes" and [brackets]', "the pain of the many and the few", 1999, []),
        (12, "It's both: ' and \"", "Ünïcode — and 'quotes', \"too\"; [1, 2]", 2003, [11, 77, 4_200_000_002]),
        IN_TWO_REVIEWS,
    ],
    "Donners_2021": [(21, "Only a title", None, 2001, [11])],
    "Jeyaraman_2020": [(22, "Cites itself", "Text.", 2002, [22, 11])],
    "Meijboom_2021": [(23, "Cites one paper twice", "Text.", 2003, [11, 11])],
    "Menon_2022": [(24, "Has many references", "Text.", None, list(range(100, 3100)))],
    "Nelson_2002": [(25, "Dated", "Text.", 2005, []), (26, "Undated", "Text.", None, [25])],
    "Oud_2018": [(27, "NA", "None", 2007, [26])],
    "Sep_2021": [(28, None, "Without a title.", 2020, [12])],
    "van_der_Valk_2021": [IN_TWO_REVIEWS, (29, "The last", "Text.", 2021, [28, 88])],
    "Bos_2018": [(30, "In a review that is not among the nine", "Text.", 2018, [11])],
}
NINE = [name for name in REVIEWS if name != "Bos_2018"]


def packed(files: dict[str, str | bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


def as_work(paper: Paper) -> dict[str, Any]:
    number, title, abstract, year, references = paper
    return work(number, title=title, abstract=abstract, year=year, references=references, doi=f"10.1/{number}")


def dataset() -> bytes:
    """The archive of the dataset: a folder for each review, with labels, metadata and packed works."""
    files: dict[str, str | bytes] = {"MANIFEST.TXT": "synergy-dataset-v1.0\n"}
    for name, papers in REVIEWS.items():
        works, folder = [as_work(paper) for paper in papers], f"synergy-dataset-v1.0/{name}"
        labels = [f"{each['id']},{each['doi']},,{at % 2}\n" for at, each in enumerate(works)]
        counts = {"n_records": len(works), "n_records_included": len(works) // 2}
        files[f"{folder}/labels.csv"] = "".join(["openalex_id,doi,pmid,label_included\n", *labels])
        files[f"{folder}/metadata.json"] = json.dumps({"key": name, "publication": {}, "data": counts})
        files[f"{folder}/metadata_publication.json"] = json.dumps(as_work((900, name, "A review.", 2022, [])))
        files[f"{folder}/CITATION.txt"] = "A citation."
        for part, some in enumerate((works[:1], works[1:]), 1):
            files[f"{folder}/works_{part}.zip"] = packed({f"works_{part}.json": json.dumps(some)})
    return packed(files)


class Archive(QuietHandler):
    """Sends the dataset, or what a test puts in its place, and a list of its files."""

    content, kind = b"", ""

    def respond(self) -> None:
        if self.path == f"/api/access/dataset/{AT}":
            self.send(200, self.content, {"Content-Type": self.kind})
        elif self.path == f"/api/datasets/{AT}":
            files = [{"dataFile": {"id": 7, "filename": "labels.csv"}}]
            self.send(200, json.dumps({"data": {"files": files}}).encode(), {"Content-Type": "application/json"})
        else:
            self.send(404)


@pytest.fixture
def make(tmp_path: Path, serve_handler: Any) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs `make synergy` into data/synergy of a folder, with a given answer of the archive."""
    command = ["make", "-C", ROOT, f"PYTHON={sys.executable}", f"SYNERGY={tmp_path}/data/synergy"]
    subprocess.run([*command, f"{tmp_path}/data/synergy/venv/bin/synergy"], check=True)
    Path(tmp_path, "sitecustomize.py").write_text(REDIRECTION)
    with serve_handler(Archive) as origin:

        def make(content: bytes, kind: str) -> subprocess.CompletedProcess[str]:
            Archive.content, Archive.kind = content, kind
            surroundings = os.environ | {"ARCHIVE": origin, "PYTHONPATH": str(tmp_path)}
            return subprocess.run([*command, "synergy"], env=surroundings, capture_output=True, text=True, check=False)

        yield make


@pytest.mark.long  # installs the library from the package index
def test_make_synergy_gives_the_corpus_of_the_experiment_and_a_bad_download_a_sentence(make, tmp_path, monkeypatch):
    tables = tmp_path / "data/synergy/tables"
    page = b"<!DOCTYPE html><title>Maintenance</title>"
    for content, kind, reason in [
        (page, "text/html;charset=UTF-8", "got an HTML response"),
        (page, "application/zip", "File is not a zip file"),
        (dataset()[:-500], "application/zip", "File is not a zip file"),
    ]:
        failed = make(content, kind)
        assert failed.returncode == 2
        first, second, of_make = failed.stderr.splitlines()
        assert reason in first
        assert second == "SYNERGY was not downloaded completely, for the reason above. Run `make synergy` again."
        assert of_make.startswith("make: ***")
        assert not tables.exists()

    made = make(dataset(), "application/zip")
    assert made.returncode == 0, made.stderr
    assert sorted(path.stem for path in tables.glob("*.csv")) == sorted(NINE)
    assert make(page, "text/html").returncode == 0  # the download is kept

    monkeypatch.chdir(tmp_path)
    corpus = yaml.safe_load((ROOT / "experiments/synergy-public.yaml").read_text())["corpus"]
    assert corpus.pop("path") is None  # without the path of the experiment that this one extends
    read = make_corpus(tmp_path / "results", corpus)
    papers = {paper[0]: paper for name in NINE for paper in REVIEWS[name]}
    found = {(number, *map(row.get, ("title", "abstract", "year", "doi"))) for number, row in read.papers.items()}
    assert found == {(*paper[:4], f"https://doi.org/10.1/{paper[0]}") for paper in papers.values()}
    pairs = {(number, cited) for number, *_, references in papers.values() for cited in references}
    assert read.pairs == pairs - {(22, 22)}
