"""Snakemake that looks at its jobs each second.

The executor waits ten seconds longer after each look at which no job has ended, up to three minutes, and no option says
otherwise. Where jobs take seconds, a run would spend nearly all of its time so.
"""

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

if __name__ == "__main__":
    RemoteExecutor.next_seconds_between_status_checks = property(lambda _: 1, lambda *_: None)
    main()
