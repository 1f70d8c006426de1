"""Triplets of query, positive and negative: sampled, cut to equal sizes, joined with texts."""
