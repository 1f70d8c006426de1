"""What cannot be run is refused before the first job, in one sentence, whatever way it comes in."""

import json
import re
import subprocess

import pytest
from tests.workflow.conftest import RECORDS, ROOT, SMALL, edited, planned, write_release
from tests.workflow.preloaded import snakemake
from typer.testing import CliRunner

from cocite.cli import app


def said(result: subprocess.CompletedProcess[str]) -> str:
    """What a run that was refused says."""
    assert result.returncode != 0
    output = result.stdout + result.stderr
    assert "Traceback" not in output, output[-3000:]
    return output


@pytest.fixture
def brought(run):
    """A release in a folder with one shard of each dataset, and a configuration that reads it."""
    write_release(run.folder / "mine")
    corpus = {"source": "directory", "path": "mine"}
    run.configure({"release": "mine-v1", "corpus": corpus, "queries": {"count": 1, "min_citations": 0}})
    return run


def corpus_plan() -> str:
    """What `cocite corpus plan` says here."""
    result = CliRunner().invoke(app, ["corpus", "plan"])
    return result.output + str(result.exception)


def test_the_plan_and_the_dag_read_the_same_shards_also_after_a_listing(brought, monkeypatch):
    monkeypatch.chdir(brought.folder)
    brought.make("results/corpus/manifest.json")
    papers = brought.folder / "mine" / "papers"
    (papers / "1.jsonl").write_text(json.dumps(RECORDS["papers"]))
    (papers / "2.GZ").write_bytes((papers / "0.gz").read_bytes())
    (papers / "README.txt").write_text("Mine.")
    assert re.search(r"^papers +3 ", corpus_plan(), flags=re.MULTILINE)
    inputs = [job.inputs[1] for job in planned(brought, None, "corpus").of("ingest", dataset="papers")]
    assert sorted(inputs) == ["mine/papers/0.gz", "mine/papers/1.jsonl", "mine/papers/2.GZ"]
    (papers / "3.jsonl.zst").touch()
    message = "mine/papers/3.jsonl.zst would not be read: a shard ends in"
    assert message in corpus_plan()
    assert message in said(brought.snakemake("--dry-run", "corpus"))


def test_the_configuration_in_the_working_folder_is_refused_in_one_sentence(run):
    twice = "the key seed is repeated; write it once."
    (run.folder / "config.yaml").write_text("seed: 1\nseed: 2\n")
    options = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(run.folder), "--cores", "1", "--dry-run"]
    assert f"config.yaml, lines 1 and 2: {twice}" in said(snakemake(options))
    (run.folder / "config.yaml").rename(run.folder / "mine.yaml")
    assert "config.yaml does not exist" in said(snakemake(options))
    assert f"mine.yaml, lines 1 and 2: {twice}" in said(run.snakemake("--dry-run", config=run.folder / "mine.yaml"))


@pytest.mark.parametrize(
    ("entries", "target", "message"),
    [
        ({"models__cocite__los": "triplet"}, "all", "key models.cocite.los is not known; did you mean loss?"),
        ({}, "papers/9", "papers/9.parquet is not of this configuration: bucket is 9, but corpus.buckets allows 0, 1."),
        ({}, "paprs/0", "paprs/0.parquet; did you mean results/corpus/papers/{bucket}.parquet?"),
        (
            {"pathvars": {"results": "taken"}},
            "corpus",
            "pathvars.results: nothing can be written to the folder taken (",
        ),
        ({"pathvars": {"results": "/proc/cocite"}}, "corpus", "nothing can be written to the folder /proc/cocite ("),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_first_job(run, entries, target, message):
    (run.folder / "taken").touch()
    asked = f"results/corpus/{target}.parquet" if "/" in target else target
    told = said(run.snakemake(asked, config=run.configure(edited(**entries))))
    assert message in told
    assert "rule generate_release" not in told
    assert (run.folder / "results").exists() == ("/" in target)  # a target is looked for in a plan


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"pathvars": {"results": "r[1]"}}, "must be a literal path to a folder"),
        ({"corpus": {"source": "s2", "api": "https://u:secret@m.org"}}, "corpus.api has a user, a password or a key"),
        ({"exclude": [[["x"] * 50] * 50] * 50}, "more than 100,000 values"),
    ],
)
def test_what_no_step_can_be_given_is_refused_by_the_check_the_doctor_and_the_run_alike(
    run, monkeypatch, entry, message
):
    config = run.configure({**SMALL, **entry})
    monkeypatch.chdir(run.folder)
    of_commands = [CliRunner().invoke(app, [command, "--configfile", str(config)]) for command in ("config", "doctor")]
    refusals = [result.output + str(result.exception) for result in of_commands]
    if "secret" in str(entry):
        refusals.append(said(run.snakemake("--dry-run", "all")))
    for refusal in refusals:
        assert message in refusal
        assert "secret" not in refusal


@pytest.mark.parametrize("others", [0, pytest.param(14, marks=pytest.mark.long)])
def test_words_in_braces_are_no_wildcards_and_a_long_configuration_is_no_long_command(run, others):
    prompts = {"query": "find {query} for {wildcards.x}: ", "document": "{{input}} {output[0]!r} "}
    small = SMALL["encoders"]["small"]
    long = {f"long-{number}": {**small, "prompts": {"query": "x" * 10_000}} for number in range(others)}
    run.configure(edited(encoders={"small": {**small, "prompts": prompts}, **long}, benchmarks={}, baselines={}))
    run.make("results/provenance.json")
    recorded = json.loads((run.folder / "results/provenance.json").read_text())["configuration"]
    assert recorded["encoders"]["small"]["prompts"] == prompts
    assert not others or len(json.dumps(recorded)) > 1 << 17
    assert "Nothing to be done" in run.make("results/provenance.json")


def test_make_checks_the_configuration_before_it_starts_snakemake():
    command = ["make", "--dry-run", "--always-make", "run", "CONFIG=my own.yaml"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.index('cocite config --configfile "my own.yaml"') < printed.index("bin/snakemake")
