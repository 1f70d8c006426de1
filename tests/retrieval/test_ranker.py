"""How candidates are ranked: weights that numpy alone applies, learned ones as the regression has them."""

import itertools
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tests.retrieval.small import COLUMNS, NAMES, RUNS, Small

from cocite.config.index import Ranking
from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table, write_table
from cocite.retrieval.ranker import SHIPPED, given, rank_candidates


def ranked(small, **settings):
    """Scores by query and paper, the weights as they are written, and what chose between discounts."""
    names = {"weights": "weights.json", "selection": "selection.parquet", "output": "answers.parquet"}
    files = {table: small.folder / name for table, name in names.items()}
    given = {"tables": small.folder / "tables", "settings": Ranking(**settings), "models": ",".join(RUNS)}
    rank_candidates(small.folder / "candidates.parquet", **given, **files)
    answers = read_table(files["output"], "answers").to_pylist()
    scores = {(row["query"], row["paper"]): row["score"] for row in answers}
    return scores, read_json(files["weights"]), read_table(files["selection"], "selection_scores").to_pylist()


def values_of(table):
    """What is known of candidates, NaN for what is not, in the order of COLUMNS: cosines and words in deviations from
    the mean of what is found for the query, and the logarithms of their ranks there."""
    rows, found = table.to_pylist(), {}
    for row in rows:
        row["texts"] = [np.nan if value is None else value for value in (*row["cosines"], row["words"])]
        found.setdefault(row["query"], []).extend([row["texts"]] * row["is_found"])
    known = []
    for row in rows:
        others = np.array(found[row["query"]])
        known.append(
            [
                *((row["texts"] - np.nanmean(others, axis=0)) / np.nanstd(others, axis=0)),
                *(*(row[name] for name in NAMES[3:6]), np.log(1 + row["citations"])),
                *(row["votes_10"] is None, np.nan if row["age"] is None else np.log(1 + row["age"])),
                *(-np.log(1 + 1 + (others > row["texts"]).sum(axis=0))),
            ]
        )
    return np.array(known, dtype=float)


def of_weights(written):
    """The mean, deviation and weight of each of COLUMNS."""
    return ([row[name] for row in written["weights"]] for name in ("mean", "deviation", "weight"))


def of_split(table, split, found=True):
    kept = table.filter(pa.compute.equal(table["split"], split))
    return kept.filter(kept["is_found"]) if found else kept


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    made = Small(tmp_path_factory.mktemp("ranked"), papers=500).write()
    made.table = made.find()
    return made


def test_learned_weights_are_those_of_scikit_learn_on_what_the_selection_queries_cite(small):
    written = read_table(small.folder / "tables/searches.parquet", "searches")
    cocited = {("cocite_search", row["query"]): row | {"task": "cocite_search"} for row in written.to_pylist()}
    cocited = [row | {"paper": small.searched[-1]} for row in cocited.values()]
    both = pa.concat_tables([written, pa.Table.from_pylist(cocited, written.schema)])
    chosen = of_split(small.table, "selection")
    scaler = StandardScaler().fit(values_of(chosen))
    scaled = np.nan_to_num(scaler.transform(values_of(chosen)))
    is_relevant = [row["paper"] in small.relevant[row["query"]] for row in chosen.to_pylist()]
    expected = LogisticRegression(tol=1e-10, max_iter=10_000).fit(scaled, is_relevant).coef_[0]
    write_table(small.folder / "tables/searches.parquet", "searches", both)
    scores, weights, _ = ranked(small, known="more")
    write_table(small.folder / "tables/searches.parquet", "searches", written)
    assert [row["name"] for row in weights["weights"]] == COLUMNS
    assert [row["weight"] for row in weights["weights"]] == pytest.approx(expected, abs=1e-4)
    assert weights["queries"] == sum(split == "selection" for split in small.splits.values())
    tested = of_split(small.table, "test", found=False)
    of_tested = np.nan_to_num(scaler.transform(values_of(tested))) @ expected
    pairs = list(zip(tested["query"].to_pylist(), tested["paper"].to_pylist(), strict=True))
    assert scores == pytest.approx(dict(zip(pairs, of_tested.tolist(), strict=True)), abs=1e-3)


def test_numpy_alone_ranks_by_each_setting_from_the_weights_as_they_are_written(small):
    tested = of_split(small.table, "test", found=False)
    values, citations = values_of(tested), tested["citations"].to_numpy()
    for known in ("more", "balanced", "less"):
        scores, written, _ = ranked(small, known=known)
        assert written["known"] == known
        mean, deviation, weight = of_weights(written)
        expected = np.nan_to_num((values - mean) / deviation) @ np.array(weight)
        for row in written["offsets"]:
            expected += row[known] * ((citations >= row["from"]) & (citations <= row["to"]))
        assert list(scores.values()) == pytest.approx(expected.tolist(), abs=1e-4)
    assert [(row["from"], row["to"], row["more"]) for row in written["offsets"]] == [(0, 0, 0), (1, 3, 0)]
    assert all(row["less"] > row["balanced"] >= 0 for row in written["offsets"])


def selected(small, scores):
    """R@20 × 100 of each selection query, by class of citations: of all papers, and of those cited never and seldom."""
    shares = {}
    for query, relevant in small.relevant.items():
        if small.splits[query] == "selection":
            mine = sorted(
                (paper for q, paper in scores if q == query), key=lambda paper: (-scores[query, paper], paper)
            )
            for name, most in {"recall": None, "recall_never": (0, 0), "recall_seldom": (1, 3)}.items():
                of = [p for p in relevant if most is None or most[0] <= small.citations[p] <= most[1]]
                if of:
                    shares.setdefault(name, []).append(100 * len({*mine[:20]} & {*of}) / min(20, len(of)))
    return {name: np.mean(of) for name, of in shares.items()}


def test_balanced_finds_each_class_of_rare_papers_as_any_list_does_and_then_the_most_of_all_papers(small):
    _, written, selection = ranked(small, rank="sum")
    chosen = of_split(small.table, "selection")
    values, citations = values_of(chosen), chosen["citations"].to_numpy()
    pairs = list(zip(chosen["query"].to_pylist(), chosen["paper"].to_pylist(), strict=True))
    lists = [selected(small, dict(zip(pairs, values[:, at], strict=True))) for at in range(3)]
    least = {name: max(of[name] for of in lists) for name in lists[0]}
    mean, deviation, weight = of_weights(written)
    scores = np.nan_to_num((values - mean) / deviation) @ np.array(weight)

    def recalls(never, seldom):
        raised = scores + never * (citations == 0) + seldom * ((citations >= 1) & (citations <= 3))
        return selected(small, dict(zip(pairs, raised, strict=True)))

    never, seldom = (row["balanced"] for row in written["offsets"])
    reached = recalls(never, seldom)
    [row] = [row for row in selection if row["chosen"]]
    assert row["ranking"] == "index, balanced"
    assert {name: row[name] for name in reached} == pytest.approx(reached)
    by_list = {row["ranking"]: row for row in selection}
    for name, of in zip(("cosine one", "cosine two", "words"), lists, strict=True):
        assert {each: by_list[name][each] for each in of} == pytest.approx(of)

    def merit(of):  # what is missing of any class, and what is found of all papers
        return -sum(max(0, least[name] - of[name]) for name in ("recall_never", "recall_seldom")), of["recall"]

    steps = scores.std() * np.arange(0, 3.1, 0.5)  # some of those that are tried
    others = [merit(recalls(*of)) for of in itertools.product(steps, steps)]
    assert merit(reached) >= max(others) > others[0]


def test_a_model_named_like_a_signal_has_a_weight_of_its_own():
    known = SimpleNamespace(names=["cosine words", "words", "citations"], values=np.arange(6.0).reshape(2, 3))
    assert list(given(known, "sum").weights) == [1, 1, 1]
    assert list(given(known, {"words": 2}).weights) == [0, 2, 0]


def test_given_weights_add_up_what_is_standardised_and_share_out_that_of_votes(small):
    scores, weights, _ = ranked(small, rank={"two": 2.0, "votes": 3.0}, known="more")
    values = values_of(of_split(small.table, "selection"))
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    tested = of_split(small.table, "test", found=False)
    standard = np.nan_to_num((values_of(tested) - mean) / deviation)
    expected = 2 * standard[:, 1] + standard[:, 3:6].sum(axis=1)
    assert list(scores.values()) == pytest.approx(expected.tolist(), abs=1e-3)
    assert weights["rank"] == "sum"


def test_reciprocal_ranks_are_added_up(small):
    scores, _, _ = ranked(small, rank="reciprocal", known="more")
    query = next(q for q, split in small.splits.items() if split == "test")
    rows = [row for row in of_split(small.table, "test").to_pylist() if row["query"] == query]
    signals = {name: {row["paper"]: row[name] for row in rows} for name in (*NAMES[2:6], "citations")}
    signals |= {name: {row["paper"]: row["cosines"][at] for row in rows} for at, name in enumerate(RUNS)}
    for paper in {row["paper"] for row in rows}:
        expected = 0.0
        for name, of in signals.items():
            if of[paper] is not None:
                rank = 1 + sum(value is not None and value > of[paper] for value in of.values())
                expected += (1 / 3 if name.startswith("votes") else 1) / (60 + rank)
        assert scores[query, paper] == pytest.approx(expected, abs=1e-6)


def test_too_few_queries_to_learn_from_are_told_and_ranked_by_the_shipped_weights(small, capsys):
    searches = read_table(small.folder / "tables/searches.parquet", "searches")
    few = [q for q, split in small.splits.items() if split == "selection"][:24]
    split = ["selection" if q in few else "test" for q in searches["query"].to_pylist()]
    fewer = searches.set_column(searches.schema.get_field_index("split"), "split", pa.array(split))
    write_table(small.folder / "tables/searches.parquet", "searches", fewer)
    _, weights, _ = ranked(small)
    write_table(small.folder / "tables/searches.parquet", "searches", searches)
    shipped = read_json(SHIPPED)
    assert (weights["queries"], weights["corpora"]) == (0, shipped["corpora"])
    by_name = {row["name"]: row["weight"] for row in weights["weights"]}
    for of in ("cosine", "rank cosine"):
        assert by_name.pop(f"{of} one") == by_name.pop(f"{of} two") == shipped["weights"][of] / 2
    assert by_name == {name: shipped["weights"][name] for name in by_name}
    told = capsys.readouterr().err
    assert "24 held-out papers choose between settings" in told
    assert f"learned on {' and '.join(shipped['corpora'])} rank instead" in told
