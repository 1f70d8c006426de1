"""How candidates are ranked: weights that numpy alone applies, learned ones as the regression has them."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tests.retrieval.small import RUNS, Small

from cocite.config.index import Ranking
from cocite.core.atomic import read_json
from cocite.core.tables.files import read_table, write_table
from cocite.retrieval.ranker import rank_candidates

NAMES = ["cosine one", "cosine two", "words", "votes_10", "votes_30", "votes_100", "citations", "without links"]


def ranked(small, **settings):
    """Scores by query and paper, the weights as they are written, and what chose between discounts."""
    folder = small.folder
    files = {"weights": folder / "weights.json", "selection": folder / "selection.parquet"}
    rank_candidates(
        folder / "candidates.parquet",
        tables=folder / "tables",
        settings=Ranking(**settings),
        models=",".join(RUNS),
        output=folder / "answers.parquet",
        **files,
    )
    answers = read_table(folder / "answers.parquet", "answers").to_pylist()
    scores = {(row["query"], row["paper"]): row["score"] for row in answers}
    return scores, read_json(files["weights"]), read_table(files["selection"], "selection_scores").to_pylist()


def values_of(table):
    """What is known of candidates, NaN for what is not, in the order of NAMES."""
    rows = table.to_pylist()
    return np.array(
        [
            [
                *row["cosines"],
                *(row[name] for name in NAMES[2:6]),
                np.log(1 + row["citations"]),
                row["votes_10"] is None,
            ]
            for row in rows
        ],
        dtype=float,
    )


def of_split(table, split, found=True):
    kept = table.filter(pa.compute.equal(table["split"], split))
    return kept.filter(kept["is_found"]) if found else kept


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    made = Small(tmp_path_factory.mktemp("ranked"), papers=500).write()
    made.table = made.find()
    return made


def test_learned_weights_are_those_of_scikit_learn_on_what_the_selection_queries_cite(small):
    searches = read_table(small.folder / "tables/searches.parquet", "searches").to_pylist()
    cocited = [{**row, "task": "cocite_search", "paper": small.searched[-1]} for row in searches]
    rows = {(row["task"], row["query"], row["paper"]): row for row in [*searches, *cocited]}
    schema = read_table(small.folder / "tables/searches.parquet", "searches").schema
    both = pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema)
    chosen = of_split(small.table, "selection")
    scaler = StandardScaler().fit(values_of(chosen))
    scaled = np.nan_to_num(scaler.transform(values_of(chosen)))
    is_relevant = [row["paper"] in small.relevant[row["query"]] for row in chosen.to_pylist()]
    expected = LogisticRegression(tol=1e-10, max_iter=10_000).fit(scaled, is_relevant).coef_[0]
    write_table(small.folder / "tables/searches.parquet", "searches", both)
    scores, weights, _ = ranked(small, known="more")
    write_table(small.folder / "tables/searches.parquet", "searches", pa.Table.from_pylist(searches, schema))
    assert [row["name"] for row in weights["weights"]] == NAMES
    assert [row["weight"] for row in weights["weights"]] == pytest.approx(expected, abs=1e-4)
    assert weights["queries"] == sum(split == "selection" for split in small.splits.values())
    tested = of_split(small.table, "test", found=False)
    of_tested = np.nan_to_num(scaler.transform(values_of(tested))) @ expected
    pairs = list(zip(tested["query"].to_pylist(), tested["paper"].to_pylist(), strict=True))
    assert scores == pytest.approx(dict(zip(pairs, of_tested.tolist(), strict=True)), abs=1e-3)


def test_a_discount_lowers_each_score_by_the_logarithm_of_citations(small):
    more, _, _ = ranked(small, known="more")
    less, weights, _ = ranked(small, known="less")
    assert weights["discount"] >= 0.5
    falls = [more[q, p] - less[q, p] - weights["discount"] * np.log(1 + small.citations[p]) for q, p in more]
    assert falls == pytest.approx([falls[0]] * len(falls), abs=1e-4)  # but for a constant, which ranks nothing


def test_the_balanced_discount_is_the_least_that_finds_rare_papers_as_any_list_does_if_there_is_one(small):
    _, weights, selection = ranked(small)
    [chosen] = [row for row in selection if row["chosen"]]
    assert chosen["ranking"] == f"index, discount {weights['discount']:g}"
    lists = [row for row in selection if not row["ranking"].startswith("index")]
    by_discount = {float(row["ranking"].split()[-1]): row for row in selection if row not in lists}
    least = max(row["recall_rare"] for row in lists)
    reached = [each for each, row in by_discount.items() if row["recall_rare"] >= least]
    most = max(row["recall_rare"] for row in by_discount.values())
    best = [each for each, row in by_discount.items() if row["recall_rare"] == most]
    assert weights["discount"] == min(reached or best) > 0


def test_recall_on_the_selection_queries_is_counted_by_hand(small):
    _, _, selection = ranked(small)
    found = of_split(small.table, "selection").to_pylist()
    shares, rare = [], []
    for query, relevant in small.relevant.items():
        if small.splits[query] == "selection":
            mine = sorted((row for row in found if row["query"] == query), key=lambda row: -row["cosines"][0])[:20]
            first = {row["paper"] for row in mine}
            seldom = [paper for paper in relevant if small.citations[paper] <= 3]
            shares.append(len(first.intersection(relevant)) / min(20, len(relevant)))
            rare += [len(first.intersection(seldom)) / min(20, len(seldom))] if seldom else []
    [row] = [row for row in selection if row["ranking"] == "cosine one"]
    assert row["recall"] == pytest.approx(100 * np.mean(shares))
    assert row["recall_rare"] == pytest.approx(100 * np.mean(rare))


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


def test_too_few_queries_to_learn_from_are_told_and_ranked_by_the_sum(small, capsys):
    searches = read_table(small.folder / "tables/searches.parquet", "searches")
    few = [q for q, split in small.splits.items() if split == "selection"][:24]
    split = ["selection" if q in few else "test" for q in searches["query"].to_pylist()]
    fewer = searches.set_column(searches.schema.get_field_index("split"), "split", pa.array(split))
    write_table(small.folder / "tables/searches.parquet", "searches", fewer)
    by_sum, _, _ = ranked(small, rank="sum", known="more")
    learned, weights, _ = ranked(small, known="more")
    assert learned == by_sum
    assert (weights["rank"], weights["queries"]) == ("sum", 0)
    assert "24 held-out papers choose between settings" in capsys.readouterr().err
    write_table(small.folder / "tables/searches.parquet", "searches", searches)
