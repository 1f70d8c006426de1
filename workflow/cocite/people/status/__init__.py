"""How far a run is: `cocite status`, from what it writes down at its start, Snakemake's log, and the jobs' own files.

Nothing here asks Snakemake or a cluster, so that it answers at once: beside a run, after one that was killed, and on
any machine that sees the folder.
"""
