"""The command that makes files of some results again, as a person can give it: it works as it is printed."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cocite.config.started import is_copy, read_start
from cocite.core.errors import InputError

DEFAULT_CONFIGURATION = "config.yaml"


def remaking_command(results: Path, targets: Sequence[str], configfile: Path | None = None) -> str:
    """The call of Snakemake that makes these targets, which are shell text and relative to `results`.

    It names the configuration that is given, or else that of the run which was started last in this folder. Raises
    `InputError` where that run was in another folder, of which this one is a copy.
    """
    start = read_start(results)
    if configfile is None and start is not None:
        folder = Path(start.directory)
        command = _command(Path(start.results), targets, start.configfiles, folder, Path(start.snakefile))
        return command if folder == Path.cwd() else f"cd {shlex.quote(start.directory)} && {command}"
    if configfile is None and is_copy(results):
        raise InputError(
            f"{results} is a copy, and the run that it was copied from makes its files elsewhere; name a configuration "
            f"with `pathvars: {{results: {results}}}` by --configfile."
        )
    return _command(results, targets, [str(configfile)] if configfile else [], Path.cwd())


def program(name: str, folder: Path) -> str:
    """How a program of this installation is called from a folder."""
    path = Path(sys.executable).parent / name
    return shlex.quote(str(path.relative_to(folder) if path.is_relative_to(folder) else path))


def _command(
    results: Path, targets: Sequence[str], configfiles: Sequence[str], folder: Path, snakefile: Path | None = None
) -> str:
    words = [program("snakemake", folder), "--cores 2"]
    words += [f"{shlex.quote(str(results))}/{target}" for target in targets]
    if any(folder / file != folder / DEFAULT_CONFIGURATION for file in configfiles):
        words += ["--configfile", shlex.join(configfiles), "--replace-workflow-config"]
    if snakefile is not None and snakefile != folder / "Snakefile":
        words += ["--snakefile", shlex.quote(str(snakefile))]
    return " ".join(words)
