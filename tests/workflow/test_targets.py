"""A file that is asked for by name is of the configuration, or the message says which there are."""

from pathlib import Path

import pytest
from tests.configurations import plan_of

from cocite.core.errors import InputError
from cocite.plan.targets import check_spelling, check_targets, surplus_files, targets_of

CONFIG = {
    "pathvars": {"results": "out"},
    "corpus": {"source": "demo", "demo": {"shards": 3}, "contexts": {}},
    "queries": {"holdout": 20},
    "graphs": {
        "cited": {"signal": "cocitation"},
        "links": {"signal": "citation"},
        "said": {"signal": "sentence-cocitation"},
        "coupled": {"signal": "coupling"},
    },
    "embeddings": {"dot": {"graph": "cited", "neighbours": {"query_jobs": 3, "k": 100}}},
    "walks": {"steps": {"graph": "links", "k": 100}},
    "triplets": {"near": {"sampler": "cropping"}},
    "encoders": {"small": {"build": {}}},
    "models": {"good": {"encoder": "small", "triplets": "near", "loss": "mnrl", "seeds": [1, 5]}},
    "benchmarks": {"own": {"kind": "holdout"}},
    "baselines": {
        **{"words": {"kind": "fasttext", "seeds": [4, 2]}, "bm25": {"kind": "bm25"}},
        "s": {"kind": "sif", "of": "words", "grid": {"a": [1.0, 2.0]}},
    },
    "maps": {
        "field": {"benchmark": "own", "models": ["good", "words", "untrained_small"]},
        "usual": {"benchmark": "own"},
    },
}
PATTERNS = [
    r"out/corpus/papers/{bucket,\d+}.parquet",
    r"out/corpus/ingested/{dataset,papers|abstracts|citations}/{part,\d+}.parquet",
    r"out/corpus/ingested/{dataset,(?!)}/{bucket,\d+}.parquet",
    r"out/corpus/queries.parquet",
    r"out/graph/{graph,cited|links|said|coupled}/edges/{bucket,\d+}.parquet",
    r"out/graph/{graph,cited|links|said|coupled}/{pairs,cocitations|couplings}/{bucket,\d+}.parquet",
    r"out/neighbours/{embedding,dot}/neighbours/{bucket,\d+}.parquet",
    r"out/neighbours/{embedding,steps}/neighbours/{bucket,\d+}.parquet",
    r"out/triplets/validation_{group}/examples.parquet",
    r"out/encoder/{model,good}/seed-{seed,\d+}/model",
    r"out/encoder/untrained_{encoder,small}/seed-0/model",
    r"out/report/maps/{map,field|usual}/points/{model,good|words|untrained_small}-{seed,\d+}.parquet",
    r"out/baselines/{baseline}/seed-{seed}/model",
    r"out/evaluation/{benchmark,own}/scores/{suite,small|fos}/{model,good|untrained_small}-{seed,\d{1,9}}.parquet",
]
ALLOWED = (
    *("all", "--cores", "out/elsewhere/9.parquet", "other/corpus/papers/9.parquet", "out/encoder/good/seed-5/model"),
    *(
        f"out/{name}.parquet"
        for name in (
            *("corpus/queries", "corpus/papers/1", "corpus/ingested/papers/2", "triplets/validation_all/examples"),
            *("graph/cited/cocitations/0", "graph/said/cocitations/1", "graph/coupled/couplings/0"),
            *("neighbours/dot/neighbours/2", "neighbours/steps/neighbours/0"),
            *("report/maps/field/points/good-1", "report/maps/field/points/words-4"),
            *("report/maps/field/points/untrained_small-0", "report/maps/usual/points/untrained_small-0"),
            *("report/maps/usual/points/good-1", "evaluation/own/scores/small/untrained_small-0"),
        )
    ),
    *(
        "out/encoder/untrained_small/seed-0/model",
        "out/baselines/bm25/seed-0/model",
        "out/baselines/words/seed-4/model",
    ),
    "out/baselines/s_point-1/seed-4/model",
)


def check(*targets):
    check_targets(targets, PATTERNS, plan_of(**CONFIG))


def test_what_the_configuration_has_may_be_asked_for():
    for target in ALLOWED:
        check(target)


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("out/corpus/papers/2.parquet", "bucket is 2, but corpus.buckets allows 0, 1."),
        ("./out/corpus/papers/00.parquet", "bucket is 00, but corpus.buckets allows 0, 1."),
        (str(Path("out/corpus/papers/9.parquet").absolute()), "bucket is 9, but"),
        ("out/corpus/ingested/papers/3.parquet", "part is 3, but the number of shards of papers allows 0, 1, 2."),
        ("out/corpus/ingested/authors/0.parquet", "dataset is authors, but a release allows papers, abstracts, cit"),
        ("out/graph/old/edges/0.parquet", "graph is old, but graphs allows cited, links, said, coupled."),
        ("out/graph/cited/couplings/0.parquet", "pairs is couplings, but graphs.cited.signal allows cocitations."),
        ("out/graph/links/cocitations/0.parquet", "pairs is cocitations, but graphs.links.signal has none."),
        (
            "out/neighbours/dot/neighbours/3.parquet",
            "bucket is 3, but embeddings.dot.neighbours.query_jobs allows 0, 1",
        ),
        ("out/neighbours/steps/neighbours/1.parquet", "bucket is 1, but walks.steps.query_jobs allows 0."),
        ("out/neighbours/far/neighbours/0.parquet", "embedding is far, but embeddings or walks allows dot, steps."),
        ("out/triplets/validation_far/examples.parquet", "group is far, but triplets allows all."),
        ("out/encoder/good/seed-7/model", "seed is 7, but models.good.seeds allows 1, 5."),
        ("out/encoder/bad/seed-1/model", "model is bad, but models allows good, untrained_small."),
        ("out/encoder/untrained_small/seed-1/model", "seed is 1, but an untrained model allows 0."),
        ("out/report/maps/old/points/good-1.parquet", "map is old, but maps allows field, usual."),
        ("out/report/maps/usual/points/words-4.parquet", "model is words, but maps.usual.models allows untrained_"),
        ("out/report/maps/field/points/words-2.parquet", "seed is 2, but the map field allows 4."),
        ("out/baselines/words/seed-5/model", "seed is 5, but baselines.words.seeds allows 4, 2."),
        (
            "out/baselines/s_point-2/seed-4/model",
            "baseline is s_point-2, but baselines allows words, bm25, s, s_point-0, s_point-1.",
        ),
        ("out/evaluation/own/scores/fos/good-1.parquet", "suite is fos, but benchmarks.own allows small."),
    ],
)
def test_what_it_does_not_have_is_named_with_what_it_has(target, fault):
    with pytest.raises(InputError) as error:
        check("all", target)
    assert str(error.value).startswith(f"{target} is not of this configuration: {fault}")


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("trplets", "triplets"),
        ("reprot", "report"),
        ("out/corpus/paprs/0.parquet", "out/corpus/papers/{bucket}.parquet"),
        ("out/corpus/paprs/17.parquet", "out/corpus/papers/{bucket}.parquet"),
        ("./out/corpus/querys.parquet", "out/corpus/queries.parquet"),
    ],
)
def test_a_misspelt_target_is_answered_with_the_one_that_was_meant(target, meant):
    with pytest.raises(InputError) as error:
        check_spelling(["all", target], ["all", "triplets", "report"], PATTERNS, Path("out"))
    assert str(error.value) == f"No rule makes {target}; did you mean {meant}?"


def test_what_is_right_or_exists_or_is_like_nothing_is_left_to_snakemake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    for target in ("report", "out/corpus/queries.parquet", "4", "zebra", "out/zebra", "x" * 5000, "reports"):
        check_spelling([target], ["report"], PATTERNS, Path("out"))


def test_values_of_options_are_no_targets():
    line = [
        "--directory",
        "reports",
        "--cores",
        "2",
        "",
        "-n",
        "corpus",
        "--replace-workflow-config",
        "all",
        "--nolock",
    ]
    assert targets_of([*line, "--set-threads", "ingest=4", "merge_citations=4"]) == ["corpus", "all"]


def test_files_of_more_buckets_than_there_are_now_are_surplus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    surplus = ["corpus/ingested/papers/3", "corpus/papers/5", "graph/cited/edges/2", "neighbours/dot/neighbours/3"]
    kept = ["corpus/papers/1", "corpus/ingested/papers/2", "graph/old/edges/9", "neighbours/dot/neighbours/2"]
    for name in (*surplus, *kept, "corpus/queries"):
        file = tmp_path / f"out/{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert sorted(map(str, surplus_files(PATTERNS, plan_of(**CONFIG)))) == [f"out/{name}.parquet" for name in surplus]
