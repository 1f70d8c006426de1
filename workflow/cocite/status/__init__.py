"""How far a run is: `cocite status`, from what a run writes down at its start, Snakemake's log, and the logs of jobs.

Nothing here asks Snakemake or a cluster, so that it answers at once: beside a run, after one that was killed, and on
any machine that sees the folder.
"""
