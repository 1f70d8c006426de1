"""Files of configuration: what cannot be read is told with its line, and what a run makes of a file."""

from datetime import date
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import read_configuration, resolve, resolve_or_explain
from cocite.config.folders import folders_of
from cocite.config.yaml_files import written_configuration
from cocite.ground.errors import InputError

ROOT = Path(__file__).parents[2]


def test_a_configuration_that_is_missing_or_no_yaml_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml does not exist"):
        read_configuration(tmp_path / "nowhere.yaml")
    (tmp_path / "broken.yaml").write_text("release: latest\ncorpus: }")
    with pytest.raises(InputError, match=r"broken\.yaml, line 2: not YAML"):
        read_configuration(tmp_path / "broken.yaml")
    with pytest.raises(InputError, match=f"{tmp_path} is a folder"):
        read_configuration(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"release: caf\xe9", "not UTF-8 at byte 12"), (b"release: \x07", r"not YAML \(character U\+0007")],
)
def test_a_configuration_that_is_no_text_is_named(tmp_path, content, reason):
    (tmp_path / "odd.yaml").write_bytes(content)
    with pytest.raises(InputError, match=rf"odd\.yaml: {reason}"):
        read_configuration(tmp_path / "odd.yaml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("release: a\ncorpus: {source: demo}\nrelease: b\n", "lines 1 and 3: the key release stands twice"),
        ("corpus:\n  source: demo\n  'source': s2\n", "lines 2 and 3: the key source stands twice"),
        ('{"seed": 1,\n "seed": 2}', "lines 1 and 2: the key seed stands twice"),
    ],
)
def test_a_key_that_stands_twice_is_named_with_both_lines(tmp_path, text, told):
    (tmp_path / "twice.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"twice\.yaml, {told}; write it once\."):
        written_configuration(tmp_path / "twice.yaml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seed: 1\nrelease: 2026-02-30\n", r"line 2: 2026-02-30 cannot be read \(day is out of range for month\)"),
        ("seed: " + "9" * 5000, r"line 1: 9{60}… cannot be read \(Exceeds the limit"),
    ],
)
def test_a_value_that_yaml_takes_for_what_it_cannot_be_is_named_with_its_line(tmp_path, text, told):
    (tmp_path / "odd.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"odd\.yaml, {told}.*; a text stands in quotes\."):
        written_configuration(tmp_path / "odd.yaml")


def test_a_key_may_stand_again_where_it_overrides_a_merged_one(tmp_path):
    (tmp_path / "merged.yaml").write_text("a: &a {k: 1, l: 2}\nb:\n  <<: *a\n  k: 3\n")
    assert written_configuration(tmp_path / "merged.yaml")["b"] == {"k": 3, "l": 2}


def test_an_entry_that_is_a_part_of_itself_is_told(written):
    written["corpus"]["demo"]["more"] = written["corpus"]
    _, faults = resolve_or_explain(written)
    assert faults == ["The configuration has an entry that is a part of itself (&name and *name); write it out."]


def test_a_date_may_be_a_key_as_yaml_reads_it(written):
    written["graphs"][date(2026, 1, 6)] = {"signal": "cocitation"}
    assert "2026-01-06" in resolve(written)["graphs"]


def test_a_configuration_is_printed_as_a_run_takes_it_or_with_all_that_is_wrong(tmp_path):
    (tmp_path / "my.yaml").write_text("release: 2026-01-06\ncorpus: {source: demo, demo: {papers: 300}}\n")
    printed = CliRunner().invoke(app, ["config", "--configfile", str(tmp_path / "my.yaml")])
    assert printed.exit_code == 0
    complete = yaml.safe_load(printed.output)
    assert (complete["release"], complete["corpus"]["buckets"]) == ("2026-01-06", 2)
    (tmp_path / "my.yaml").write_text("release: 2026\ncorpus: {source: demo, bucket: 3}\n")
    refused = CliRunner().invoke(app, ["config", "--configfile", str(tmp_path / "my.yaml")])
    assert refused.exit_code == 1
    assert refused.output.count("Error: Configuration key ") == 2


@pytest.mark.parametrize("pathvars", [{"results": 5}, ["results"], {"logs": ""}])
def test_a_folder_that_is_no_path_is_refused(pathvars):
    with pytest.raises(InputError, match="key pathvars must hold paths, as in"):
        folders_of({"pathvars": pathvars})


@pytest.mark.parametrize("config", [{}, {"pathvars": None}, {"pathvars": {"logs": "elsewhere"}}])
def test_results_lie_in_the_folder_of_that_name_unless_another_is_named(config):
    assert folders_of(config)["results"] == Path("results")


def test_a_configuration_without_keys_is_named(tmp_path):
    (tmp_path / "list.yaml").write_text("- release\n")
    with pytest.raises(InputError, match=r"list\.yaml holds no keys"):
        read_configuration(tmp_path / "list.yaml")


def test_a_folder_may_lie_under_the_home_of_the_user(written, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bert").mkdir()
    written["encoders"]["small"] = {"model": "~/bert"}
    written["queries"] |= {"from": "triplets", "dataset": "~/bert", "count": 5}
    resolved = resolve(written)
    assert resolved["encoders"]["small"]["model"] == resolved["queries"]["dataset"] == str(tmp_path / "bert")
