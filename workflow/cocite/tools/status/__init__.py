"""How far a run is: `cocite status`, from the plan that a run records, Snakemake's log and the jobs' files.

It asks neither Snakemake nor a cluster. It therefore answers at once, during a run, after a killed one, and on any
machine that can read the folder.
"""
