"""Files of configuration: what cannot be read is told with its line, and what a run makes of a file."""

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import read_configuration, resolve, resolve_or_explain
from cocite.config.folders import folders_of
from cocite.config.yaml_files import extended, written_configuration
from cocite.core.errors import InputError

BASE = "release: a\ncorpus: {source: demo, buckets: 2}\nqueries: {count: 9, validation: 0.1}\nexclude: [b, c]\n"
OWN = "pathvars: {results: results/mine}\n"


def test_a_configuration_has_what_it_does_not_write_from_the_one_that_it_extends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(f"{BASE}pathvars: {{logs: logs/base}}\n")
    Path("between.yaml").write_text(f"extends: base.yaml\n{OWN}corpus: {{buckets: 4}}\n")
    Path("my.yaml").write_text(f"extends: between.yaml\n{OWN}exclude: [d]\nqueries: {{holdout: 5, validation:}}\n")
    assert written_configuration(Path("my.yaml")) == {
        "release": "a",
        "corpus": {"source": "demo", "buckets": 4},
        "queries": {"count": 9, "holdout": 5},
        "exclude": ["d"],
        "pathvars": {"results": "results/mine"},
    }
    # What Snakemake reads has only the keys of the file itself.
    read = yaml.safe_load(Path("my.yaml").read_text())
    assert extended(read) == written_configuration(Path("my.yaml"))


def test_a_key_may_stand_again_where_it_overrides_a_merged_one(tmp_path):
    (tmp_path / "merged.yaml").write_text("a: &a {k: 1, l: 2}\nb:\n  <<: *a\n  k: 3\n")
    assert written_configuration(tmp_path / "merged.yaml")["b"] == {"k": 3, "l": 2}


def test_an_entry_that_is_a_part_of_itself_is_told(written):
    written["corpus"]["demo"]["more"] = written["corpus"]
    _, faults = resolve_or_explain(written)
    assert faults == ["The configuration has an entry that is a part of itself (&name and *name); write it out."]


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))
MERGED = "a0: &a0 {k: v}\n" + "".join(
    f"a{n + 1}: &a{n + 1} {{<<: [{', '.join([f'*a{n}'] * 9)}], k{n}: 1}}\n" for n in range(7)
)
PAIRS = "x: !!pairs\n  - d: [&a0 !!pairs [k: v]"
PAIRS += "".join(f", &a{n + 1} !!pairs [{', '.join([f'k: *a{n}'] * 9)}]" for n in range(9)) + "]\n"
TOO_DEEP = "entries are within each other at more than 50 levels"
ADDRESS = "https://me:secret@a.org"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("release: latest\ncorpus: }", r"^my\.yaml, line 2: not YAML"),
        (b"release: caf\xe9", r"^my\.yaml: not UTF-8 at byte 12"),
        ("release: \x07", r"^my\.yaml: not YAML \(character U\+0007"),
        ("- release\n", r"^my\.yaml has no keys"),
        ("release: a\ncorpus: {source: demo}\nrelease: b\n", "yaml, lines 1 and 3: the key release is repeated"),
        (f"{ADDRESS}: 1\n{ADDRESS}: 2\n", "yaml, lines 1 and 2: the key …a.org is repeated"),
        (
            "corpus:\n  source: demo\n  'source': s2\n",
            "yaml, lines 2 and 3: the key source is repeated; write it once.",
        ),
        ('{"seed": 1,\n "seed": 2}', "yaml, lines 1 and 2: the key seed is repeated"),
        ("seed: 1\nrelease: 2026-02-30\n", r"line 2: 2026-02-30 cannot be read \(day is out of range for month\)"),
        ("seed: " + "9" * 5000, r"line 1: 9{60}… cannot be read \(Exceeds the limit.*; quote a text\."),
        (f"extends: my.yaml\n{OWN}", "'my\\.yaml' extends itself"),
        (f"extends: other.yaml\n{OWN}", "extends itself"),
        (f"extends: [a.yaml]\n{OWN}", "is no path"),
        (f"extends: gone.yaml\n{OWN}", r"gone\.yaml does not exist"),
        ("extends: base.yaml\nrelease: b\n", "needs folders of its own"),
        ("extends: base.yaml\npathvars: {}\n", "needs folders of its own"),
        (BOMB, r"has more than 100,000 values, including those repeated by &name and \*name"),
        (f"a: {{b: &b [{'x, ' * 300}]}}\nc: [{'*b, ' * 400}]\n", "has more than 100,000 values"),
        (PAIRS, "has more than 100,000 values"),
        (MERGED, "more than 100,000 keys are merged by <<; write them out"),
        ("x: " + "[" * 1100 + "]" * 1100, TOO_DEEP),
        ("x: " + "[" * 60 + "]" * 60, TOO_DEEP),
        ("x: " + "{a: " * 1100 + "1" + "}" * 1100, TOO_DEEP),
        ("x: " + "[" * 1100, TOO_DEEP),
        ("".join(" " * level + "a:\n" for level in range(400)), TOO_DEEP),
        ("x: 0x" + "f" * 5000, "key x is a number of more than 60 digits"),
        ("0x" + "f" * 60 + ": 1", "a whole number must be below"),
        ("x: !!bool maybe", "line 1: maybe cannot be read"),
        ("x: !!int ''", "line 1:  cannot be read"),
        ("x: !!timestamp noon", "line 1: noon cannot be read"),
        ("x: !!map a", "expected a mapping node, but found scalar"),
        ('x: "a\\0b"', r"key x is 'a\\x00b'; a text must not have '\\x00'"),
        ('"\\ud800": 1', r"a text must not have '\\ud800'"),
    ],
)
def test_a_file_that_no_run_can_take_is_refused_in_a_sentence(tmp_path, monkeypatch, content, told):
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(BASE)
    Path("other.yaml").write_text(f"extends: my.yaml\n{OWN}")
    Path("my.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=told) as refused:
        resolve(written_configuration(Path("my.yaml")))
    assert str(refused.value).isprintable()


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"odd\.yaml does not exist"):
        read_configuration(tmp_path / "odd.yaml")
    with pytest.raises(InputError, match=f"{tmp_path} is a folder"):
        read_configuration(tmp_path)


def test_entries_may_be_repeated_by_their_names(written, tmp_path):
    written["graphs"]["twin"] = written["graphs"]["cocitation"]
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(written))
    assert "*id001" in (tmp_path / "my.yaml").read_text()
    assert "twin" in resolve(written_configuration(tmp_path / "my.yaml"))["graphs"]


@pytest.mark.parametrize(
    "api",
    [
        "https://user:secret@mirror.org/v1",
        "https://secret@mirror.org/v1",
        "https://user:se/secret@mirror.org",
        "https://user:s#secret@mirror.org",
        "https://user:a?secret@mirror.org",
        "https://user:a secret@mirror.org/v1",
        "ftp://user:secret@mirror.org",
        "https:/user:secret@mirror.org",
        "user:secret@mirror.org",
        "https://mirror.org/v1?key=secret",
        "https://mirror.org/v1#secret",
        "https://mirror org?key=secret",
        ["https://user:secret@mirror.org"],
        {"url": "https://user:secret@mirror.org"},
    ],
)
def test_a_secret_in_an_address_is_refused_without_being_shown(written, api):
    written["corpus"] = {"source": "s2", "api": api}
    _, faults = resolve_or_explain(written)
    assert "corpus.api" in faults[0]
    assert "secret" not in faults[0]


@pytest.mark.parametrize("model", ["https://user:secret@hub.org/model", "https://hub.org/model?Signature=secret&x="])
def test_a_password_is_refused_wherever_it_is(written, model):
    written["encoders"]["small"] = {"model": model, "revision": "0" * 40}
    assert resolve_or_explain(written)[1] == [
        "Configuration key encoders.small.model has a user, a password or a key in a URL, and a configuration is "
        "written into results; leave it out there, and put it into ~/.netrc, which is read for each host."
    ]


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
    with pytest.raises(InputError, match="key pathvars must contain paths, as in"):
        folders_of({"pathvars": pathvars})


@pytest.mark.parametrize("config", [{}, {"pathvars": None}, {"pathvars": {"logs": "elsewhere"}}])
def test_results_lie_in_the_folder_of_that_name_unless_another_is_named(config):
    assert folders_of(config)["results"] == Path("results")


def test_a_folder_may_lie_under_the_home_of_the_user(written, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bert").mkdir()
    written["encoders"]["small"] = {"model": "~/bert"}
    written["queries"] |= {"from": "triplets", "dataset": "~/bert", "count": 5}
    resolved = resolve(written)
    assert resolved["encoders"]["small"]["model"] == resolved["queries"]["dataset"] == str(tmp_path / "bert")


TABLE = """
release: mine
corpus:
  source: table
  ids: string
  papers: {{files: {here}/p.csv, columns: {{id: id, title: title}}, nulls: {nulls}}}
  citations: {{files: {here}/c.csv, columns: {{citing: a, cited: b}}, lowercase: {lowercase}}}
queries: {{from: rule, count: {count}, min_year: {year}}}
"""
USUAL = {"nulls": "[NA]", "lowercase": "false", "count": "10", "year": "1990"}
NO_VALUE = 'not None (YAML reads null, ~ and an empty place as no value: leave it out, or write "null" in quotes)'
TRUTHS = "YAML reads yes, no, on and off as true and false"


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("nulls", "[NA, null]", f"corpus.papers.nulls[1] must be of type string, {NO_VALUE}"),
        ("nulls", "[NA, ~]", f"corpus.papers.nulls[1] must be of type string, {NO_VALUE}"),
        ("nulls", "[NA, NULL]", f"corpus.papers.nulls[1] must be of type string, {NO_VALUE}"),
        ("nulls", "[NA, no]", f"nulls[1] must be of type string, not False ({TRUTHS}: write it in quotes)"),
        ("nulls", "[On]", f"nulls[0] must be of type string, not True ({TRUTHS}: write it in quotes)"),
        ("nulls", "[-1]", "nulls[0] must be of type string, not -1 (write it in quotes)"),
        ("nulls", r"[NA], format: {kind: csv, delimiter: '\t'}", "it must be one ASCII character, neither"),
        ("nulls", "[NA], format: {kind: csv, delimiter: §}", "delimiter is '§'; it must be one ASCII character"),
        ("nulls", "[.nan]", "nulls[0] is nan; it must be a number that is finite, or a text in quotes."),
        ("nulls", "[NA, -.inf]", "nulls[1] is -inf; it must be a number that is finite, or a text in quotes."),
        ("lowercase", "y", "lowercase must be of type boolean, not 'y' (write true or false, without quotes)"),
        ("lowercase", "'No'", "lowercase must be of type boolean, not 'No' (write true or false, without quotes)"),
        ("lowercase", "'true'", "lowercase must be of type boolean, not 'true' (write true or false, without quotes)"),
        ("lowercase", "1", "lowercase must be of type boolean, not 1 (write true or false, without quotes)"),
        ("lowercase", "2", "lowercase must be of type boolean, not 2."),
        ("year", "01990", "'01990' (write a number without quotes or zeros in front"),
        ("year", "'1990'", "'1990' (write a number without quotes"),
        ("year", "02000", "line 8: YAML reads 02000 as another number (one that begins with 0 is octal, one with"),
        ("year", "-0777", "line 8: YAML reads -0777 as another number ("),
        ("year", "19:90", "must be of type integer, not '19:90'."),
        ("year", "19:50", "line 8: YAML reads 19:50 as another number ("),
        ("year", "1:30.5", "line 8: YAML reads 1:30.5 as another number ("),
        ("year", "-.5", "must be of type integer, not '-.5'."),  # which YAML reads as text
        ("year", "yes", f"must be of type integer, not True ({TRUTHS})"),
        ("count", "1e3", "'1e3' (write a number"),
        ("count", "١٠", "must be of type integer, not '١٠'."),
        ("count", "null", NO_VALUE),
        ("count", "many", "must be of type integer, not 'many'."),
        ("count", "null, no: 1", f"queries has an entry False ({TRUTHS}: write it in quotes)"),
        (
            "count",
            "1, ~: 1",
            "queries has an entry None (YAML reads null, ~ and an empty name as no value: write it in",
        ),
    ],
)
def test_what_yaml_makes_of_a_word_is_told_with_what_to_write(tmp_path, key, text, said):
    for name in ("p.csv", "c.csv"):
        (tmp_path / name).write_text("id,title,a,b\n")
    (tmp_path / "my.yaml").write_text(TABLE.format(here=tmp_path, **{**USUAL, key: text}))
    with pytest.raises(InputError, match=re.escape(said)):
        resolve(written_configuration(tmp_path / "my.yaml"))


def test_numbers_that_yaml_reads_as_they_stand_are_taken(tmp_path):
    (tmp_path / "my.yaml").write_text("a: 0\nb: -0\nc: 10\nd: 1_000\ne: '0123'\nf: 0x1f\ng: 2026-01-06\nh: 0.5\n")
    found = written_configuration(tmp_path / "my.yaml")
    assert [found[key] for key in "abcdefh"] == [0, 0, 10, 1000, "0123", 31, 0.5]


def test_a_path_that_begins_with_a_hyphen_is_no_option_of_a_command(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-ids.txt").write_text("1\n")
    written["exclude"] = ["-ids.txt"]
    resolved = resolve(written)
    assert resolved["exclude"] == ["./-ids.txt"]
    assert resolve(resolved) == resolved
