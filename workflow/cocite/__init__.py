"""CoCite: embeddings of scientific publications, learned from how they are cited together."""

__version__ = "0.1.0"
