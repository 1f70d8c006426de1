"""A configuration that cannot be run is refused at once, in one sentence that names the key."""

import copy
import json
from datetime import date
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cocite.cli import app
from cocite.config.configuration import read_configuration, resolve, resolve_or_explain
from cocite.config.entries import MEANINGS
from cocite.config.folders import folders_of
from cocite.config.yaml_files import written_configuration
from cocite.ground.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def written():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def refused(written, path, value):
    """The message with which a configuration is refused whose key at `path` has this value."""
    changed = copy.deepcopy(written)
    *parents, last = path.split(".")
    entry = changed
    for name in parents:
        entry = entry[name]
    entry[last] = value
    with pytest.raises(InputError) as error:
        resolve(changed)
    return str(error.value)


def test_a_release_without_quotes_is_the_date_that_yaml_takes_it_for(written):
    written["release"] = date(2026, 1, 6)
    assert resolve(written)["release"] == "2026-01-06"


def test_a_benchmark_on_the_hub_is_pinned_without_being_told(written):
    written["benchmarks"] = {"sre": {"kind": "scirepeval", "hub": {}}}
    hub = resolve(written)["benchmarks"]["sre"]["hub"]
    assert [hub[half]["dataset"] for half in ("texts", "labels")] == ["allenai/scirepeval", "allenai/scirepeval_test"]
    assert all(len(hub[half]["revision"]) == 40 for half in hub)


def test_the_default_configuration_is_complete_with_defaults(written):
    config = resolve(written)
    assert config["models"]["cocite"]["epochs"] == 1
    assert config["embeddings"]["citation-dot"]["neighbours"]["metric"] == "cosine"
    assert written["models"]["cocite"].get("epochs") is None


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("modles", {}, "key modles is not known; did you mean models?"),
        ("models.cocite.los", "triplet", "key models.cocite.los is not known; did you mean loss?"),
        ("models.cocite.lr", "2e-5", "key models.cocite.lr must be of type number, not '2e-5' (YAML reads"),
        (
            "models.cocite.loss",
            "tripel",
            "key models.cocite.loss is 'tripel'; it must be one of angle, cosent, infonce",
        ),
        ("models.cocite.encoder", "big", "key models.cocite.encoder names 'big', which encoders does not declare"),
        ("models.cocite.triplets", "none", "(declared: cocite, scincl, specter)"),
        ("models.bm25", {"triplets": "cocite", "encoder": "small"}, "key models.bm25: that name is a baseline's"),
        ("models.Cocite", {}, "key models.Cocite: a name must be of small letters"),
        ("triplets.cocite.k_positive", 300, "k_positive (300) must be below k_negative (300)"),
        ("triplets.cocite.k_positive", 3, "k_positive (3) must be at least per_query (5)"),
        ("triplets.cocite.k_negative", 12, "k_negative (12) must be at least k_positive + hard negatives (10 + 5)"),
        ("triplets.cocite.k_negative", 401, "must not exceed embeddings.cocitation-dot.neighbours.k (400)"),
        ("triplets.cocite.easy", 6, "key triplets.cocite.easy must not exceed per_query (5)"),
        ("triplets.cocite.graph", "citation", "key triplets.cocite.graph does not go with sampler: neighbours"),
        ("triplets.cocite.sampler", "neighbors", "key triplets.cocite.sampler is 'neighbors'"),
        ("triplets.specter.graph", "cocitation", "'cocitation' is not a directed citation graph"),
        (
            "embeddings.cocitation-dot.neighbours",
            {"k": 400, "index": {"kind": "ivf", "nlist": 8, "nprobe": 9}},
            "embeddings.cocitation-dot.neighbours.index.nprobe (9) must not exceed nlist (8)",
        ),
        ("embeddings.cocitation-dot.neighbours.k", 3000, "neighbours.k (3000) must be smaller than 2999"),
        (
            "benchmarks.scirepeval.tasks",
            ["fos", "chess"],
            "names 'chess', which is no task of the kind scirepeval (they",
        ),
        ("benchmarks.scirepeval.hub", {}, "needs exactly one of folder and hub"),
        (
            "benchmarks.scirepeval.hub",
            {"labels": {"revision": "main"}},
            "benchmarks.scirepeval.hub.labels.revision is 'main'; it must be a commit of 40 hexadecimal digits",
        ),
        ("benchmarks.more", {"kind": "scirepeval"}, "key benchmarks.more needs exactly one of folder and hub"),
        ("benchmarks.more", {"kind": "mdcr"}, "key benchmarks.more.folder is missing"),
        (
            "benchmarks.more",
            {"kind": "beir", "folder": "none"},
            "benchmarks.more.folder: the folder none does not exist",
        ),
        ("benchmarks.holdout.tasks", ["cite"], "key benchmarks.holdout.tasks does not go with kind: holdout"),
        (
            "embeddings.cocitation-dot.holdout",
            0.5,
            "embeddings.cocitation-dot.holdout is 0.5; it must be less than 0.5",
        ),
        ("embeddings.cocitation-dot.holdout_of", "mirrors", "'mirrors'; it must be one of pairs, edges"),
        ("embeddings.cocitation-dot.import", "csv", "'csv'; it must be one of arrow, tsv"),
        ("embeddings.cocitation-dot.batch_size", 999, "batch_size (999) must be a multiple of batch_negatives (50)"),
        (
            "embeddings.cocitation-dot.weight_unit",
            0,
            "embeddings.cocitation-dot.weight_unit is 0; it must be more than 0",
        ),
        ("graphs.citation.pairs", "all", "key graphs.citation.pairs does not go with signal: citation"),
        (
            "graphs.cocitation.strength",
            "cosin",
            "key graphs.cocitation.strength is 'cosin'; it must be one of count, cos",
        ),
        (
            "graphs.cocitation.max_citations",
            9,
            "graphs.cocitation.max_citations does not go with signal: cocitation",
        ),
        (
            "graphs.cocitation",
            {"signal": "coupling", "max_references": 9},
            "max_references does not go with signal: coupling",
        ),
        ("graphs.sum", {"signal": "combination"}, "key graphs.sum.of is missing"),
        (
            "graphs.sum",
            {"signal": "combination", "of": {"links": 1}},
            "key graphs.sum.of names 'links', which graphs do",
        ),
        (
            "graphs.sum",
            {"signal": "combination", "of": {"citation": 1}},
            "graphs.sum.of names 'citation', which is dir",
        ),
        ("graphs.sum", {"signal": "combination", "of": {"cocitation": 0}}, "key graphs.sum.of.cocitation is 0; it"),
        (
            "graphs.sum",
            {"signal": "combination", "of": {"cocitation": 1e308}},
            "graphs.sum.of.cocitation is 1e+308; it must be at most 1000000000.0",
        ),
        (
            "graphs.sum",
            {"signal": "combination", "of": {"sum": 1}},
            "graphs.sum.of: a combination must not be a part of",
        ),
        ("encoders.small.model", "some/model", "key encoders.small needs exactly one of model, package and build"),
        ("encoders.small.build.heads", 3, "key encoders.small.build.hidden must be a multiple of heads"),
        ("corpus.source", "directory", "key corpus.path is missing"),
        ("corpus.source", "demos", "key corpus.source is 'demos'; it must be one of demo, directory, s2"),
        ("queries.holdout", 0, "key benchmarks.holdout needs held-out papers"),
        ("queries.from", "file", "key queries.path is missing"),
        ("queries.from", "triplets", "key queries.revision is missing; what comes from the Hugging Face hub is pinned"),
        (
            "queries",
            {"min_year": 2001, "max_year": 2000},
            "key queries.min_year (2001) must not be after max_year (2000)",
        ),
        ("queries", None, "key queries must be of type object, not None (nothing stands behind the key: leave it out"),
        ("queries.fields", "Art", "key queries.fields must be of type array"),
        (
            "exclude",
            ["none.txt"],
            "key exclude[0]: none.txt is neither a file nor a benchmark (declared: holdout, scire",
        ),
        (
            "exclude",
            ["scirepeval", "holdout"],
            "key exclude[1]: the papers of the benchmark holdout are held out already",
        ),
        (
            "exclude",
            ["mine.parquet"],
            "key exclude[0]: mine.parquet is a table; the papers to exclude stand in a text f",
        ),
        ("exclude", ["$COCITE_NOWHERE"], "key exclude[0] is '$COCITE_NOWHERE', but that variable is not set"),
        (
            "release",
            "newest",
            "key release is newest, which is no date of the calendar; releases of the source demo have",
        ),
        ("release", "20260106", "key release is 20260106, which is no date of the calendar"),
        ("release", 2026, "key release must be of type string, not 2026 (write it in quotes)"),
        ("corpus.buckets", 2.0, "key corpus.buckets must be of type integer, not 2.0"),
        ("pathvars", {"results": "~/mine"}, "key pathvars.results is '~/mine'; it is taken as it stands"),
        ("pathvars", {"results": "$HOME/mine"}, "key pathvars.results is '$HOME/mine'"),
        ("pathvars", {"logs": "logs/"}, "key pathvars.logs is 'logs/'"),
        ("pathvars", {"results": "./results/mine"}, "has no ./ in front and no slash too many"),
        ("pathvars", {"results": "results//mine"}, "key pathvars.results is 'results//mine'"),
        ("pathvars", {"results": "out{1}"}, "key pathvars.results is 'out{1}'; a path must not have the character '{'"),
        ("pathvars", {"results": "a\0b"}, "a path must not have the character '\\x00'"),
        ("pathvars", {"benchmarks": "/dev/null/b"}, "no folder can be made at /dev/null/b (/dev/null is a file)"),
        (
            "corpus",
            {"source": "directory", "path": "<mine>"},
            "key corpus.path is '<mine>'; a path must not have the character '<'",
        ),
        (
            "corpus",
            {"source": "directory", "path": "~no-such-user/x"},
            "key corpus.path is '~no-such-user/x', but there is no such home",
        ),
        (
            "corpus",
            {"source": "s2", "api": "ftp://host"},
            "key corpus.api is 'ftp://host'; it must be a URL that starts with http:// or",
        ),
        (
            "queries",
            {"from": "triplets", "revision": "main"},
            "queries.revision is 'main'; it must be a commit of 40 hexadecimal digits",
        ),
        ("encoders.small.package", "a-b", "encoders.small.package is 'a-b'; it must be the name of a Python package"),
        ("triplets.specter.group", "All", "key triplets.specter.group is 'All'; it must be of small letters, digits"),
        ("graphs.a\n", {"signal": "citation"}, "a name must be of small letters"),
        ("graphs." + "a" * 101, {"signal": "citation"}, "and have at most 100 of them"),
        ("models.cocite.lr", float("nan"), "key models.cocite.lr is nan; it must be a number that is finite"),
        ("models.cocite.lr", float("inf"), "key models.cocite.lr is inf; it must be a number that is finite"),
        (
            "queries.count",
            10**30,
            "key queries.count is 1000000000000000000000000000000; a whole number must be below 2⁶³",
        ),
        ("models.cocite.seeds", [], "key models.cocite.seeds is [], which should be non-empty"),
        ("models.cocite.seeds", [*range(1, 99), 1], "…, which has non-unique elements"),
        ("release", "latest", "key release is latest, which only the source s2 can tell"),
        ("release", "2026-02-30", "key release is 2026-02-30, which is no date"),
        ("triplets.omissions", {"sampler": "citations", "graph": "citation"}, "the folder of that name is taken"),
        (
            "embeddings.citation-dot",
            {"graph": "citation", "batch_negatives": 0, "uniform_negatives": 0},
            "key embeddings.citation-dot: batch_negatives and uniform_negatives are both 0",
        ),
        ("benchmarks.scirepeval.folder", "/not/there", "the folder /not/there does not exist"),
    ],
)
def test_the_sentence_names_the_key(written, path, value, sentence):
    message = refused(written, path, value)
    assert message.startswith("Configuration key ")
    assert sentence in message
    assert "\n" not in message


def test_all_that_is_wrong_is_told_at_once(written):
    written["models"]["cocite"] |= {"los": "triplet", "epochs": 0}
    _, faults = resolve_or_explain(written | {"seed": -1})
    assert len(faults) == 3
    assert [any(key in fault for fault in faults) for key in ("cocite.los ", "cocite.epochs ", "seed ")] == [True] * 3


def test_what_does_not_fit_together_is_told_for_each_section(written):
    written["models"]["cocite"]["encoder"] = "big"
    written["queries"] = {"from": "file", "path": "none.txt", "holdout": 200}
    _, faults = resolve_or_explain(written | {"release": "mine"})
    assert len(faults) == 3
    for key in ("release is mine", "queries.path: the file none.txt", "models.cocite.encoder names 'big'"):
        assert any(f"Configuration key {key}" in fault for fault in faults)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("encoders.small.package", " ~"),
        ("triplets.specter.group", " ~"),
        ("corpus", {"source": "s2", "api": " ~"}),
        ("queries", {"from": "triplets", "revision": " ~"}),
        ("graphs. ~", {"signal": "citation"}),
    ],
)
def test_no_message_shows_a_regular_expression(written, path, value):
    message = refused(written, path, value)
    assert not any(pattern in message for pattern in MEANINGS)
    assert not set("^$[]*+\\") & set(message)
    assert "must be " in message


def test_combinations_may_be_parts_of_others_but_not_of_themselves(written):
    parts = {"first": {"cocitation": 1.0}, "second": {"first": 0.5, "cocitation": 2.0}}
    written["graphs"] |= {name: {"signal": "combination", "of": of} for name, of in parts.items()}
    assert resolve(written)["graphs"]["second"]["normalise"] == "none"
    assert "graphs.first.of: a combination must not be a part of itself" in refused(
        written, "graphs.first.of", {"second": 1.0}
    )


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "embeddings.cocitation-dot.neighbours.index",
            {"kind": "flat", "nlist": 8},
            "nlist does not go with kind: flat",
        ),
        (
            "embeddings.cocitation-dot.neighbours.index",
            {"kind": "hnsw", "nprobe": 8},
            "nprobe does not go with kind: hn",
        ),
        ("models.cocite.trainable", {"kind": "all", "rank": 8}, "trainable.rank does not go with kind: all"),
        ("models.cocite.lora_rank", 8, "lora_rank is not known"),
        ("models.cocite.loss", {"kind": "cosent", "margin": 1.0}, "loss.margin does not go with kind: cosent"),
        (
            "models.cocite.margin",
            1.0,
            "margin is not known; it stands within loss, as in loss: {kind: triplet, margin: …}",
        ),
        (
            "embeddings.citation-dot.loss",
            {"kind": "softmax", "margin": 1.0},
            "margin does not go with kind: softmax",
        ),
        ("corpus.api", "https://host", "corpus.api does not go with source: demo"),
        ("corpus.shards", {}, "corpus.shards does not go with source: demo"),
        (
            "triplets.cocite.easy_negatives",
            {"kind": "random", "clusters": 9},
            "clusters does not go with kind: random",
        ),
        ("triplets.cocite.easy_negatives", {"kind": "k-means", "drawn": 9}, "drawn does not go with kind: k-means"),
        ("encoders.small.revision", "0" * 40, "encoders.small.revision does not go with build"),
        ("queries.path", "ids.txt", "queries.path does not go with from: rule"),
        ("queries.revision", "0" * 40, "queries.revision does not go with from: rule"),
    ],
)
def test_a_key_that_would_have_no_effect_is_refused(written, path, value, sentence):
    assert sentence in refused(written, path, value)


def test_a_name_stands_for_an_entry_that_holds_nothing_else(written):
    written["models"]["cocite"]["trainable"] = "lora"
    config = resolve(written)
    assert config["models"]["cocite"]["trainable"] == {"kind": "lora", "rank": 8, "alpha": 16}
    assert resolve(written | {"models": config["models"]}) == config


def test_a_hub_model_must_be_pinned(written):
    entry = {"model": "some/model"}
    assert "encoders.small.revision is missing" in refused(written, "encoders.small", entry)


def test_a_variable_that_is_not_set_is_named(written, monkeypatch):
    monkeypatch.delenv("COCITE_NOWHERE", raising=False)
    corpus = {"source": "directory", "path": "$COCITE_NOWHERE/release"}
    assert "corpus.path is '$COCITE_NOWHERE/release', but that variable is not set" in refused(
        written, "corpus", corpus
    )


@pytest.fixture
def release(tmp_path):
    for dataset in ("papers", "abstracts", "citations"):
        (tmp_path / dataset).mkdir()
        (tmp_path / dataset / f"x_00000_{dataset}.gz").touch()
    stated = {"release_id": "2026-01-06", "papers": 300, "abstracts": 290, "citations": 100}
    (tmp_path / "release.json").write_text(json.dumps(stated))
    return tmp_path


@pytest.mark.parametrize("name", ["mine-v1", "2024", "v1.0_final", "2026-02-30"])
def test_a_release_in_a_folder_has_any_name(written, release, name):
    (release / "release.json").unlink()
    del written["benchmarks"]["scirepeval"]
    corpus = {"source": "directory", "path": str(release)}
    assert resolve(written | {"release": name, "corpus": corpus})["release"] == name


@pytest.mark.parametrize("name", ["my release", "../x", "", "-v1", "a" * 101, "mine\n"])
def test_a_name_that_no_release_can_have_is_refused_with_the_rule(written, release, name):
    (release / "release.json").unlink()
    written["corpus"] = {"source": "directory", "path": str(release)}
    message = refused(written, "release", name)
    assert "; the name of a release has letters from a to z" in message
    assert "\n" not in message
    assert not set("[]{}*+") & set(message)


@pytest.mark.parametrize("name", ["results", "logs", "benchmarks"])
def test_what_a_run_writes_must_not_be_mixed_with_the_release(written, release, name):
    written["corpus"] = {"source": "directory", "path": str(release)}
    for folder in (release, release / "papers" / "more"):
        message = refused(written, "pathvars", {name: str(folder)})
        assert f"key pathvars.{name}: the folder {folder} lies in the release in {release}" in message


def test_a_release_in_the_results_folder_is_refused_because_a_run_removes_files_there(written, release):
    written["corpus"] = {"source": "directory", "path": str(release)}
    message = refused(written, "pathvars", {"results": str(release.parent)})
    assert "holds the release in" in message
    assert "a run removes files from its results" in message


def test_links_do_not_hide_that_results_and_release_are_one_folder(written, release, tmp_path_factory):
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(release)
    written["corpus"] = {"source": "directory", "path": str(link)}
    assert "lies in the release" in refused(written, "pathvars", {"results": str(release)})


def test_a_release_that_this_user_may_not_look_into_is_told_in_a_sentence(written, release, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    # Rights do not bind the user root, as whom tests may run.
    monkeypatch.setattr("cocite.corpus.sources.directory.find_shards", refuse)
    message = refused(written, "corpus", {"source": "directory", "path": str(release)})
    assert message == f"{release}/papers: Permission denied; grant this user the right to it."


def test_a_file_that_nobody_would_read_is_refused(written, release):
    (release / "papers" / "1.csv").touch()
    message = refused(written, "corpus", {"source": "directory", "path": str(release)})
    assert message.startswith(f"Configuration key corpus.path: {release}/papers/1.csv would not be read")


def test_a_release_that_lacks_a_dataset_is_refused(written, release):
    (release / "abstracts" / "x_00000_abstracts.gz").unlink()
    message = refused(written, "corpus", {"source": "directory", "path": str(release)})
    assert "lacks the dataset abstracts" in message


def test_another_release_than_the_folder_holds_is_refused(written, release):
    written["corpus"] = {"source": "directory", "path": str(release)}
    assert "holds the release 2026-01-06" in refused(written, "release", "2026-02-02")


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"release_id": "\xff"}'])
def test_a_release_json_that_is_no_object_is_named(written, release, content):
    (release / "release.json").write_bytes(content)
    assert "release.json" in refused(written, "corpus", {"source": "directory", "path": str(release)})


@pytest.mark.parametrize("counts", [{"papers": -5, "citations": 9}, {"papers": True, "citations": 9}])
def test_counts_that_are_none_say_nothing_about_k(written, release, counts):
    (release / "release.json").write_text(json.dumps(counts))
    written["corpus"] = {"source": "directory", "path": str(release)}
    del written["benchmarks"]["scirepeval"]
    assert resolve(written)["embeddings"]["citation-dot"]["neighbours"]["k"] == 400


def test_a_release_json_without_counts_says_nothing_about_k(written, release):
    (release / "release.json").write_text(json.dumps({"papers": None, "citations": "many"}))
    written["corpus"] = {"source": "directory", "path": str(release)}
    del written["benchmarks"]["scirepeval"]
    assert resolve(written)["embeddings"]["citation-dot"]["neighbours"]["k"] == 400


def test_k_beyond_all_papers_of_a_folder_is_refused(written, release):
    corpus = {"source": "directory", "path": str(release)}
    assert "neighbours.k (400) must be smaller than " in refused(written, "corpus", corpus)


@pytest.fixture
def base(tmp_path, monkeypatch):
    """What a run with two buckets leaves that kept its ingested rows."""
    for table in ("papers", "citations", *(f"ingested/{name}" for name in ("papers", "abstracts", "citations"))):
        for bucket in range(2):
            (tmp_path / "base" / "corpus" / table).mkdir(parents=True, exist_ok=True)
            (tmp_path / "base" / "corpus" / table / f"{bucket}.parquet").touch()
    (tmp_path / "base" / "corpus" / "manifest.json").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "base"


def test_a_base_is_an_earlier_run_that_kept_its_rows_in_as_many_buckets(written, base):
    del written["benchmarks"]["scirepeval"]
    s2 = {"source": "s2", "base": "base", "buckets": 2}
    assert resolve(written | {"corpus": s2})["corpus"]["base"] == "base"
    assert "base has 2 buckets, but corpus.buckets is 3" in refused(written, "corpus", s2 | {"buckets": 3})
    for file in (base / "corpus" / "ingested" / "abstracts").iterdir():
        file.unlink()
    assert "the run in base did not keep its ingested rows (no corpus/ingested/abstracts/" in refused(
        written, "corpus", s2
    )
    (base / "corpus" / "manifest.json").unlink()
    assert "base is not the results folder of an earlier run" in refused(written, "corpus", s2)


def test_a_base_is_another_folder_and_goes_with_the_source_that_has_diffs(written, base):
    assert "key corpus.base does not go with source: demo" in refused(written, "corpus.base", "base")
    written["corpus"] = {"source": "s2", "buckets": 2, "base": "base"}
    assert "corpus.base: base is this run's own results folder" in refused(written, "pathvars", {"results": str(base)})


def test_a_base_that_has_served_may_be_gone(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    del written["benchmarks"]["scirepeval"]
    written["corpus"] = {"source": "s2", "buckets": 2, "base": "base"}
    assert "base is not the results folder" in refused(written, "release", "2026-01-13")
    (tmp_path / "results" / "corpus").mkdir(parents=True)
    (tmp_path / "results" / "corpus" / "manifest.json").touch()
    assert resolve(written)["corpus"]["base"] == "base"


@pytest.mark.parametrize("name", ["synergy", "hci", "hci-graphs", "hci-triplets", "hci-losses"])
def test_the_experiments_on_real_corpora_are_valid(name, shared, monkeypatch):
    monkeypatch.setenv("COCITE_SHARED", str(shared))
    resolve(yaml.safe_load((ROOT / f"experiments/{name}.yaml").read_text()))


def test_the_experiment_at_paper_scale_is_valid(tmp_path, monkeypatch):
    monkeypatch.setenv("COCITE_SCIBERT", str(tmp_path))
    config = resolve(yaml.safe_load((ROOT / "experiments/cocite.yaml").read_text()))
    assert config["models"]["cocite-500-3000"]["seeds"] == [1, 2, 3]


def test_the_comparison_of_losses_is_four_losses_by_three_encoders_by_three_seeds(tmp_path, monkeypatch):
    for variable in ("COCITE_SCIBERT", "COCITE_GTE"):
        monkeypatch.setenv(variable, str(tmp_path))
    models = resolve(yaml.safe_load((ROOT / "experiments/losses.yaml").read_text()))["models"].values()
    assert len({(model["loss"]["kind"], model["encoder"]) for model in models}) == len(models) == 12
    assert {tuple(model["seeds"]) for model in models} == {(1, 2, 3)}


def test_the_published_graph_embeddings_are_valid():
    config = resolve(yaml.safe_load((ROOT / "experiments/graph-embeddings.yaml").read_text()))
    settings = {(entry["comparator"], entry["dimension"]) for entry in config["embeddings"].values()}
    assert settings == {("dot", 128), ("dot", 512), ("dot", 768), ("cos", 768)}


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
    written["queries"] |= {"from": "triplets", "dataset": "~/bert"}
    resolved = resolve(written)
    assert resolved["encoders"]["small"]["model"] == resolved["queries"]["dataset"] == str(tmp_path / "bert")
