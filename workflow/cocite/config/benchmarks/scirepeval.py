"""The benchmark `scirepeval`, and those that its paper scores encoders on as well: `scidocs`, `s2and` and `mdcr`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from cocite.config.benchmark import Fetched, FolderBenchmark, HubBenchmark
from cocite.config.entries import Commit, Entry, GivenPath, Text, Whole
from cocite.config.tasks import FewShot, Task

GENERATED = "demo"
"""The value of `folder` for a benchmark that is generated from the corpus of the run."""


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


class Texts(Entry):
    """The dataset with the texts."""

    dataset: Text = "allenai/scirepeval"
    """Its name."""
    revision: Commit = "781d35d1bf87253b3dcd0fadcb82bfbee9c244f1"
    """Commit of the dataset, 40 hexadecimal digits. It must contain Parquet files."""


class Labels(Entry):
    """The dataset with the labels, and the papers of reviewers."""

    dataset: Text = "allenai/scirepeval_test"
    """Its name."""
    revision: Commit = "2c008130f2333368c26a80001d37bbe7aec5715f"
    """Commit of the dataset, 40 hexadecimal digits. It must contain Parquet files. The default is of March 2024, from
    the branch refs/convert/parquet."""


class Hub(Entry):
    """Two datasets of the Hugging Face hub."""

    texts: Texts = Texts()
    """The dataset with the texts."""
    labels: Labels = Labels()
    """The dataset with the labels, and the papers of reviewers."""


def splits_to_fetch(tasks: Sequence[Task]) -> dict[tuple[str, str], list[str]]:
    """The hub datasets of the tasks: splits of configs with texts (metadata) and with labels (test)."""
    splits: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        splits["metadata", task.texts_folder] = ["evaluation"]
        splits.setdefault(("test", task.labels_folder), []).extend(task.splits)
        if task.kind == "reviewers":
            splits["test", "reviewers"] = ["metadata"]
    return splits


class SciRepEval(HubBenchmark):
    """SciRepEval, 23 tasks in four formats (Singh et al., 2023).

    "SciRepEval: A Multi-Format Benchmark for Scientific Document Representations".
    """

    kind: Literal["scirepeval"]
    has_hashes = True
    declared: ClassVar[tuple[Task, ...]] = TASKS
    folder: GivenPath | None = None
    """Folder of the benchmark, or demo for one that is generated about the corpus of the run. Environment variables are
    expanded."""
    hub: Hub | None = None
    """The two datasets on the Hugging Face hub that make up the benchmark, in place of a folder. Each config is
    downloaded once, by its own job."""

    @property
    def is_generated(self) -> bool:
        """Whether it is generated about the corpus of the run."""
        return self.folder == GENERATED

    @property
    def from_hub(self) -> Mapping[str, Fetched]:
        """Each config with texts in `metadata`, each with labels in `test`; nothing if it is here."""
        if self.hub is None:
            return {}
        halves: dict[str, Texts | Labels] = {"metadata": self.hub.texts, "test": self.hub.labels}
        return {
            f"{half}/{name}": Fetched(dataset=halves[half].dataset, revision=halves[half].revision, splits=splits)
            for (half, name), splits in splits_to_fetch(self.scored_tasks).items()
        }

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A folder that is not there, or a corpus that no benchmark can be generated about."""
        yield from super().check_environment(key, config)
        if self.is_generated and config.corpus.source not in ("demo", "directory"):
            source = config.corpus.source
            yield f"{key}.folder is demo, which is generated about the sources demo and directory only, not {source}."


GRID = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)


class SciDocs(FolderBenchmark):
    """SciDocs in its own layout (Cohan et al., 2020, "SPECTER")."""

    kind: Literal["scidocs"]
    has_hashes = True
    declared = (
        Task(name="mag", kind="multiclass", group="scidocs", metrics=("f1_macro",), grid=GRID),
        Task(name="mesh", kind="multiclass", group="scidocs", metrics=("f1_macro",), grid=GRID),
        *(task for task in TASKS if task.texts == "scidocs_view_cite_read"),
        Task(
            name="recomm",
            kind="clicks",
            group="scidocs",
            metrics=("ndcg_adjusted", "P_1_adjusted"),
            similarity="cosine",
        ),
    )


class S2and(FolderBenchmark):
    """S2AND, authors of one name told apart (Subramanian et al., 2021).

    "S2AND: A Benchmark and Evaluation System for Author Name Disambiguation".
    """

    kind: Literal["s2and"]
    declared = tuple(
        Task(
            name=f"s2and_{dataset}",
            kind="disambiguation",
            group="s2and",
            metrics=("b3_f1", "b3_precision", "b3_recall"),
            test=dataset,
        )
        for dataset in ("arnetminer", "inspire", "kisti", "pubmed", "qian", "zbmath")
    )


FIELDS = (
    *("Art", "Biology", "Business", "Chemistry", "Computer Science", "Economics", "Engineering"),
    *("Environmental Science", "Geography", "Geology", "History", "Materials Science", "Mathematics", "Medicine"),
    *("Philosophy", "Physics", "Political Science", "Psychology", "Sociology"),
)


class Mdcr(FolderBenchmark):
    """MDCR, the recommendation of citations in 19 fields (Medić & Šnajder, 2022).

    "Large-scale Evaluation of Transformer-based Article Encoders on the Task of Citation Recommendation".
    """

    kind: Literal["mdcr"]
    declared = tuple(
        Task(
            name=f"mdcr_{field.lower().replace(' ', '_')}",
            kind="ranking",
            group="mdcr",
            metrics=("map", "ndcg", "recall_5"),
            test=field,
        )
        for field in FIELDS
    )
