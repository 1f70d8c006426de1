"""What all stages stand on: it knows nothing of papers, graphs or models."""
