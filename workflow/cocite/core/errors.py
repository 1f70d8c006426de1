"""Errors that the user can fix: they name the place, say what is wrong and what would be right.

Quoted file contents are stripped of terminal control characters.
"""

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of the operating system for a full disk or an exhausted quota."""
TEMPORARY = ".tmp"
FULL_DISK = "No space left"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, except tab and newline; what reverses the order of a line; and halves of surrogate pairs."""
LONGEST_REASON = 200
"""Characters of a library's error that a message quotes."""


class InputError(Exception):
    """Input, configuration or an environment that a step cannot use; the command line prints no traceback.

    The message is one sentence or two: the file, line or key; what is wrong; what would be right.
    """


def os_error_hint(error: OSError) -> str | None:
    """The message for an error of the operating system that its environment causes; None for any other."""
    if error.filename is None or error.errno not in SURROUNDINGS:
        return None
    return f"{error.filename}: {error.strerror}; {SURROUNDINGS[error.errno]}."


def is_environment_error(error: BaseException) -> bool:
    """Whether an error names a cause outside the file that is read: permissions, folders, or a full disk."""
    return isinstance(error, OSError) and (error.errno in FULL or os_error_hint(error) is not None)


@contextmanager
def explain_unreadable(path: Path, kind: str, advice: str = "") -> Iterator[None]:
    """Turn whatever goes wrong in the block, which only reads a file of this kind, into an `InputError` about the file.

    Errors that name a cause outside the file pass: those of the environment and a full disk. A pipe is refused, since
    whoever opens one waits for a writer.
    """
    if path.is_fifo():
        raise InputError(f"{path} is a pipe and no file; name a file.")
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{error.filename or path} does not exist.") from None
    except MemoryError:
        raise InputError(f"{path}: not a readable {kind} (it needs more memory than there is){advice}.") from None
    except Exception as error:  # Parsers and decompressors raise errors of many types.
        if is_environment_error(error):
            raise
        raise InputError(f"{path}: not a readable {kind} ({reason_of(error)}){advice}.") from error


def reason_of(error: BaseException) -> str:
    """The first line of an error's message, or its type if it has none; shortened if it is long."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return printable(said[:LONGEST_REASON]).rstrip(".")


@contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turn "no space left" in the block, as libraries quote it, into an `InputError` about `folder`, which it fills."""
    try:
        yield
    except Exception as error:
        if getattr(error, "errno", None) not in FULL and FULL_DISK not in str(error):
            raise
        raise InputError(full_disk(folder)) from error


def full_disk(folder: Path) -> str:
    """The message for a folder on a full disk."""
    existing = existing_folder(folder)
    free = f"{shutil.disk_usage(existing).free / 1e9:.1f} GB free"
    return f"The disk is full: {existing} has {free}; make room there and run again."


def existing_folder(folder: Path) -> Path:
    """The folder, or the nearest above it that exists and is not temporary."""
    above = (folder.absolute(), *folder.absolute().parents)
    return next(path for path in above if path.is_dir() and path.suffix != TEMPORARY)


def printable(text: str) -> str:
    """A text with each character that a terminal would obey written as its escape, such as \\x1b."""
    return OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)
