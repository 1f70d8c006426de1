"""Ranked neighbours of the queries, by graph embeddings or walks on graphs, and candidates of mined negatives."""
