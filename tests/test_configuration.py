"""A configuration that cannot be run is refused at once, in one sentence that names the key."""

import copy
import json
from datetime import date
from pathlib import Path

import pytest
import yaml

from cocite.configuration import read_configuration, resolve, results_folder
from cocite.errors import InputError

ROOT = Path(__file__).parents[1]


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
    assert config["models"]["cocite"]["seeds"] == [1]
    assert config["embeddings"]["citation-dot"]["neighbours"]["metric"] == "cosine"
    assert written["models"]["cocite"].get("seeds") is None


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
        ("triplets.cocite.graph", "citation", "key triplets.cocite.graph is not known"),
        ("triplets.cocite.sampler", "neighbors", "key triplets.cocite.sampler is 'neighbors'"),
        ("triplets.specter.graph", "cocitation", "'cocitation' is not a directed citation graph"),
        (
            "embeddings.cocitation-dot.neighbours",
            {"k": 400, "index": "ivf", "lists": 8, "probes": 9},
            "embeddings.cocitation-dot.neighbours.probes (9) must not exceed lists (8)",
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
            "benchmarks.scirepeval.hub.labels.revision: 'main'",
        ),
        ("benchmarks.more", {"kind": "scirepeval"}, "key benchmarks.more needs exactly one of folder and hub"),
        ("benchmarks.more", {"kind": "mdcr"}, "key benchmarks.more.folder is missing"),
        (
            "benchmarks.more",
            {"kind": "beir", "folder": "none"},
            "benchmarks.more.folder: the folder none does not exist",
        ),
        ("benchmarks.holdout.tasks", ["cite"], "key benchmarks.holdout.tasks is not known"),
        ("embeddings.cocitation-dot.holdout", 0.5, "embeddings.cocitation-dot.holdout: 0.5"),
        ("embeddings.cocitation-dot.holdout_of", "mirrors", "'mirrors'; it must be one of pairs, edges"),
        ("embeddings.cocitation-dot.import", "csv", "'csv'; it must be one of arrow, tsv"),
        ("embeddings.cocitation-dot.batch_size", 999, "batch_size (999) must be a multiple of batch_negatives (50)"),
        ("embeddings.cocitation-dot.weight_unit", 0, "key embeddings.cocitation-dot.weight_unit: 0"),
        ("graphs.citation.pairs", "all", "key graphs.citation.pairs is not known"),
        (
            "graphs.cocitation.strength",
            "cosin",
            "key graphs.cocitation.strength is 'cosin'; it must be one of count, cos",
        ),
        (
            "graphs.cocitation.max_citations",
            9,
            "graphs.cocitation.max_citations does not go with the signal cocitation",
        ),
        (
            "graphs.cocitation",
            {"signal": "coupling", "max_references": 9},
            "max_references does not go with the signal",
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
        ("graphs.sum", {"signal": "combination", "of": {"cocitation": 0}}, "key graphs.sum.of.cocitation: 0"),
        (
            "graphs.sum",
            {"signal": "combination", "of": {"sum": 1}},
            "graphs.sum.of: a combination must not be a part of",
        ),
        ("encoders.small.model", "some/model", "key encoders.small needs exactly one of model, package and build"),
        ("encoders.small.build.heads", 3, "key encoders.small.build.hidden must be a multiple of heads"),
        ("corpus.source", "directory", "key corpus.path is missing"),
        ("corpus.source", "demos", "key corpus.source is 'demos'; it must be one of s2, directory, demo"),
        ("queries.holdout", 0, "key benchmarks.holdout needs held-out papers"),
        ("queries.from", "file", "key queries.path is missing"),
        ("queries.from", "triplets", "key queries.revision is missing; what comes from the Hugging Face hub is pinned"),
        (
            "queries",
            {"min_year": 2001, "max_year": 2000},
            "key queries.min_year (2001) must not be after max_year (2000)",
        ),
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
        ("exclude", ["$COCITE_NOWHERE"], "key exclude[0] is '$COCITE_NOWHERE', but that variable is not set"),
        ("release", "newest", "key release"),
        ("corpus.buckets", 2.0, "key corpus.buckets must be of type integer, not 2.0"),
        ("pathvars", {"results": "~/mine"}, "key pathvars.results is '~/mine'; it is taken as it stands"),
        ("pathvars", {"results": "$HOME/mine"}, "key pathvars.results is '$HOME/mine'"),
        ("pathvars", {"logs": "logs/"}, "key pathvars.logs is 'logs/'"),
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


def test_combinations_may_be_parts_of_others_but_not_of_themselves(written):
    parts = {"first": {"cocitation": 1.0}, "second": {"first": 0.5, "cocitation": 2.0}}
    written["graphs"] |= {name: {"signal": "combination", "of": of} for name, of in parts.items()}
    assert resolve(written)["graphs"]["second"]["normalise"] == "none"
    assert "graphs.first.of: a combination must not be a part of itself" in refused(
        written, "graphs.first.of", {"second": 1.0}
    )


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
    assert "only the source s2 has diffs" in refused(written, "corpus.base", "base")
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
    assert len({(model["loss"], model["encoder"]) for model in models}) == len(models) == 12
    assert {tuple(model["seeds"]) for model in models} == {(1, 2, 3)}


def test_the_published_graph_embeddings_are_valid():
    config = resolve(yaml.safe_load((ROOT / "experiments/graph-embeddings.yaml").read_text()))
    settings = {(entry["comparator"], entry["dimension"]) for entry in config["embeddings"].values()}
    assert settings == {("dot", 128), ("dot", 512), ("dot", 768), ("cos", 768)}


def test_a_value_of_another_form_is_told_what_it_means_and_no_regular_expression(written):
    assert refused(written, "release", "06.01.2026") == (
        "Configuration key release: '06.01.2026' is not what it has to be: Release of the Semantic Scholar datasets, a "
        "date such as 2024-07-16."
    )


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


@pytest.mark.parametrize("pathvars", [{"results": 5}, ["results"], {"results": ""}])
def test_a_folder_of_results_that_is_no_path_is_refused(pathvars):
    with pytest.raises(InputError, match="key pathvars must hold paths, as in"):
        results_folder({"pathvars": pathvars})


@pytest.mark.parametrize("config", [{}, {"pathvars": None}, {"pathvars": {"logs": "elsewhere"}}])
def test_results_lie_in_the_folder_of_that_name_unless_another_is_named(config):
    assert results_folder(config) == Path("results")


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
