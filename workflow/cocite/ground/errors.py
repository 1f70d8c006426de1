"""Errors that are the user's to mend: they say where, what is wrong and what would be right."""

import errno

SURROUNDINGS = {
    errno.EACCES: "grant this user the right to it",
    errno.EPERM: "grant this user the right to it",
    errno.EROFS: "name a place on a disk that can be written to",
    errno.ELOOP: "mend the link, which leads to itself",
    errno.ENAMETOOLONG: "choose shorter names",
    errno.ENOTDIR: "a folder is expected there, not a file",
    errno.EIO: "the disk or its network failed, so try again",
    errno.ESTALE: "the network disk lost the file, so try again",
}
"""Errors of the operating system that a place causes and no program, and what helps."""


class InputError(Exception):
    """Input, configuration or surroundings that a step cannot work with.

    The message is one sentence or two: the file, line or key; what is wrong; what would be right.
    The command line prints it without a traceback.
    """


def surroundings(error: OSError) -> str | None:
    """The message for an error of the operating system that its surroundings cause; None for any other."""
    if error.filename is None or error.errno not in SURROUNDINGS:
        return None
    return f"{error.filename}: {error.strerror}; {SURROUNDINGS[error.errno]}."
