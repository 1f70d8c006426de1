"""The sampler `cropping`: papers whose spans are near to each other."""

from tests.triplets.blocks import block, sample, unserved


def test_each_query_with_a_text_is_near_to_itself_and_far_from_random_papers():
    found = sample("cropping", block(range(20), range(5, 100)), negatives=3, shortest=12, longest=40)
    rows = found.rows.to_pylist()
    assert [row["query"] for row in rows] == list(range(5, 20))
    for row in rows:
        assert row["positives"] == [row["query"]]
        assert len(set(row["negatives"])) == 3
        assert row["query"] not in row["negatives"]
        assert set(row["negatives"]) <= set(range(5, 100))
        assert row["negative_kinds"] == ["easy"] * 3
        assert (row["shortest_span"], row["longest_span"], row["number"]) == (12, 40, 1)
    assert unserved(found, of="an example") == {"no text": 5}


def test_without_negatives_and_without_a_longest_span():
    [row] = sample("cropping", block([7], [7, 8]), negatives=0).rows.to_pylist()
    assert row["negatives"] == []
    assert (row["shortest_span"], row["longest_span"]) == (10, None)
