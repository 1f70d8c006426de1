"""Engines that train graph embeddings, one module each; `biggraph/` holds PyTorch-BigGraph.

An engine is a subclass of `config.engine.Engine`, whose fields are its settings. It trains from the folder that
`imported.py` makes. The configuration imports every engine; what takes long to import is imported within `train`.
"""
