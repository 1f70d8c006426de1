"""Papers with other ids than Semantic Scholar's, matched with its papers, and documents of benchmarks among them."""
