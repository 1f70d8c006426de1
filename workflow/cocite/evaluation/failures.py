"""What the data make impossible is a result: the task has no score, and the table failures says why.

What the machine makes impossible (memory, disk, a broken file) is none: that stops the job, which is run again.
"""

from cocite.ground.errors import InputError


class UnscorableError(InputError):
    """A task that cannot be scored on the data as they are, in one sentence that says why."""
