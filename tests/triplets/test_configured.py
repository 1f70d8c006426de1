"""Sets of triplets that cannot be sampled are refused before any job, in one sentence that names the key."""

from pathlib import Path

import pytest

from cocite.config.configuration import resolve
from cocite.config.yaml_files import written_configuration
from cocite.core.errors import InputError

ROOT = Path(__file__).parents[2]
NEIGHBOURS = {"sampler": "neighbours", "embedding": "cocitation-dot"}
BANDS = {**NEIGHBOURS, "k_positive": 10, "k_negative": 300}
UNDIRECTED, ASPECTS = ({"sampler": name, "graph": "citation"} for name in ("undirected", "aspects"))
MINED = {"sampler": "mined", "of": "cocite", "by": "bm25"}
SENTENCES = {"sentences": {"signal": "sentence-cocitation"}}


def by_model(name, **more):
    return {**MINED, "by": {"kind": "model", "name": name, **more}, "group": "mined"}


def resolved(entry, *, models=(), queries=(), graphs=(), corpus=(), **others):
    """The set `new` in the demo's configuration with further sets, models (name → set), graphs and keys."""
    config = written_configuration(ROOT / "config.yaml")
    config["triplets"] |= {"new": entry, **others}
    trained = config["models"]["cocite"]
    config["models"] |= {name: {**trained, "triplets": triplets} for name, triplets in dict(models).items()}
    for section, more in (("queries", queries), ("graphs", graphs), ("corpus", corpus)):
        config[section] |= dict(more)
    return resolve(config)["triplets"]["new"]


FAR = {"kind": "sorted-random", "drawn": 2}
EQUAL = {**NEIGHBOURS, "distance_positive": 0.5, "distance_negative": 0.5}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**BANDS, "distance_positive": 0.2}, "triplets.new needs exactly one of k_positive and distance_positive"),
        (NEIGHBOURS, "needs exactly one of k_positive and distance_posit"),
        ({**BANDS, "k_positive": [3, 6]}, "triplets.new.k_positive ([3, 6]) must span at least 5 ranks"),
        ({**BANDS, "k_negative": [8, 300]}, "k_negative ([8, 300]) must be at least k_positive + hard negatives (10 +"),
        ({**BANDS, "k_negative": [99, 500]}, "k_negative (500) must not exceed embeddings.cocitation-dot.neighbours.k"),
        ({**BANDS, "k_positive": "25"}, "triplets.new.k_positive must be of type integer or array, not '25'"),
        ({**BANDS, "k_positive": 0}, "triplets.new.k_positive is 0"),
        ({**BANDS, "easy": 5}, "triplets.new has a band of hard negatives, but as many easy negatives as triplets"),
        ({**BANDS, "easy_negatives": "kmeans"}, "'kmeans'; it must be one of random, pure-random, k-means, sorted-ran"),
        (EQUAL, "triplets.new.distance_negative (0.5) must exceed distance_positive (0.5)"),
        ({**BANDS, "easy": 3, "easy_negatives": FAR}, "new.easy_negatives.drawn (2) must be at least easy (3)"),
        ({**BANDS, "easy_negatives": "k-means"}, "triplets.new.easy_negatives (k-means) has no effect if easy"),
        ({"sampler": "random", "text_filter": "after"}, "triplets.new.text_filter has no effect"),
        ({"sampler": "citations", "graph": "cocitation"}, "'cocitation' is not a directed citation graph"),
        ({"sampler": "cocited", "graph": "citation"}, "triplets.new.graph: 'citation' is not a co-citation graph"),
        ({"sampler": "cocited", "graph": "cocitation", "hard": 1}, "hard needs min_count of at least 2"),
        ({"sampler": "cocited", "graph": "cocitation", "hard": 6}, "hard (6) must not exceed per_query"),
        ({**UNDIRECTED, "hard": 0, "easy": 0}, "triplets.new has no negatives"),
        ({**UNDIRECTED, "oversample": True}, "triplets.new.oversample has no effect"),
        ({**ASPECTS, "miscellaneous": True, "easy": 0}, "triplets.new.miscellaneous needs easy negatives"),
        ({**ASPECTS, "two_away_by": "any"}, "triplets.new.two_away_by has no effect"),
        ({"sampler": "random", "easy": 1}, "triplets.new.easy does not go with sampler: random"),
        ({"sampler": "file", "path": "none.parquet"}, "triplets.new.path: none.parquet is neither a file nor a folder"),
        ({"sampler": "file"}, "triplets.new has no path, and so uses published triplets, which needs queries.from"),
        ({"sampler": "union", "of": ["cocite", "none"]}, "triplets.new.of names 'none', which triplets does not decl"),
        ({"sampler": "union", "of": ["cocite", "new"]}, "triplets.new.of: a set of triplets must not be a part of its"),
        ({"sampler": "subset", "of": "cocite"}, "triplets.new needs exactly one of share and count"),
        ({"sampler": "subset", "of": "cocite", "share": 0}, "triplets.new.share is 0"),
        ({"sampler": "neighbors"}, "did you mean neighbours?"),
        ({"sampler": "contexts"}, "needs the sentences that cite, which are not ingested; set corpus.contexts"),
        ({**MINED, "by": "bm26"}, "triplets.new.by is 'bm26'; it must be one of bm25, encoder, model"),
        ({**MINED, "by": {"kind": "encoder"}}, "triplets.new.by.name is missing"),
        ({**MINED, "by": {"kind": "bm25", "metric": "l2"}}, "triplets.new.by.metric does not go with kind: bm25"),
        ({**MINED, "by": {"kind": "encoder", "name": "large"}}, "new.by.name names 'large', which encoders does not"),
        (by_model("none"), "triplets.new.by.name names 'none', which models does not declare (declared: cocite,"),
        (by_model("cocite", training_seed=9), "triplets.new.by.training_seed is 9, but models.cocite.seeds has 1, 2"),
        ({**MINED, "unlinked_in": ["no"]}, "triplets.new.unlinked_in names 'no', which graphs does not declare"),
        ({**MINED, "ranks": [7, 9], "negatives": 4}, "triplets.new.ranks ([7, 9]) must span at least 4 ranks"),
        ({**MINED, "min_score": 0.9, "max_score": 0.5}, "new.min_score (0.9) must not exceed max_score (0.5)"),
        ({**MINED, "of": "new"}, "triplets.new.of: a set of triplets must not be a part of itself"),
        ({**by_model("cocite"), "group": "all"}, "new.group (all) has a set that the model cocite learns from"),
    ],
)
def test_what_cannot_be_sampled_is_refused(entry, message):
    with pytest.raises(InputError) as error:
        resolved(entry)
    assert message in str(error.value)


def test_rarer_pairs_than_the_graph_holds_are_refused():
    entry = {"sampler": "cocited", "graph": "cocitation", "min_count": 2}
    with pytest.raises(InputError, match=r"min_count \(2\) must not be below graphs\.cocitation\.min_count \(3\)"):
        resolved(entry, graphs={"cocitation": {"signal": "cocitation", "min_count": 3}})


@pytest.mark.parametrize(
    "entry",
    [
        {**BANDS, "k_positive": [1, 25], "k_negative": [200, 400], "easy": 2, "fill": True},
        {**NEIGHBOURS, "k_positive": 25, "easy": 5},
        {**NEIGHBOURS, "distance_positive": 0.2, "distance_negative": 0.5},
        {**BANDS, "easy": 3, "easy_negatives": {"kind": "k-means", "clusters": 8}},
        {"sampler": "citations", "graph": "citation", "directed": False, "oversample": True, "partial": "dropped"},
        {"sampler": "cocited", "graph": "cocitation", "min_count": 2},
        {"sampler": "random"},
        {"sampler": "union", "of": ["cocite", "specter"]},
        {"sampler": "subset", "of": "cocite", "count": 100, "by": "triplet"},
        {**MINED, "by": {"kind": "bm25"}, "unlinked_in": ["citation", "cocitation"], "duplicates": None},
        {**MINED, "by": {"kind": "encoder", "name": "small", "metric": "inner_product"}, "relative_margin": 0.05},
        {**by_model("cocite", training_seed=2, metric="l2"), "pick": "random", "ranks": [10, 60], "others": "kept"},
    ],
)
def test_every_sampler_can_be_configured(entry):
    found = resolved(entry)
    assert {key: found.get(key) for key in entry} == entry


def test_user_supplied_triplets_are_found_through_the_environment(tmp_path, monkeypatch):
    (tmp_path / "mine.parquet").touch()
    monkeypatch.setenv("MINE", str(tmp_path))
    assert resolved({"sampler": "file", "path": "$MINE/mine.parquet"})["path"] == str(tmp_path / "mine.parquet")
    assert resolved({"sampler": "file", "path": "$MINE"})["path"] == str(tmp_path)
    queries = {"from": "triplets", "revision": "0" * 40, "count": 5, "min_citations": 0}
    assert "path" not in resolved({"sampler": "file"}, queries=queries)  # the published triplets are taken


def test_rounds_of_mining_are_named_entries():
    rounds = {"third": {**by_model("second"), "of": "new", "group": "third"}}
    resolved(by_model("cocite"), models={"second": "new", "last": "third"}, **rounds)


@pytest.mark.parametrize(
    ("models", "others"),
    [
        ({"second": "new"}, {}),
        ({"second": "both"}, {"both": {"sampler": "union", "of": ["cocite", "new"], "group": "both"}}),
        ({"first": "new", "second": "other"}, {"other": {**by_model("first"), "group": "other"}}),
    ],
)
def test_a_model_cannot_mine_a_set_that_it_learns_from_itself_or_through_others(models, others):
    with pytest.raises(InputError, match=r"triplets\.new\.by: the model second depends on this set"):
        resolved(by_model("second"), models=models, **others)


def test_sets_and_graphs_of_sentences_need_contexts():
    doc2doc = {"sampler": "cocited", "graph": "sentences"}
    with pytest.raises(InputError, match=r"key graphs.sentences.* needs the sentences that cite.*set corpus.contexts"):
        resolved(doc2doc, graphs=SENTENCES)
    assert resolved(doc2doc, graphs=SENTENCES, corpus={"contexts": {}})["graph"] == "sentences"
    assert resolved({"sampler": "contexts"}, corpus={"contexts": {}})["min_cited"] == 1
    with pytest.raises(InputError, match=r"corpus.contexts.min_words \(9\) must not exceed max_words \(8\)"):
        resolved(doc2doc, corpus={"contexts": {"min_words": 9, "max_words": 8}})
