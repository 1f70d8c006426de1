"""What held-out papers of our own corpus cite, and what they are cited with."""

from cocite.config.tasks import Task

SCHEMA = {
    "properties": {
        "positives": {
            "description": "Relevant candidates of each query; queries with fewer are left out and counted.",
            "type": "integer",
            "minimum": 1,
            "default": 5,
        },
        "negatives": {
            "description": "Random candidates of each query.",
            "type": "integer",
            "minimum": 1,
            "default": 25,
        },
        "min_cocitations": {
            "description": "Times a paper must be cited with the query to be relevant in the task cocite.",
            "type": "integer",
            "minimum": 1,
            "default": 2,
        },
    },
}
TASKS = (
    Task(name="cite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
    Task(name="cocite", kind="ranking", group="holdout", metrics=("map", "ndcg")),
)
