"""The stage evaluation: documents and judgements of benchmarks, and what vectors, BM25 and chance score on them."""
