"""The benchmark `mdcr`."""

from typing import Literal

from cocite.config.benchmark import FolderBenchmark
from cocite.config.tasks import Task

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
