"""Sets of triplets that cannot be sampled are refused before any job, in one sentence that names the key."""

from pathlib import Path

import pytest
import yaml

from cocite.config.configuration import resolve
from cocite.core.errors import InputError

ROOT = Path(__file__).parents[2]
BANDS = {"sampler": "neighbours", "embedding": "cocitation-dot", "k_positive": 10, "k_negative": 300}


def resolved(entry, **queries):
    """The demo's configuration with one more set of triplets, named `new`."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["triplets"]["new"] = entry
    config["queries"] |= queries
    return resolve(config)["triplets"]["new"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**BANDS, "distance_positive": 0.2}, "triplets.new needs exactly one of k_positive and distance_positive"),
        (
            {"sampler": "neighbours", "embedding": "cocitation-dot"},
            "needs exactly one of k_positive and distance_posit",
        ),
        ({**BANDS, "k_positive": [3, 6]}, "triplets.new.k_positive ([3, 6]) must hold at least 5 ranks"),
        ({**BANDS, "k_positive": [20, 9]}, "triplets.new.k_positive ([20, 9]) must hold at least 5 ranks"),
        ({**BANDS, "k_negative": [8, 300]}, "k_negative ([8, 300]) must be at least k_positive + hard negatives (10 +"),
        (
            {**BANDS, "k_negative": [100, 500]},
            "k_negative (500) must not exceed embeddings.cocitation-dot.neighbours.k",
        ),
        ({**BANDS, "k_positive": "25"}, "triplets.new.k_positive must be of type integer or array, not '25'"),
        ({**BANDS, "k_positive": 0}, "triplets.new.k_positive is 0"),
        ({**BANDS, "easy": 5}, "triplets.new has a band of hard negatives, but as many easy negatives as triplets"),
        (
            {**BANDS, "easy_negatives": "kmeans"},
            "'kmeans'; it must be one of random, pure-random, k-means, sorted-random",
        ),
        (
            {**BANDS, "easy_negatives": {"kind": "k-means", "clusters": 8, "cluster_ranks": [3, 8]}},
            "cluster_ranks ([3, 8]) must rise and stay below clusters",
        ),
        (
            {
                **{"sampler": "neighbours", "embedding": "cocitation-dot"},
                **{"distance_positive": 0.5, "distance_negative": 0.5},
            },
            "triplets.new.distance_negative (0.5) must exceed distance_positive (0.5)",
        ),
        (
            {**BANDS, "easy": 3, "easy_negatives": {"kind": "sorted-random", "drawn": 2}},
            "triplets.new.easy_negatives.drawn (2) must be at least easy (3)",
        ),
        ({"sampler": "citations", "graph": "cocitation"}, "'cocitation' is not a directed citation graph"),
        ({"sampler": "cocited", "graph": "citation"}, "triplets.new.graph: 'citation' is not a co-citation graph"),
        ({"sampler": "random", "easy": 1}, "triplets.new.easy does not go with sampler: random"),
        ({"sampler": "file", "path": "none.parquet"}, "triplets.new.path: none.parquet is neither a file nor a folder"),
        ({"sampler": "file"}, "triplets.new has no path, and takes published triplets then, which needs queries.from"),
        ({"sampler": "union", "of": ["cocite", "none"]}, "triplets.new.of names 'none', which triplets does not decl"),
        ({"sampler": "union", "of": ["cocite", "new"]}, "triplets.new.of: a set of triplets must not be a part of its"),
        ({"sampler": "subset", "of": "cocite"}, "triplets.new needs exactly one of share and count"),
        ({"sampler": "subset", "of": "cocite", "share": 0}, "triplets.new.share is 0"),
        ({"sampler": "neighbors"}, "did you mean neighbours?"),
    ],
)
def test_what_cannot_be_sampled_is_refused(entry, message):
    with pytest.raises(InputError) as error:
        resolved(entry)
    assert message in str(error.value)


def test_rarer_pairs_than_the_graph_holds_are_refused():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["graphs"]["cocitation"]["min_count"] = 3
    config["triplets"]["new"] = {"sampler": "cocited", "graph": "cocitation", "min_count": 2}
    with pytest.raises(InputError, match=r"min_count \(2\) must not be below graphs\.cocitation\.min_count \(3\)"):
        resolve(config)


@pytest.mark.parametrize(
    "entry",
    [
        {**BANDS, "k_positive": [1, 25], "k_negative": [200, 400], "easy": 2, "fill": True},
        {"sampler": "neighbours", "embedding": "cocitation-dot", "k_positive": 25, "easy": 5},
        {"sampler": "neighbours", "embedding": "cocitation-dot", "distance_positive": 0.2, "distance_negative": 0.5},
        {**BANDS, "easy": 3, "easy_negatives": {"kind": "k-means", "clusters": 8, "cluster_ranks": [3, 7]}},
        {"sampler": "citations", "graph": "citation", "directed": False, "oversample": True, "partial": "dropped"},
        {"sampler": "cocited", "graph": "cocitation", "min_count": 2},
        {"sampler": "random"},
        {"sampler": "union", "of": ["cocite", "specter"]},
        {"sampler": "subset", "of": "cocite", "count": 100, "by": "triplet"},
    ],
)
def test_every_sampler_can_be_configured(entry):
    assert entry.items() <= resolved(entry).items()


def test_brought_triplets_are_found_through_the_environment(tmp_path, monkeypatch):
    (tmp_path / "mine.parquet").touch()
    monkeypatch.setenv("MINE", str(tmp_path))
    assert resolved({"sampler": "file", "path": "$MINE/mine.parquet"})["path"] == str(tmp_path / "mine.parquet")
    assert resolved({"sampler": "file", "path": "$MINE"})["path"] == str(tmp_path)


def test_without_a_path_the_published_triplets_are_taken():
    assert "path" not in resolved(
        {"sampler": "file"}, **{"from": "triplets", "revision": "0" * 40, "count": 5, "min_citations": 0}
    )
