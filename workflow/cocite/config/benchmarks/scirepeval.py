"""SciRepEval, 23 tasks in four formats (Singh et al., 2023).

"SciRepEval: A Multi-Format Benchmark for Scientific Document Representations".
"""

from cocite.config.tasks import FewShot, Task

SCHEMA = {
    "properties": {
        "hub": {
            "description": (
                "Instead of a folder, the two datasets of the Hugging Face hub that hold the benchmark; "
                "each config is fetched once, by a job of its own."
            ),
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "texts": {
                    "description": "The dataset with the texts.",
                    "type": "object",
                    "additionalProperties": False,
                    "default": {},
                    "properties": {
                        "dataset": {
                            "description": "Its name.",
                            "type": "string",
                            "minLength": 1,
                            "default": "allenai/scirepeval",
                        },
                        "revision": {
                            "description": "Its commit, 40 hexadecimal digits; one that holds Parquet files.",
                            "type": "string",
                            "pattern": "^[0-9a-f]{40}\\Z",
                            "means": "a commit of 40 hexadecimal digits, in small letters",
                            "default": "781d35d1bf87253b3dcd0fadcb82bfbee9c244f1",
                        },
                    },
                },
                "labels": {
                    "description": "The dataset with the labels, and the papers of reviewers.",
                    "type": "object",
                    "additionalProperties": False,
                    "default": {},
                    "properties": {
                        "dataset": {
                            "description": "Its name.",
                            "type": "string",
                            "minLength": 1,
                            "default": "allenai/scirepeval_test",
                        },
                        "revision": {
                            "description": (
                                "Its commit, 40 hexadecimal digits; one that holds Parquet files. The "
                                "default is of March 2024, from its branch refs/convert/parquet."
                            ),
                            "type": "string",
                            "pattern": "^[0-9a-f]{40}\\Z",
                            "means": "a commit of 40 hexadecimal digits, in small letters",
                            "default": "2c008130f2333368c26a80001d37bbe7aec5715f",
                        },
                    },
                },
            },
        },
        "folder": {
            "description": (
                "Folder of the benchmark, or demo for one that is generated about the release, of the "
                "sources demo and directory. Variables of the environment are filled in."
            ),
            "type": "string",
            "minLength": 1,
        },
        "tasks": {"$ref": "#/$defs/tasks"},
        "mode": {"$ref": "#/$defs/mode", "default": "compat"},
    },
}


def _scidocs(name: str) -> Task:
    return Task(name=name, kind="ranking", group="scidocs", metrics=("map", "ndcg"), texts="scidocs_view_cite_read")


def _reviewers(difficulty: str) -> Task:
    return Task(
        name=f"paper_reviewer_matching_{difficulty}",
        kind="reviewers",
        group="out-of-train",
        metrics=("P_5", "P_10"),
        test="paper_reviewer_matching",
        split=f"test_{difficulty}",
    )


def _regression(name: str, group: str, texts: str = "") -> Task:
    return Task(name=name, kind="regression", group=group, metrics=("kendall_tau",), texts=texts)


TASKS = (
    Task(
        name="biomimicry",
        kind="binary",
        group="out-of-train",
        metrics=("f1",),
        few_shot=(FewShot(size=64, runs=50), FewShot(size=16, runs=100)),
    ),
    Task(
        name="drsm",
        kind="multiclass",
        group="out-of-train",
        metrics=("f1_macro",),
        few_shot=(FewShot(size=64, runs=50), FewShot(size=24, runs=100)),
    ),
    Task(name="mesh_descriptors", kind="multiclass", group="in-train", metrics=("f1_macro",), large=True),
    Task(
        name="fos",
        kind="multilabel",
        group="in-train",
        metrics=("f1_macro",),
        few_shot=(FewShot(size=10, runs=50), FewShot(size=5, runs=100)),
        large=True,
    ),
    Task(name="scidocs_mag", kind="multiclass", group="scidocs", metrics=("f1_macro",), texts="scidocs_mag_mesh"),
    Task(name="scidocs_mesh", kind="multiclass", group="scidocs", metrics=("f1_macro",), texts="scidocs_mag_mesh"),
    _regression("peer_review_score", "out-of-train", "peer_review_score_hIndex"),
    _regression("hIndex", "out-of-train", "peer_review_score_hIndex"),
    _regression("tweet_mentions", "out-of-train"),
    _regression("cite_count", "in-train"),
    _regression("pub_year", "in-train"),
    Task(name="same_author", kind="ranking", group="in-train", metrics=("map",)),
    Task(name="high_influence_cite", kind="ranking", group="in-train", metrics=("map",)),
    Task(name="relish", kind="ranking", group="out-of-train", metrics=("ndcg",)),
    _scidocs("scidocs_cite"),
    _scidocs("scidocs_cocite"),
    _scidocs("scidocs_view"),
    _scidocs("scidocs_read"),
    _reviewers("hard"),
    _reviewers("soft"),
    Task(name="search", kind="search", group="in-train", metrics=("ndcg",)),
    Task(name="nfcorpus", kind="search", group="out-of-train", metrics=("ndcg",)),
    Task(name="trec_covid", kind="search", group="out-of-train", metrics=("ndcg",)),
)
