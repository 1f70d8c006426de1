"""Where a corpus comes from: one module a source, with its settings and all that is particular to it.

The configuration imports every source in every job; what takes long to import is imported within the methods.
"""
