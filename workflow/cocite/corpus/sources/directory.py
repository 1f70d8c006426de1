"""A release in a user's folder, in the layout of a release: its shards are read in place."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cocite.config.entries import GivenPath, Whole
from cocite.config.release_folder import DATASETS, ENDINGS, find_shards, readme_of, stated_by
from cocite.config.source import LATEST, IdSpace, MatchedSource, faults_of_name
from cocite.core.errors import InputError

if TYPE_CHECKING:
    from cocite.corpus.release.manifest import Manifest


class Directory(MatchedSource):
    """Reads a folder in the layout of a release."""

    source: Literal["directory"]
    """Source of the release."""
    path: GivenPath
    """Folder of the release. Environment variables are expanded."""
    id_space: IdSpace = "s2"
    """The id space of papers: s2 for Semantic Scholar's corpus ids, openalex for OpenAlex's work numbers, own for
    others. Documents of benchmarks are matched to papers by id only if both use the same id space."""

    fetches: ClassVar = False

    def shards_in_place(self, dataset: str) -> Sequence[Path]:
        """The shards of a dataset in the folder, by name."""
        return find_shards(Path(self.path, dataset))

    def origin(self, results: Path) -> str:
        """The folder."""
        return self.path

    def list_release(self, release: str, results: Path) -> "Manifest":
        """The manifest of the release in the folder, which its release.json may name."""
        return list_folder(Path(self.path), release)

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """A release whose name no folder can have, and a folder that is not that of the release, or is written to."""
        yield from self.faults_of_match(f"{key}.match")
        misnamed = list(faults_of_name(config.release))
        yield from misnamed
        if misnamed:
            return
        release = Path(self.path)
        if release.is_dir():
            yield from self._faults_of_release(f"{key}.path", release, config.release)
        else:
            yield f"{key}.path: the folder {release} does not exist."
        for name, folder in config.folders.items():
            written = f"pathvars.{name}: the folder {folder}"
            if folder.resolve().is_relative_to(release.resolve()):
                yield f"{written} is inside the release in {release}, which would be mixed up with it; name another."
            elif name == "results" and release.resolve().is_relative_to(folder.resolve()):
                removed = "a run removes files from its results, so name another"
                yield f"{written} contains the release in {release}; {removed}."

    def _faults_of_release(self, key: str, folder: Path, release: str) -> Iterator[str]:
        for dataset in DATASETS:
            try:
                if not self.shards_in_place(dataset):
                    lacking = f"no file in {folder / dataset} that ends in {ENDINGS}"
                    yield f"{key}: the release in {folder} lacks the dataset {dataset} ({lacking})."
            except InputError as error:
                yield f"{key}: {error}"
        stated = stated_by(folder).get("release_id")
        if stated is not None and stated != release:
            yield f"release is {release}, but {folder} contains the release {stated}."

    @property
    def largest_index(self) -> int | None:
        """The number of papers and citations in the release, if its metadata give them."""
        stated = stated_by(Path(self.path))
        counts: list[Any] = [stated.get(dataset) for dataset in ("papers", "citations")]
        return sum(counts) if all(type(count) is int and count >= 0 for count in counts) else None


def list_folder(folder: Path, release: str) -> "Manifest":
    """The manifest of the release in a folder. Raises `InputError` if it is missing or incomplete."""
    from cocite.corpus.release.manifest import Dataset, Manifest, Shard, lacks_dataset

    if not folder.is_dir():
        raise InputError(f"The folder {folder} does not exist; it must contain a release.")
    stated: str | None = stated_by(folder).get("release_id")
    if stated is None and release == LATEST:
        raise InputError(f"{folder / 'release.json'} does not name its release; name it instead of `{LATEST}`.")
    if stated is not None and release not in (LATEST, stated):
        raise InputError(f"Release {release} does not exist in {folder}; it contains {stated}.")
    datasets = {}
    for name in DATASETS:
        files = find_shards(folder / name)
        if not files:
            raise lacks_dataset(stated or release, name)
        shards = tuple(Shard(name=file.name, bytes=file.stat().st_size) for file in files)
        datasets[name] = Dataset(shards=shards, readme=readme_of(folder / name))
    return Manifest(release=stated or release, datasets=datasets)
