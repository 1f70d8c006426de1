"""Every metric that can be asked for has a name on the page that is not the one in the tables."""

import pytest

from cocite.config.benchmarks import BENCHMARKS
from cocite.config.benchmarks.by_aspect import RELEASED
from cocite.report.labels import measure, metric_in_words


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        *(("ndcg_cut_10", "nDCG@10"), ("map_cut_100", "MAP@100"), ("recall_1000", "recall@1000"), ("P_7", "P@7")),
        *(("recip_rank", "MRR"), ("recip_rank_3", "MRR@3"), ("recip_rank_10_best", "MRR@10 of the highest grade")),
        *(("P_1_adjusted", "adjusted P@1"), ("success_5", "success@5"), ("map_folds", "MAP (mean over folds)")),
        ("ndcg_20_csfcube_folds", "nDCG@20 as CSFCube has it (mean over folds)"),
        ("f1_macro_with_few_shot", "macro F1, few-shot included"),
        ("an_unknown_one", "an_unknown_one"),
    ],
)
def test_a_metric_has_a_name_with_its_depth_and_the_way_in_which_it_is_averaged(metric, words):
    assert measure("cite", metric, "both") == f"papers it cites, {words}"


def test_no_declared_metric_goes_by_its_name_in_the_tables():
    metrics = {metric for tasks in BENCHMARKS.values() for task in tasks for metric in task.metrics}
    metrics |= {f"{metric}_folds" for metric in RELEASED}
    assert [metric for metric in metrics if metric_in_words(metric) == metric or "_" in metric_in_words(metric)] == []
