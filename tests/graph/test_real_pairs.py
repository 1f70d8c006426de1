"""On real citations, pairs equal a sparse product of SciPy that knows nothing of the project's own ingest."""

import numpy as np
import pytest
from scipy.sparse import csr_array, triu
from tests.graph.conftest import pair_counting

from cocite.core.database import connect

from .conftest import count_all, shard

BUCKETS = 2


def read_release(folder, spill_to):
    """The distinct, usable citations of a release: citing and cited ids."""
    with connect(memory_mb=1000, threads=2, spill_to=spill_to) as db:
        rows = db.sql(f"""
            SELECT DISTINCT citingcorpusid, citedcorpusid
            FROM read_json('{folder}/citations/*.gz', format='newline_delimited')
            WHERE citedcorpusid <> citingcorpusid
        """).fetchnumpy()
    return rows["citingcorpusid"].astype(np.int64), rows["citedcorpusid"].astype(np.int64)


def product(groups, members, queries, *, all_pairs):
    """Smaller ids, larger ids, counts and cosines of the pairs, in order, by a product of groups and members."""
    papers, columns = np.unique(members, return_inverse=True)
    _, rows = np.unique(groups, return_inverse=True)
    matrix = csr_array((np.ones(len(rows), np.int64), (rows, columns)))
    is_query = np.isin(papers, queries)
    if all_pairs:
        matrix = matrix[matrix[:, is_query].sum(axis=1) > 0]
    occurrences = matrix.sum(axis=0)
    counts = triu(matrix.T @ matrix, 1).tocoo()
    asked = all_pairs | is_query[counts.row] | is_query[counts.col]
    one, other, number = counts.row[asked], counts.col[asked], counts.data[asked]
    order = np.lexsort((other, one))
    cosines = number / np.sqrt(occurrences[one] * occurrences[other])
    return papers[one[order]], papers[other[order]], number[order], cosines[order]


@pytest.fixture(scope="module")
def hci(shared, tmp_path_factory):
    """The citations of hci, written once, with every 20th paper as a query; and the folder."""
    folder = tmp_path_factory.mktemp("hci")
    citing, cited = read_release(shared / "data" / "releases" / "hci", folder)
    queries = np.unique(np.concatenate([citing, cited]))[::20]
    citations = set(zip(citing.tolist(), cited.tolist(), strict=True))
    shard(folder, citations, dict.fromkeys(queries.tolist(), "train"), BUCKETS)
    return folder, citing, cited, queries


@pytest.mark.parametrize("signal", ["cocitation", "coupling"])
@pytest.mark.parametrize("pairs", ["query", "all"])
def test_pairs_on_hci_equal_a_sparse_product(hci, signal, pairs):
    folder, citing, cited, queries = hci
    groups, members = (citing, cited) if signal == "cocitation" else (cited, citing)
    expected = product(groups, members, queries, all_pairs=pairs == "all")
    found = count_all(folder, pair_counting(signal=signal, pairs=pairs, strength="cosine"), BUCKETS)
    found = found.sort_by([("paper", "ascending"), ("other", "ascending")])
    assert len(found) > 100_000
    for column, values in zip(("paper", "other", "count"), expected, strict=False):
        np.testing.assert_array_equal(found[column].to_numpy(), values)
    np.testing.assert_allclose(found["strength"].to_numpy(), expected[3], rtol=1e-12)
