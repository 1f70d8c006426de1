"""`cocite search`: the papers that a model places nearest to a text or a paper."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.tools.builders import EMBEDDING, invoke, write_embedded, write_model, write_start, write_vectors

from cocite.core.errors import InputError
from cocite.encoder.adapters import new_adapter, save_adapters, switch_on
from cocite.encoder.embedding import embed_tables
from cocite.encoder.model import open_encoder

EMBEDDED = {1: [0.0, 0.0], 2: [3.0, 4.0], 3: [0.0, 2.0], 4: [6.0, 8.0]}
TOO_LARGE = "{} is not a corpus id; it must be a whole number from 0 to 9,223,"
OF_AN_INDEX = "--index searches by an index; leave --model and --embed out."


@pytest.fixture
def search(results):
    """Runs the command on the results, and returns the rows it finds."""

    def run(*arguments: str) -> list[dict]:
        return json.loads(invoke("search", *arguments, "--results", results, "--format", "json").stdout)

    return run


@pytest.fixture
def embedded(results):
    """The results with a model and its vectors of papers 1 to 4; paper 5 has none."""
    write_model(results)
    for bucket in (0, 1):
        rows = {paper: vector for paper, vector in EMBEDDED.items() if paper % 2 == bucket}
        write_vectors(results / f"encoder/model/seed-1/papers/{bucket}.parquet", rows)
    return results


@pytest.mark.usefixtures("embedded")
def test_papers_are_found_by_euclidean_distance_over_all_buckets_without_the_paper_itself(search):
    found = [(row["rank"], row["corpusid"], row["distance"], row["year"], row["title"]) for row in search("1")]
    expected = [(1, 3, 2.0, 2003, "Flowers [of spring]"), (2, 2, 5.0, 2002, "Nectar"), (3, 4, 10.0, 2004, "Compilers")]
    assert found == expected
    assert [row["corpusid"] for row in search("1", "--limit", "1")] == [3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([" "], "There is nothing to search for: the query is empty."),
        (["5"], "Paper 5 has no vector of model model"),
        *(([number], TOO_LARGE.format(number)) for number in (str(2**63), "7" * 43, "7" * 5000)),
        (["1", "--model", "modle"], "There is no model 'modle'; did you mean model? --model can be model/1."),
        (["1", "--index", "found", "--model", "model"], OF_AN_INDEX),
        (["1", "--index", "found", "--embed"], OF_AN_INDEX),
    ],
)
@pytest.mark.usefixtures("embedded")
def test_a_search_that_nothing_can_answer_is_refused(search, arguments, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        search(*arguments)


def test_without_a_name_the_first_model_is_taken_and_a_wrong_name_lists_the_choices(embedded, search):
    write_model(embedded, "model", seed=2)
    write_model(embedded, "untrained_small", seed=0)
    for bucket in (0, 1):
        write_vectors(embedded / f"encoder/model/seed-2/papers/{bucket}.parquet", {1 + bucket: [float(bucket)]})
    assert len(search("1")) == len(search("1", "--model", "model/1")) == 3
    assert [row["corpusid"] for row in search("1", "--model", "model/2")] == [2]
    with pytest.raises(InputError, match="--model can be model/1 or model/2 or untrained_small/0"):
        search("1", "--model", "mode")


def test_a_search_never_switches_to_another_model_but_names_those_with_vectors_and_what_to_run(embedded, search):
    write_model(embedded, "first", seed=7)
    for arguments in ((), ("--model", "first")):
        with pytest.raises(InputError) as raised:
            search("1", *arguments)
        assert "have no vectors of model first, seed 7, that are newer than it is." in str(raised.value)
        assert "Vectors exist of model/1 (--model)." in str(raised.value)
        assert f"{embedded}/encoder/first/seed-7/papers/{{0..1}}.parquet" in str(raised.value)
    assert [row["corpusid"] for row in search("1", "--model", "model", "--limit", "1")] == [3]


def test_a_model_without_vectors_embeds_the_papers_when_it_is_asked_to(embedded, search, monkeypatch):
    write_model(embedded, "first", seed=7)
    asked = []

    def embed(command, **options):
        asked.append(command)
        for bucket in (0, 1):
            write_vectors(embedded / f"encoder/first/seed-7/papers/{bucket}.parquet", {1 + bucket: [float(bucket)]})

    monkeypatch.setattr(subprocess, "run", embed)
    for _ in range(2):
        assert [row["corpusid"] for row in search("1", "--embed")] == [2]
    ((*shell, command),) = asked
    assert shell == ["bash", "-c"]
    assert f"{embedded}/encoder/first/seed-7/papers/{{0..1}}.parquet" in command
    (embedded / "encoder/first/seed-7/papers/0.parquet").unlink()
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: None)
    with pytest.raises(InputError, match="were not embedded by model first, seed 7; see above"):
        search("1", "--embed")


def test_missing_vectors_name_the_command_that_makes_them(embedded, search):
    (embedded / "encoder/model/seed-1/papers/1.parquet").unlink()
    (embedded / "config.yaml").write_text(f"pathvars: {{results: {embedded}}}\n")
    with pytest.raises(InputError) as raised:
        search("1", "--configfile", f"{embedded}/config.yaml")
    command = f"snakemake --cores 2 {embedded}/encoder/model/seed-1/papers/{{0..1}}.parquet"
    assert str(raised.value).endswith(f"{command} --configfile {embedded}/config.yaml --replace-workflow-config")
    assert Path(str(raised.value).splitlines()[-1].split()[0]).is_file()
    write_start(embedded)  # whose command would fill another folder
    with pytest.raises(InputError, match=r"have no vectors of model model, .* is a copy, and the run"):
        search("1")


def test_vectors_of_an_earlier_model_are_not_used(embedded, search):
    (embedded / "encoder/model/seed-1/model/modules.json").write_text("[1]")
    for vectors in embedded.glob("encoder/model/seed-1/papers/*.parquet"):
        os.utime(vectors, (1_000_000_000, 1_000_000_000))
    with pytest.raises(InputError, match="newer than it is"):
        search("1")


def test_a_paper_of_63_bits_with_a_vector_and_without_a_record_is_searched_for_and_found(search, embedded):
    papers = embedded / "encoder/model/seed-1/papers"
    write_vectors(papers / "0.parquet", {2: [3.0, 4.0], 2**53: [0.0, 1.0]})
    found = [(row["corpusid"], row["title"]) for row in search(str(2**53))]
    assert found[:2] == [(1, "Bees"), (3, "Flowers [of spring]")]
    write_vectors(papers / "1.parquet", {2**63 - 1: [0.0, 0.0]})
    [nearest] = search(str(2**63 - 1), "--limit", "1")
    assert (nearest["corpusid"], nearest["title"]) == (2**53, None)


def test_broken_vectors_are_named(search, embedded):
    broken = embedded / "encoder/model/seed-1/papers/0.parquet"
    broken.write_bytes(broken.read_bytes()[:50])
    with pytest.raises(InputError, match=r"papers/0\.parquet: not a readable Parquet file"):
        search("1")


def test_models_that_are_gone_and_folders_that_are_no_seed_are_no_choice(search, embedded):
    write_model(embedded, "gone")
    write_model(embedded, seed="1.old")
    (embedded / "configuration.yaml").write_text('{"models": {"model": {"seeds": [1]}}, "encoders": {}}')
    assert len(search("1")) == 3
    with pytest.raises(InputError, match=r"--model can be model/1\.$"):
        search("1", "--model", "gone")


def test_without_papers_or_a_model_there_is_nothing_to_search_in(search, embedded):
    shutil.rmtree(embedded / "corpus")
    with pytest.raises(InputError, match="holds no table papers"):
        search("1")
    shutil.rmtree(embedded / "encoder")
    with pytest.raises(InputError, match="holds no trained model"):
        search("1")


def test_a_name_that_is_a_pattern_is_no_pattern(results, tmp_path):
    named, other = (shutil.copytree(results, tmp_path / name) for name in ("run[1]", "run1"))
    for folder, vectors in ((named, {1: [0.0], 3: [1.0]}), (other, {1: [0.0], 5: [1.0]})):
        write_model(folder)
        write_vectors(folder / "encoder/model/seed-1/papers/1.parquet", vectors)
        write_vectors(folder / "encoder/model/seed-1/papers/0.parquet", {2: [9.0]})
    found = invoke("search", "1", "--results", named, "--limit", 1, "--format", "json").stdout
    assert json.loads(found)[0]["corpusid"] == 3


MEADOW = "nectar from flowers in the meadow"
TEXTS = {1: ("bees collect", MEADOW), 2: ("compilers", None), 3: (None, "registers for loops"), 4: (None, None)}


@pytest.fixture
def tiny(results):
    """The folder of an encoder that is built from four papers, which are those of the results now, and embedded."""
    (results / "corpus/papers/1.parquet").unlink()
    return write_embedded(results, TEXTS)


@pytest.mark.parametrize(("of_papers", "adapters"), [("", []), ("proximity", ["proximity"]), ("", ["search"])])
def test_a_text_is_embedded_by_the_adapter_of_queries_and_else_as_the_papers_are(
    tiny, search, results, of_papers, adapters
):
    encoder = open_encoder(tiny / "model")
    for name in adapters:
        switch_on(encoder, new_adapter(encoder, name, 2))
        for weight in encoder.adapter.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        save_adapters(encoder, tiny / "none", tiny / "model")
    papers = results / "corpus/papers/0.parquet"
    where = {"state": results / "state", "adapters": [of_papers]}
    embed_tables(tiny / "model", [papers], tiny / "papers", "papers", **where, **EMBEDDING)
    found = search("registers for loops")
    assert {row["corpusid"] for row in found} == {1, 2, 3}  # those with a text
    by_the_same = adapters in ([], [of_papers])
    assert ((found[0]["corpusid"], found[0]["distance"]) == (3, pytest.approx(0, abs=1e-5))) is by_the_same


@pytest.mark.usefixtures("tiny")
def test_a_search_for_a_text_needs_no_library_whose_import_takes_longer_than_the_search(results):
    code = (
        "import sys, typer.testing; from cocite.cli import app\n"
        "found = typer.testing.CliRunner().invoke(app, sys.argv[1:], catch_exceptions=False).stdout\n"
        "print('registers' in found, {'sentence_transformers', 'sklearn', 'datasets'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, "search", "registers for loops", "--results", str(results)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True set()\n"
