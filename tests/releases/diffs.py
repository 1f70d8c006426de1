"""Where a release keeps the diffs that lead to it, and how one is written, read and described by a served API.

    <folder>/updates/<from>-to-<to>/<dataset>/<date>_<number>.gz      records to insert or replace by primary key
    <folder>/deletes/<from>-to-<to>/<dataset>/<date>_<number>.gz      records to remove, by primary key

These are the paths of real diffs, whose files are named alike in all datasets, for updates and for deletes. A dataset
without changes of a kind has no file of it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

from cocite.corpus.sources.demo.catalogue import Catalogue, read_release
from cocite.demo.shards import Record, open_shard, read_rows, write_row

UPDATES, DELETES = "updates", "deletes"
LATEST = "latest"
PRIMARY_KEYS = {"papers": "corpusid", "abstracts": "corpusid", "citations": "citationid"}
_WHOLE = 2
"""The number of the file of deletes, the last, that holds whole records."""


class Diff:
    """Takes the changes of one dataset from one release to the next, each key once."""

    def __init__(self, dataset: str, updates: "_Files", deletes: "_Files") -> None:
        self._key = PRIMARY_KEYS[dataset]
        self._updates, self._deletes = updates, deletes

    def update(self, row: Record) -> None:
        """Insert or replace a record."""
        write_row(self._updates.next(), row)

    def delete(self, row: Record) -> None:
        """Remove a record. A file of keys alone and one of whole records take turns, as a diff may have either."""
        file = self._deletes.next()
        write_row(file, row if self._deletes.number == _WHOLE else {self._key: row[self._key]})


class _Files:
    """Files that take turns, each made when its first turn comes."""

    def __init__(self, paths: list[Path], stack: ExitStack) -> None:
        self._paths, self._stack = paths, stack
        self._files: list[TextIO] = []
        self._turns = 0

    @property
    def number(self) -> int:
        """The number of the file whose turn it was last, from 1."""
        return (self._turns - 1) % len(self._paths) + 1

    def next(self) -> TextIO:
        """The file whose turn it is."""
        self._turns += 1
        if self.number > len(self._files):
            path = self._paths[self.number - 1]
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files.append(self._stack.enter_context(open_shard(path)))
        return self._files[self.number - 1]


def diff_folder(release: Path, kind: str, start: str, end: str, dataset: str) -> Path:
    """The folder of the files of a kind, `UPDATES` or `DELETES`, of one diff of one dataset."""
    return release / kind / f"{start}-to-{end}" / dataset


@contextmanager
def write_diff(release: Path, start: str, end: date, dataset: str, files: int) -> Iterator[Diff]:
    """A diff to be filled, in at most so many files of updates and two of deletes."""
    names = [f"{end:%Y%m%d}_{number}.gz" for number in range(1, 1 + max(files, _WHOLE))]
    updates, deletes = (diff_folder(release, kind, start, str(end), dataset) for kind in (UPDATES, DELETES))
    with ExitStack() as stack:
        yield Diff(
            dataset,
            _Files([updates / name for name in names[:files]], stack),
            _Files([deletes / name for name in names[:_WHOLE]], stack),
        )


def read_keys(release: Path, kind: str, start: str, end: str, dataset: str) -> set[int]:
    """The primary keys that a diff of a dataset updates or deletes."""
    folder = diff_folder(release, kind, start, end, dataset)
    return {row[PRIMARY_KEYS[dataset]] for row in read_rows(folder)} if folder.exists() else set()


class CatalogueWithDiffs(Catalogue):
    """A release in a folder, and the diffs that lead to it from the releases that it follows.

    These are listed too, and the diffs from each to each later one can be fetched, but none of their shards.
    """

    storages = (*Catalogue.storages, f"/{UPDATES}/", f"/{DELETES}/")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder
        self.releases = [*read_release(folder).get("earlier_releases", []), self.release]
        self.files |= {
            self._path_of(path): path for kind in (UPDATES, DELETES) for path in (folder / kind).rglob("*.gz")
        }

    def leads(self, start: str, end: str, name: str) -> bool:
        """Whether the second release, which may be `latest`, is the first or comes after it, and has the dataset."""
        later = [*self.releases[self.releases.index(start) :], LATEST] if start in self.releases else []
        return name in self.datasets and end in later

    def describe_diffs(self, start: str, end: str, name: str, link: Callable[[str], str]) -> dict[str, Any]:
        """The answer to `/diffs/{start}/to/{end}/{name}`: a diff for each step from one release to the next."""
        end = self.release if end == LATEST else end
        span = self.releases[self.releases.index(start) : self.releases.index(end) + 1]
        diffs: list[dict[str, Any]] = []
        for older, newer in pairwise(span):
            links = {
                f"{kind.removesuffix('s')}_files": [
                    link(self._path_of(file))
                    for file in sorted(diff_folder(self._folder, kind, older, newer, name).glob("*.gz"))
                ]
                for kind in (UPDATES, DELETES)
            }
            diffs.append({"from_release": older, "to_release": newer, **links})
        return {"dataset": name, "start_release": start, "end_release": end, "diffs": diffs}

    def _path_of(self, file: Path) -> str:
        return f"/{file.relative_to(self._folder).as_posix()}"
