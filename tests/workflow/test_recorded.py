"""A folder of results knows what it was made from: another corpus is refused, other edits are not."""

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from tests.configurations import with_changes

from cocite.config.configuration import read_configuration, resolve
from cocite.core.errors import InputError
from cocite.plan.recorded import (
    configuration_of,
    edited,
    files_without_record,
    missing_records,
    record,
    recorded_values,
    refuse_another_corpus,
)
from cocite.tools.documentation import ROOT

CONFIG = {
    "run_seed": 1,
    "release": "2026-01-06",
    "corpus": {"source": "demo", "buckets": 2, "demo": {"papers": 700, "topics": 8, "shards": 2}},
    "queries": {"count": 150},
    "models": {"near": {"loss": "triplet", "seeds": [1]}},
}
MINE = {"source": "directory", "path": "mine"}
RESULTS = Path("results")


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    """A working folder with results of the configuration, and Snakemake's records of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COCITE_OVERWRITE", raising=False)
    make("corpus/manifest.json", '{"release": "2026-01-06"}')
    make("encoder/near/seed-1/settings.json")
    record(CONFIG, RESULTS)


def make(name, content="{}", folder="results"):
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    records = Path(".snakemake/metadata")
    records.mkdir(parents=True, exist_ok=True)
    (records / urlsafe_b64encode(str(path).encode()).decode()).touch()


def changed(**entries):
    """The configuration with some keys changed."""
    return with_changes(CONFIG, **entries)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"run_seed": 2}, "run_seed was 1 and is 2"),
        ({"release": "2026-01-13"}, "release was 2026-01-06 and is 2026-01-13"),
        ({"corpus__demo__papers": 800}, "corpus.demo.papers was 700 and is 800"),
        ({"corpus": MINE}, "corpus.source was demo and is directory, corpus.path is mine"),
    ],
)
def test_another_corpus_is_refused_with_what_differs_and_the_ways_out(entries, message):
    with pytest.raises(InputError) as raised:
        refuse_another_corpus(changed(**entries), RESULTS)
    assert f"overwrite them: {message}. " in str(raised.value)
    assert "pathvars: {results: results/NAME, logs: logs/NAME, benchmarks: benchmarks/NAME}" in str(raised.value)
    assert "COCITE_OVERWRITE=results" in str(raised.value)


@pytest.mark.parametrize(
    "entries",
    [
        *({}, {"models__far": {"loss": "infonce"}}, {"models__near__loss": "infonce"}, {"models__near__seeds": [1, 2]}),
        *({"queries__count": 100}, {"corpus__buckets": 4}, {"corpus__demo__shards": 4}, {"corpus__malformed": 0.1}),
        *({"exclude": ["ids.txt"]}, {"pathvars": {"logs": "elsewhere"}}),
    ],
)
def test_the_usual_edits_are_not_refused(entries):
    refuse_another_corpus(changed(**entries), RESULTS)


def test_what_is_overwritten_on_purpose_is_not_refused_nor_is_what_a_run_corrects_that_has_made_nothing(monkeypatch):
    monkeypatch.setenv("COCITE_OVERWRITE", "results/")
    refuse_another_corpus(changed(run_seed=2), RESULTS)
    monkeypatch.setenv("COCITE_OVERWRITE", "other")
    with pytest.raises(InputError):
        refuse_another_corpus(changed(run_seed=2), RESULTS)
    (RESULTS / "corpus/manifest.json").unlink()
    refuse_another_corpus(changed(run_seed=2), RESULTS)


def test_a_corpus_is_the_same_by_another_name_of_its_folder():
    Path("release").mkdir()
    Path("link").symlink_to("release")
    record(changed(corpus={"source": "directory", "path": "release"}), RESULTS)
    refuse_another_corpus(changed(corpus={"source": "directory", "path": str(Path("link").absolute())}), RESULTS)
    with pytest.raises(InputError, match=r"corpus\.path was release and is other"):
        refuse_another_corpus(changed(corpus={"source": "directory", "path": "other"}), RESULTS)


def test_the_latest_release_is_the_one_that_was_listed():
    latest, pinned = (changed(release=release, corpus={"source": "s2"}) for release in ("latest", "2026-01-06"))
    record(latest, RESULTS)
    refuse_another_corpus(pinned, RESULTS)
    record(pinned, RESULTS)
    refuse_another_corpus(latest, RESULTS)
    with pytest.raises(InputError, match="release was 2026-01-06 and is 2026-01-13"):
        refuse_another_corpus(pinned | {"release": "2026-01-13"}, RESULTS)


def test_records_of_another_user_that_cannot_be_read_are_named(monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match=r"^\.snakemake/metadata has records .* this user may not read"):
        missing_records(CONFIG, RESULTS)


def test_edits_that_go_unnoticed_without_records_are_named():
    assert missing_records(changed(models__near__loss="mnrl"), RESULTS) is None
    Path(".snakemake").rename("lost")
    told = missing_records(changed(models__near__loss="mnrl"), RESULTS)
    assert "no record of how results/corpus/manifest.json was made, nor of 1 other" in told
    assert 'other settings, and stay as they are: models.near.loss was "triplet" and is "mnrl".' in told
    assert "with the settings of this configuration" in missing_records(CONFIG, RESULTS)


def test_records_are_missed_under_another_name_of_the_folder_and_a_file_that_was_cut_off_needs_none():
    RESULTS.rename("results-2")
    assert len(files_without_record(Path("results-2"))) == 2
    Path("results-2").rename(RESULTS)
    Path(".snakemake/metadata").rename(".snakemake/incomplete")
    assert files_without_record(RESULTS) == []


def test_without_records_keys_keep_the_values_that_files_were_made_with():
    Path(".snakemake").rename("lost")
    wanted = changed(models__near__loss="mnrl", models__far={"loss": "infonce"})
    record(wanted, RESULTS)
    assert recorded_values(RESULTS)["models"] == {"near": CONFIG["models"]["near"], "far": {"loss": "infonce"}}
    Path("lost").rename(".snakemake")
    record(wanted, RESULTS)
    assert recorded_values(RESULTS) == wanted


def test_entries_that_are_added_or_gone_and_further_seeds_make_no_file_stale():
    then = {"models": {"a": {"seeds": [1], "lr": 1}, "gone": {}}, "pathvars": {"results": "a"}}
    now = {"models": {"a": {"seeds": [1, 2], "lr": 2}, "new": {}}, "pathvars": {"results": "b"}}
    assert list(edited(then, now)) == ["models.a.lr was 1 and is 2"]


@pytest.mark.parametrize("file", ["config.yaml", "experiments/hci.yaml", "experiments/synergy.yaml"])
def test_the_configuration_that_is_recorded_can_be_run_as_it_stands(file, shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    config = read_configuration(ROOT / file)
    record(config, Path("elsewhere"))
    assert resolve(read_configuration(Path("elsewhere/configuration.yaml"))) == config


def test_a_configuration_of_another_version_is_refused_with_the_way_out():
    make("configuration.yaml", "{release: '2026-01-06', corpus: {source: demo}, maps: {}, colour: blue}")
    told = r"another version of CoCite: .*colour.* Run the workflow again with this one\."
    with pytest.raises(InputError, match=told):
        configuration_of(RESULTS)
