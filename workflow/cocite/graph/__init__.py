"""Graphs over papers: co-citations counted, and the edges that graph embeddings are trained on."""
