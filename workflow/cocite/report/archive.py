"""Snakemake's own report, `report.zip`: the report's files with the rules, commands and run times that made them."""

import subprocess
import sys
from pathlib import Path

from cocite.config.configuration import results_folder, written_configuration
from cocite.ground.errors import InputError

ARCHIVE = "report/report.zip"
PAGE = "report/index.html"


def write_archive(configfile: Path) -> Path:
    """Have Snakemake write the archive of a finished run, unless it is newer than the run's page; return its path."""
    results = results_folder(written_configuration(configfile))
    archive, page = results / ARCHIVE, results / PAGE
    if not page.is_file():
        raise InputError(f"{page} does not exist; run the workflow first.")
    if not archive.is_file() or archive.stat().st_mtime < page.stat().st_mtime:
        _call_snakemake(configfile, archive)
    return archive


def _call_snakemake(configfile: Path, archive: Path) -> None:
    command = [sys.executable, "-m", "snakemake", "--report", str(archive), "--nolock", "--quiet", "all"]
    command += ["--configfile", str(configfile), "--replace-workflow-config"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise InputError(f"{archive} could not be written; Snakemake says: {finished.stderr.strip()}")
