"""Sources of a corpus: one module each, with its settings and all its specific code.

The configuration imports every source in every job; what takes long to import is imported within the methods.
"""
