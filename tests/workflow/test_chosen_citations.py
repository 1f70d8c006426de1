"""A graph that chooses its citations reads what it chose, and the other graphs read what they did before."""

import json

import pytest
from tests.workflow.conftest import SMALL, Plan, Run, edited, planned

SIGNALS = {
    "cocited": {"signal": "cocitation"},
    "said": {"signal": "sentence-cocitation"},
    "coupled": {"signal": "coupling"},
    "cites": {"signal": "citation"},
    "linked": {"signal": "citation", "directed": False},
}
CHOICE = {"influential": True, "self": False}
READERS = {"cocited": "count_pairs", "said": "count_pairs", "coupled": "count_pairs"}
TABLES = {"cocited": "citations", "said": "contexts", "coupled": "citations_by_cited", "cites": "citations"}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The graphs of all signals, each once with a choice and once without."""
    run = Run(folder=tmp_path_factory.mktemp("chosen"))
    run.configure(SMALL)
    graphs = {f"{name}-some": {**entry, "citations": CHOICE} for name, entry in SIGNALS.items()}
    graphs["weighed"] = {"signal": "citation", "citations": {"weights": {"mentions": "log"}}}
    config = edited(corpus__authors=True, corpus__contexts={}, graphs=SMALL["graphs"] | SIGNALS | graphs)
    return planned(run, config, "graph")


def read_by(plan: Plan, graph: str) -> set[str]:
    """The tables of citations that the edges or pairs of a graph are made of."""
    jobs = plan.of(READERS.get(graph.removesuffix("-some"), "citation_edges"), graph=graph)
    return {path.rpartition("/")[0] for job in jobs for path in job.inputs if "queries" not in path}


@pytest.mark.parametrize("graph", SIGNALS)
def test_every_signal_reads_the_chosen_citations(plan, graph):
    chosen, folder = f"{graph}-some", f"results/graph/{graph}-some"
    if graph == "linked":
        assert read_by(plan, graph) == {"results/corpus/citations", "results/graph/citations_by_cited"}
        assert read_by(plan, chosen) == {f"{folder}/citations", f"{folder}/citations_by_cited"}
    else:
        table = TABLES[graph]
        usual = "graph" if table == "citations_by_cited" else "corpus"
        assert read_by(plan, graph) == {f"results/{usual}/{table}"}
        assert read_by(plan, chosen) == {f"{folder}/{table}"}


def test_a_choice_is_made_once_per_graph_and_bucket(plan):
    jobs = plan.of("choose_citations")
    assert len(jobs) == 2 * len(SIGNALS) + 2
    weighed = [job for job in jobs if job.wildcards["graph"] == "weighed"]
    assert len(weighed) == 2
    assert all(
        f"--contexts results/corpus/contexts/{job.wildcards['bucket']}.parquet" in job.command for job in weighed
    )
    for job in (job for job in jobs if job not in weighed):
        assert "--contexts" not in job.command
        assert "--papers results/corpus/papers" in job.command
        assert json.dumps(CHOICE | {"intents": []}, sort_keys=True) in job.command
    assert {job.wildcards["graph"] for job in plan.of("choose_sentences")} == {"said-some"}
    assert {job.wildcards["graph"] for job in plan.of("split_chosen_citations")} == {"coupled-some", "linked-some"}
    assert "citations" not in "".join(
        job.command.partition("--settings")[2].partition("--bucket")[0] for job in plan.of("count_pairs")
    )
