"""What the stage graph writes: citations sorted otherwise, pairs of papers with their counts, edges."""

import pyarrow as pa

from cocite.core.tables.declarations.columns import COUNT, TEXT, Column, Table, corpus_id, required
from cocite.core.tables.declarations.corpus import CITATION_ENDS


def _pair_columns(count: str) -> dict[str, Column]:
    """The columns of a table of pairs, whose count means this."""
    return {
        "paper": corpus_id("corpus id, the smaller of the two"),
        "other": corpus_id("corpus id, the larger of the two"),
        "count": required(COUNT, count),
        "strength": Column(
            type=pa.float64(),
            meaning="the measure that graphs.<name>.strength asks for; not there for count",
            optional=True,
        ),
    }


TABLES = [
    Table(
        name="split_citations",
        path="graph/split_citations/{part}/{bucket}.parquet",
        description="Temporary: the citations of one bucket of citing papers, by bucket of the cited paper.",
        key=("cited", "citing"),
        columns=CITATION_ENDS,
    ),
    Table(
        name="citations_by_cited",
        path="graph/citations_by_cited/{bucket}.parquet",
        description=(
            "Temporary: the citations that are not by or of papers that are kept out, sharded by cited modulo the "
            "number of buckets."
        ),
        key=("cited", "citing"),
        columns=CITATION_ENDS,
    ),
    Table(
        name="cocitations",
        path="graph/{graph}/cocitations/{bucket}.parquet",
        description="Pairs of papers that are cited together, each pair once (paper < other); sharded by paper.",
        key=("paper", "other"),
        columns=_pair_columns("distinct papers that cite both; with signal: sentence-cocitation, distinct sentences"),
    ),
    Table(
        name="couplings",
        path="graph/{graph}/couplings/{bucket}.parquet",
        description="Pairs of papers that cite the same papers, each pair once (paper < other); sharded by paper.",
        key=("paper", "other"),
        columns=_pair_columns("distinct papers that both cite"),
    ),
    Table(
        name="edges",
        path="graph/{graph}/edges/{bucket}.parquet",
        description=(
            "The edges that a graph embedding is trained on; papers that are kept out have none. In an undirected "
            "graph each pair stands once, source < target. Sharded by source."
        ),
        key=("source", "target"),
        columns={
            "source": corpus_id("corpus id; the citing paper in a directed citation graph"),
            "target": corpus_id("corpus id; the cited paper in a directed citation graph"),
            "weight": required(
                pa.float32(),
                "the strength of a pair, its count unless another measure is asked for; 1 for a citation; in a "
                "combination, the weighted sum",
            ),
            "intents": Column(
                type=pa.list_(TEXT),
                meaning="intents of the citation, in a directed citation graph; not there in others",
                optional=True,
            ),
        },
    ),
    Table(
        name="intent_counts",
        path="graph/{graph}/intent_counts.parquet",
        description="How many citations of a directed citation graph have which intent.",
        key=("intent",),
        columns={
            "intent": required(TEXT, "background, methodology or result alone; several of them; or none"),
            "citations": required(COUNT, "citations of that kind"),
        },
        ordered=False,
    ),
]
