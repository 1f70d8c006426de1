"""Published results are in the rows of the models with the same settings, with what this run reached beside them."""

import polars as pl
import pytest
import yaml
from tests.configurations import recorded
from tests.published_sizes import experiments as experiments

from cocite.config.benchmarks import BENCHMARKS
from cocite.config.runs import scored_models
from cocite.report.published import read_published
from cocite.report.repetitions import FORMATS, VALUES, ablations, model_with_settings_of, objectives, sciaspect

TABLES = ("ablations", "aspects", "objectives")
ALL = {"kind": "all"}
WHOLE = {"encoder": "scibert", "trainable": ALL}
SUPCON = {"kind": "supcon", "temperature": 0.05}
SETS = {"graph": "citation", "positives": 1, "easy": 3, "paired": False, "oversample": False}
CITED = {"sampler": "citations", "graph": "citation", "directed": True, "per_query": 5, "easy": 3}
GRAPHS = {"graphs": {"citation": {"signal": "citation", "directed": True}}, "embeddings": {}}
OF_ASPECTS = {
    **GRAPHS,
    "triplets": {
        "aspects": {**SETS, "sampler": "aspects", "linked": 10, "two_away": 0, "miscellaneous": False},
        "one": {**SETS, "sampler": "undirected", "positives": 3, "hard": 2},
        "undirected": {**SETS, "sampler": "undirected", "positives": 5, "hard": 2},
        "cited": CITED,
    },
    "encoders": {"scibert": {"model": "x", "pooling": "cls", "text": ["title", "abstract"]}},
    "models": {
        "l1": {
            **WHOLE,
            **{"triplets": "aspects", "objectives": [{"loss": SUPCON, "space": "aspects"}]},
            "spaces": ["result", "concatenated"],
        },
        "mine": {**WHOLE, "triplets": "one", "loss": SUPCON},
        "specter": {**WHOLE, "triplets": "cited", "loss": {"kind": "triplet"}},
    },
    "benchmarks": {
        **{name: {"kind": "scirepeval"} for name in ("sre", "again")},
        **{"fields": {"kind": "mdcr"}, "holdout": {"kind": "holdout"}},
    },
}
SPECTER = {**WHOLE, "triplets": "specter", "loss": {"kind": "triplet"}}
OF_ABLATIONS = {
    **GRAPHS,
    "triplets": {"specter": CITED, "two": {**CITED, "per_query": 2, "easy": 1}},
    "models": {
        "with-venue": {**SPECTER, "encoder": "scibert-venue"},
        "mine": {**SPECTER, "triplets": "two"},
    },
    "encoders": {"scibert": {}, "scibert-venue": {"text": ["title", "abstract", "venue"]}},
    "benchmarks": {"holdout": {"kind": "holdout"}, "papers": {"kind": "scidocs"}},
}
FIVE = ("scifact", "nfcorpus", "trec-covid", "arguana", "scidocs")
MNRL = {"encoder": "minilm", "trainable": ALL, "loss": {"kind": "mnrl"}}
OF_OBJECTIVES = {
    **GRAPHS,
    "triplets": {"crops": {"sampler": "cropping"}, "random": {"sampler": "random"}},
    "models": {"crops": {**MNRL, "triplets": "crops"}, "mine": {**MNRL, "triplets": "random"}},
    "encoders": {"minilm": {}},
    "benchmarks": {
        "beir": {"kind": "beir", "datasets": dict.fromkeys((*FIVE, "fiqa"), "x")},
        "again": {"kind": "beir", "datasets": {"scifact": "x"}},
        "iclr": {"kind": "beir", "datasets": {"iclr2022": "x"}, "queries": "documents"},
        "papers": {"kind": "scidocs"},
    },
}
AVERAGES = {"benchmark": str, "model": str, "mode": str, "over": str, "average": str}
AVERAGES |= {"mean": float, "deviation": float, "values": int, "expected": int}


def average(model, mean, *, benchmark="sre", mode="compat", of=("all", "all"), deviation=None, values=25, expected=25):
    names = {"benchmark": benchmark, "model": model, "mode": mode, "over": of[0], "average": of[1]}
    return {**names, "mean": mean, "deviation": deviation, "values": values, "expected": expected}


def score(model, task, value, *, benchmark="papers", metric="map", mode="both", seed=1):
    names = {"benchmark": benchmark, "model": model, "task": task, "metric": metric, "mode": mode}
    return {**names, "seed": seed, "evaluation_seed": 1, "value": value}


def rows_of(table, configuration, averages=(), scores=()):
    """The rows by the published result, or by the model without one."""
    found = pl.DataFrame(averages, schema=AVERAGES)
    given = [found] if table is sciaspect else [pl.DataFrame(scores), found]
    made = table(*given, recorded(configuration))
    return {row["model"] if row["published result"] == "–" else row["published result"]: row for row in made.to_dicts()}


def without(configuration, part, *names):
    return {**configuration, part: {name: each for name, each in configuration[part].items() if name not in names}}


@pytest.mark.parametrize("table", TABLES)
def test_the_models_of_an_experiment_have_the_settings_of_the_published_results_of_their_names(table, experiments):
    configuration = experiments(table)
    published = {row["model"]: row for row in read_published(table).iter_rows(named=True)}
    assert published.keys() <= set(scored_models(recorded(configuration)))
    found = {name: model_with_settings_of(row, recorded(configuration)) for name, row in published.items()}
    assert found == {name: name for name in published}
    settings = [(name.partition("_in_")[2], yaml.safe_load(row["settings"])) for name, row in published.items()]
    assert not [one for place, one in enumerate(settings) if one in settings[:place]]


def test_a_renamed_model_has_the_published_result_and_a_changed_one_has_not(experiments):
    resolved = experiments("ablations")
    renamed = {"mine": resolved["models"]["specter"], "specter": resolved["models"]["specter-no-hard"]}
    configuration = {**resolved, "models": renamed}
    rows = read_published("ablations").to_dicts()
    found = {row["name"]: model for row in rows if (model := model_with_settings_of(row, recorded(configuration)))}
    assert found == {"SPECTER": "mine", "SPECTER, no hard negatives": "specter"}


def test_ours_stand_beside_the_published_values_of_the_model_and_space():
    of_mdcr = {"benchmark": "fields", "mode": "both", "of": ("metric", "map"), "expected": None}
    averages = [average("l1", 60.04, deviation=0.25), average("l1_in_result", 61.0), average("l1", 31.0, **of_mdcr)]
    rows = rows_of(sciaspect, OF_ASPECTS, averages)
    of_space = rows["SciAspect, space of result"]
    assert rows["SciAspect (L1)"] == {
        **{"published result": "SciAspect (L1)", "reference": "SciAspect, Table 6.2", "model": "l1"},
        **{"SciDocs": "79.94", "SciDocs, ours": "–", "SciRepEval": "68.14", "SciRepEval, ours": "60.0 ± 0.2"},
        **{"MDCR MAP": "32.55", "MDCR MAP, ours": "31.0", "MDCR nDCG": "59.00", "MDCR nDCG, ours": "–"},
        **{"MDCR recall@5": "27.25", "MDCR recall@5, ours": "–"},
    }
    assert (of_space["SciDocs"], of_space["SciRepEval"], of_space["SciRepEval, ours"]) == ("79.91", "–", "61.0")
    with_ours = {name for name, row in rows.items() if any(row[key] != "–" for key in row if key.endswith(", ours"))}
    assert with_ours == {"SciAspect (L1)", "SciAspect, space of result"}
    assert (rows["SciAspectWeighted"]["SciDocs"], rows["SciAspectWeighted"]["model"]) == ("78.87", "–")


@pytest.mark.parametrize(("sampled", "model", "ours"), [("undirected", "other", "61.0"), ("cited", "–", "–")])
def test_a_published_result_is_in_the_row_of_the_model_with_its_settings_whatever_its_name(sampled, model, ours):
    """A model named specter samples citations in one direction; SPECTER (undirected) samples both."""
    other = {**OF_ASPECTS["models"]["specter"], "triplets": sampled}
    configuration = {**OF_ASPECTS, "models": {**OF_ASPECTS["models"], "other": other}}
    averages = [average("specter", 60.0), average("other", 61.0)]
    row = rows_of(sciaspect, configuration, averages)["SPECTER (undirected)"]
    assert (row["model"], row["SciRepEval"], row["SciRepEval, ours"]) == (model, "68.52", ours)


def test_ours_are_in_the_published_mode_of_the_first_benchmark_of_a_kind_and_say_what_they_lack():
    averages = [average("l1", 70.0, mode="correct"), average("l1", 60.0, values=24)]
    averages += [average("l1", 50.0, benchmark="again"), average("mine", 40.0, mode="correct")]
    rows = rows_of(sciaspect, OF_ASPECTS, averages)
    assert rows["SciAspect (L1)"]["SciRepEval, ours"] == "60.0 (24 of 25 values)"
    assert (len(rows), list(rows)[-1]) == (31, "mine")
    assert (rows["mine"]["published result"], rows["mine"]["SciRepEval, ours"]) == ("–", "40.0")


def test_the_named_settings_of_sciaspect_are_the_best_of_their_grids_and_its_averages_those_of_its_values():
    of = {name: float(value) for name, value in read_published("aspects").select("model", "SciDocs").rows()}
    for family, named in (("specter-cl", "specter-cl"), ("hybrid", "hybrid-7")):
        assert max((name for name in of if name.startswith(family)), key=of.get) == named
    values = read_published("scidocs").filter(pl.col("reference").str.starts_with("SciAspect"))
    by_model = dict(values.select("model", "average").rows())
    assert sorted(by_model.values()) == sorted(read_published("aspects")["SciDocs"])


@pytest.mark.parametrize(
    ("table", "configuration"),
    [
        (sciaspect, without(OF_ASPECTS, "benchmarks", "sre", "again", "fields")),
        (sciaspect, without(OF_ASPECTS, "models", "l1", "mine")),
        (objectives, without(OF_OBJECTIVES, "benchmarks", "beir", "again", "iclr")),
        (ablations, without(OF_ABLATIONS, "models", "with-venue")),
        (ablations, without(OF_ABLATIONS, "benchmarks", "papers")),
    ],
)
def test_a_run_without_such_models_or_benchmarks_has_no_such_table(table, configuration):
    assert rows_of(table, configuration, [average("specter", 60.0)], [score("mine", "mag", 1.0)]) == {}


def search(model, dataset, value, *, benchmark="beir", metric="ndcg_cut_10", seed=1):
    return score(model, f"beir_{dataset.replace('-', '_')}", value, benchmark=benchmark, metric=metric, seed=seed)


def test_there_is_a_row_for_each_published_result_of_objectives():
    published = read_published("objectives")
    assert len(published) == published["model"].n_unique() == 24
    assert published.null_count().sum_horizontal().item() == 0
    best = {"BEIR nDCG@10": "cropping-msmarco", "SciDocs": "citations", "ICLR2022 nDCG@10": "cropping-citations"}
    values = published.with_columns(pl.col(*best).cast(float))
    assert {name: values.filter(pl.col(name) == pl.col(name).max())["model"].item() for name in best} == best


def test_ours_is_the_mean_over_the_five_datasets_and_over_seeds():
    scores = [
        search("crops", name, value + place, seed=seed)
        for seed, value in ((1, 20.0), (2, 24.0))
        for place, name in enumerate(FIVE)
    ]
    scores += [search("crops", "fiqa", 99.0), search("crops", "scifact", 99.0, metric="recall_100")]
    scores += [search("crops", "scifact", 99.0, benchmark="again"), search("crops", "iclr2022", 41.0, benchmark="iclr")]
    scores += [search("mine", "scifact", 30.0), search("mine", "arguana", 40.0), search("bm25", "scifact", 66.0)]
    averages = [average("crops", 71.0, benchmark="papers", values=12, expected=12)]
    rows = rows_of(objectives, OF_OBJECTIVES, averages, scores)
    assert rows["ICrop"] == {
        **{"published result": "ICrop", "reference": "Parisot and Zavrel, Table 3", "model": "crops"},
        **{"BEIR nDCG@10": "24.4", "BEIR nDCG@10, ours": "24.0 ± 2.8", "SciDocs": "74.93", "SciDocs, ours": "71.0"},
        **{"ICLR2022 nDCG@10": "37.0", "ICLR2022 nDCG@10, ours": "41.0"},
    }
    assert list(rows)[24:] == ["mine", "untrained_minilm", "bm25"]
    assert rows["mine"]["BEIR nDCG@10, ours"] == "35.0 (2 of 5 datasets)"
    assert rows["mine"]["published result"] == "–"


def test_the_published_averages_of_formats_fit_the_average_over_all_values():
    """SPECTER's formats have 2, 4, 4 and 2 values. SciNCL's published USR is .9 below what its values give."""
    rows = read_published("ablations").filter(pl.col("REC").is_not_null())
    for row in rows.iter_rows(named=True):
        computed = sum(number * float(row[name]) for name, number in VALUES.items()) / 12
        least, most = (-0.1, 0.1) if row["reference"].startswith("SPECTER") else (0.1, 0.4)
        assert least < float(row["SciDocs"].split()[0]) - computed < most
    assert len(rows) == 17
    metrics = {task.name: task.metrics for task in BENCHMARKS["scidocs"]}
    assert {name: sum(len(metrics[task]) for task in tasks) for name, tasks in FORMATS.items()} == VALUES


def test_ours_are_means_over_the_values_of_a_format_in_the_published_mode_and_over_seeds():
    scores = [
        score("with-venue", task, value + more + 10 * (seed - 1), metric="f1_macro", mode=mode, seed=seed)
        for task, value in (("mag", 80.0), ("mesh", 84.0))
        for seed in (1, 2)
        for mode, more in (("compat", 0), ("correct", 5))
    ]
    for task, value in {"scidocs_view": 80.0, "scidocs_read": 82.0, "scidocs_cite": 85.0}.items():
        scores += [score("with-venue", task, value), score("with-venue", task, value + 10, metric="ndcg")]
    scores += [score("with-venue", "recomm", 50.0, metric="ndcg_adjusted")]
    scores += [score("with-venue", "recomm", 20.0, metric="P_1_adjusted")]
    scores += [score("with-venue", "scidocs_view", 0.0, benchmark="holdout")]
    scores += [score("mine", "mag", 70.0, metric="f1_macro", mode="compat")]
    averages = [average("with-venue", 79.5, benchmark="papers", deviation=0.25, values=12, expected=12)]
    rows = rows_of(ablations, OF_ABLATIONS, averages, scores)
    assert rows["SPECTER, + venue"] == {
        **{"published result": "SPECTER, + venue", "reference": "SPECTER, Table 2", "model": "with-venue"},
        **{"CLS": "84.5", "CLS, ours": "87.0 ± 7.1", "USR": "88.0", "USR, ours": "86.0"},
        **{"CITE": "91.2", "CITE, ours": "90.0 (2 of 4 values)", "REC": "36.7", "REC, ours": "35.0"},
        **{"SciDocs": "79.9", "SciDocs, ours": "79.5 ± 0.2"},
    }
    assert list(rows)[24:] == ["mine", "untrained_scibert", "untrained_scibert-venue"]
    assert rows["mine"]["CLS, ours"] == "70.0 (1 of 2 values)"
    assert (rows["SciNCL, from BERT-large"]["SciDocs"], rows["SciNCL, from BERT-large"]["model"]) == ("81.4", "–")
    assert (rows["SPECTER, title only"]["CLS"], rows["SPECTER"]["SciDocs"]) == ("82.2", "80.2")
