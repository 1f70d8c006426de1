"""Where a corpus comes from: one module a source, with all that is particular to it."""
