"""Brought queries and documents in the configuration: where they come from, and what is refused."""

from tests.config.conftest import PAIRS
from tests.configurations import refused
from tests.hub import COMMIT

from cocite.config.configuration import configure, resolve
from cocite.config.origins import sampling_of
from cocite.config.settings import entry_of
from cocite.config.triplets import TripletSet
from cocite.plan.plan import Plan

SCORES = {"dataset": "lab/scores", "revision": COMMIT}


def test_a_layout_may_be_named_alone_and_has_its_defaults(with_pairs):
    entry = resolve(with_pairs)["triplets"]["searches"]
    assert entry["layout"] == {"kind": "rows", "files": []}
    assert (entry["validation"], entry["paired"], entry["longest_query"]) == (0.1, False, 1000)


def test_sets_that_are_made_of_pairs_have_their_texts(with_pairs):
    plan = Plan(configure(with_pairs)).triplets
    assert plan.sets_with_texts("joined") == plan.sets_with_texts("searches") == ["searches"]
    assert plan.sets_with_texts("cocite") == []
    assert plan.table("joined") == "sampled_examples"


def test_only_what_comes_from_the_hub_is_fetched(with_pairs, tmp_path):
    layout = {"kind": "msmarco", "collection": {"dataset": str(tmp_path)}, "scores": SCORES, "margin": 3.0}
    with_pairs["triplets"]["searches"] = {**PAIRS, "layout": layout}
    entry = entry_of(resolve(with_pairs)["triplets"]["searches"], TripletSet)
    assert {part: origin[:2] for part, origin in entry.fetched.items()} == {
        "pairs": ("lab/searches", COMMIT),
        "scores": ("lab/scores", COMMIT),
    }


def test_a_card_names_datasets_with_their_commits_and_no_folder_of_this_machine(with_pairs, tmp_path):
    layout = {"kind": "msmarco", "collection": {"dataset": str(tmp_path)}, "scores": SCORES, "margin": 3.0}
    with_pairs["triplets"]["searches"] = {**PAIRS, "layout": layout}
    said = sampling_of("searches", {"configuration": resolve(with_pairs)})
    assert said["layout"] == "msmarco"
    assert said["dataset"] == f"lab/searches of the Hugging Face hub, commit {COMMIT}"
    assert said["scores"] == f"lab/scores of the Hugging Face hub, commit {COMMIT}"
    assert said["collection"] == tmp_path.name
    assert str(tmp_path) not in str(said)


def test_a_loss_that_needs_negatives_is_refused_for_a_set_that_has_none(with_pairs):
    with_pairs["triplets"]["searches"] = {**PAIRS, "layout": "inpars"}
    resolve(with_pairs)
    message = "models.searches: the loss triplet needs negatives, and triplets.searches has none."
    assert message in refused(with_pairs, "models.searches.loss", "triplet")
    with_pairs["models"]["searches"]["triplets"] = "joined"
    with_pairs["models"]["searches"]["loss"] = "triplet"
    resolve(with_pairs)
