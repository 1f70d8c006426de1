"""The tasks that embeddings are scored on, as data: one entry a task.

SciRepEval's tasks (Singh et al., 2023, "SciRepEval: A Multi-Format Benchmark for Scientific Document
Representations") and the two of the hold-out benchmark. A new task is a new entry; its kind says how it is read and
scored.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["binary", "multiclass", "multilabel", "regression", "ranking", "reviewers", "search"]
Group = Literal["in-train", "out-of-train", "scidocs", "holdout"]

FORMATS: dict[Kind, str] = {
    "binary": "classification",
    "multiclass": "classification",
    "multilabel": "classification",
    "regression": "regression",
    "ranking": "proximity",
    "reviewers": "reviewer-matching",
    "search": "search",
}
"""The format, which scores are averaged by, of each kind."""

POSITIVE = "1"
"""The class of binary tasks whose F1 is measured."""

LARGEST_MISSING_SHARE = 0.01
"""Share of a task's documents that may be without text or vector: they are counted; more of them is an error."""


@dataclass(frozen=True, kw_only=True)
class FewShot:
    """A training on small samples, repeated: `size` documents (of each class, in a multi-label task) in each run."""

    size: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a benchmark."""

    name: str
    """Name in the tables; also its folder of labels, unless `test` says another."""
    kind: Kind
    """How it is read and scored."""
    group: Group
    """Whether encoders of SciRepEval were trained on it, not, or it comes from SciDocs."""
    metrics: tuple[str, ...]
    """f1, f1_macro, kendall_tau, or measures as trec_eval names them."""
    texts: str = ""
    """Folder of its texts, where it is not that of its labels."""
    test: str = ""
    """Folder of its labels or judgements, where it is not its name."""
    split: str = "test"
    """File of its judgements."""
    few_shot: tuple[FewShot, ...] = ()
    """Stages averaged with the training on everything: that counts one half, these share the other."""

    @property
    def format(self) -> str:
        """The format that the task's scores are averaged in."""
        return FORMATS[self.kind]

    @property
    def labels_folder(self) -> str:
        """Folder of labels or judgements."""
        return self.test or self.name

    @property
    def texts_folder(self) -> str:
        """Folder of texts."""
        return self.texts or self.labels_folder

    @property
    def is_supervised(self) -> bool:
        """Whether a model is fitted to labels; the others rank candidates."""
        return self.format in ("classification", "regression")


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


def _regression(name: str, group: Group, texts: str = "") -> Task:
    return Task(name=name, kind="regression", group=group, metrics=("kendall_tau",), texts=texts)


SCIREPEVAL = (
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
    Task(name="mesh_descriptors", kind="multiclass", group="in-train", metrics=("f1_macro",)),
    Task(
        name="fos",
        kind="multilabel",
        group="in-train",
        metrics=("f1_macro",),
        few_shot=(FewShot(size=10, runs=50), FewShot(size=5, runs=100)),
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

HOLDOUT = (
    Task(name="cite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
    Task(name="cocite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
)

TASKS = {task.name: task for task in (*SCIREPEVAL, *HOLDOUT)}
