"""The library mteb, as it is known without it: the folders of its results, its metrics, and when a task is the same.

mteb writes a file of JSON a task, `results/<model>/<revision>/<task>.json`, with `model_meta.json` beside them.
"""

from cocite.config.tasks import InMteb

META = "model_meta.json"
"""What lies beside the results of a model and says which one it is."""
SPLIT, SUBSET = "test", "default"
"""The split of mteb's retrieval tasks that counts, and the only part of a task that is not cut further."""
METRICS = {"ndcg_cut_10": "ndcg_at_10", "recip_rank_10": "mrr_at_10", "recall_100": "recall_at_100"}
"""Metrics as trec_eval names them, which are those of searches here, and what mteb calls them."""
LARGEST_DIFFERENCE = 0.01
"""Share by which the number of queries may differ from mteb's: some have no document that is there."""


def is_same_test(task: InMteb, split: str, queries: int) -> bool:
    """Whether so many queries of a split can be those that mteb asks: a sample or another split is another test."""
    return split == SPLIT and abs(queries - task.queries) <= LARGEST_DIFFERENCE * task.queries
