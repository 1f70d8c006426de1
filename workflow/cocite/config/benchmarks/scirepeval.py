"""The benchmark `scirepeval`, and those that its paper scores encoders on as well: `scidocs`, `s2and` and `mdcr`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from cocite.config.benchmark import Fetched, FolderBenchmark, HubBenchmark
from cocite.config.entries import Commit, Entry, GivenPath, Text, Whole
from cocite.config.tasks import FewShot, Task

GENERATED = "demo"  # the value of `folder` for a benchmark that is generated from the corpus of the run


def _task(name: str, kind: str, group: str, *metrics: str, stages: Sequence[tuple[int, int]] = (), **more: Any) -> Task:
    """A task; `stages` are the sizes of its few-shot stages, with their numbers of runs."""
    few_shot = tuple(FewShot(size=size, runs=runs) for size, runs in stages)
    return Task(name=name, kind=kind, group=group, metrics=metrics, few_shot=few_shot, **more)


IN, OUT = "in-train", "out-of-train"
H_INDEX, REVIEWERS, VIEWS = "peer_review_score_hIndex", "paper_reviewer_matching", "scidocs_view_cite_read"
TASKS = (
    _task("biomimicry", "binary", OUT, "f1", stages=((64, 50), (16, 100))),
    _task("drsm", "multiclass", OUT, "f1_macro", stages=((64, 50), (24, 100))),
    _task("mesh_descriptors", "multiclass", IN, "f1_macro", large=True),
    _task("fos", "multilabel", IN, "f1_macro", stages=((10, 50), (5, 100)), large=True),
    _task("scidocs_mag", "multiclass", "scidocs", "f1_macro", texts="scidocs_mag_mesh"),
    _task("scidocs_mesh", "multiclass", "scidocs", "f1_macro", texts="scidocs_mag_mesh"),
    _task("peer_review_score", "regression", OUT, "kendall_tau", texts=H_INDEX),
    _task("hIndex", "regression", OUT, "kendall_tau", texts=H_INDEX),
    _task("tweet_mentions", "regression", OUT, "kendall_tau"),
    _task("cite_count", "regression", IN, "kendall_tau"),
    _task("pub_year", "regression", IN, "kendall_tau"),
    _task("same_author", "ranking", IN, "map"),
    _task("high_influence_cite", "ranking", IN, "map"),
    _task("relish", "ranking", OUT, "ndcg"),
    _task("scidocs_cite", "ranking", "scidocs", "map", "ndcg", texts=VIEWS),
    _task("scidocs_cocite", "ranking", "scidocs", "map", "ndcg", texts=VIEWS),
    _task("scidocs_view", "ranking", "scidocs", "map", "ndcg", texts=VIEWS),
    _task("scidocs_read", "ranking", "scidocs", "map", "ndcg", texts=VIEWS),
    _task(f"{REVIEWERS}_hard", "reviewers", OUT, "P_5", "P_10", test=REVIEWERS, split="test_hard"),
    _task(f"{REVIEWERS}_soft", "reviewers", OUT, "P_5", "P_10", test=REVIEWERS, split="test_soft"),
    _task("search", "search", IN, "ndcg"),
    _task("nfcorpus", "search", OUT, "ndcg"),
    _task("trec_covid", "search", OUT, "ndcg"),
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
        texts, labels = self.hub.texts, self.hub.labels
        halves = {"metadata": (texts.dataset, texts.revision), "test": (labels.dataset, labels.revision)}
        fetched = splits_to_fetch(self.scored_tasks).items()
        return {f"{half}/{name}": Fetched(*halves[half], splits) for (half, name), splits in fetched}

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
        _task("mag", "multiclass", "scidocs", "f1_macro", grid=GRID),
        _task("mesh", "multiclass", "scidocs", "f1_macro", grid=GRID),
        *(task for task in TASKS if task.texts == VIEWS),
        _task("recomm", "clicks", "scidocs", "ndcg_adjusted", "P_1_adjusted", similarity="cosine"),
    )


class S2and(FolderBenchmark):
    """S2AND, authors of one name told apart (Subramanian et al., 2021).

    "S2AND: A Benchmark and Evaluation System for Author Name Disambiguation".
    """

    kind: Literal["s2and"]
    declared = tuple(
        _task(f"s2and_{dataset}", "disambiguation", "s2and", "b3_f1", "b3_precision", "b3_recall", test=dataset)
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
        _task(f"mdcr_{field.lower().replace(' ', '_')}", "ranking", "mdcr", "map", "ndcg", "recall_5", test=field)
        for field in FIELDS
    )
