"""Nearest neighbours of the queries in a graph embedding, searched with FAISS."""
