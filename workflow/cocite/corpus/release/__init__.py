"""A release: its manifest, the plan of a run, and the client that fetches it from the Semantic Scholar Datasets API."""
