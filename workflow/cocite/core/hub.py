"""The Hugging Face hub, as the stages use it: files of one commit, fetched once and read offline after that."""

from collections.abc import Sequence
from pathlib import Path

from cocite.core.errors import InputError, reason_of
from cocite.core.progress import report


def fetch_files(name: str, revision: str, patterns: Sequence[str], folder: Path, *, kind: str = "model") -> None:
    """Fetch files of a repository (model or dataset) that are not there. Raises `InputError` if they cannot be had."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    report(f"Fetching {name} at {revision}.")
    try:
        snapshot_download(name, repo_type=kind, revision=revision, allow_patterns=list(patterns), local_dir=folder)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        raise InputError(f"{name} at {revision} cannot be fetched from the hub: {reason_of(error)}.") from error
