"""Queries and documents that people bring, with or without negatives and scores, in the layouts that they come in."""
