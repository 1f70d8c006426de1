"""Foundations of all stages, independent of papers, graphs and models."""
