"""Engines that train graph embeddings, one module each; `biggraph/` holds PyTorch-BigGraph.

An engine is a subclass of `config.engine.Engine`, whose fields are its settings. It trains from the folder that
`importing.py` has made, and returns one vector a paper. The configuration imports every engine in every job; what takes
long to import is imported within `train`.
"""
