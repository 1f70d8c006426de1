"""Estimates of what a release will take on the disk, from releases that were measured, for who plans a run.

They err on the side of too much: a disk that turns out too small is worse than one that turns out too large.
"""

from cocite.config.release_folder import DATASETS, is_packed
from cocite.corpus.release.manifest import Dataset, Manifest, Shard

PARQUET_OF_PACKED = {
    # A generated release of 20,000 papers, whose records have all the fields of real ones: 0.27, 0.76 and 0.20.
    "s2": {"papers": 0.3, "abstracts": 0.8, "citations": 0.2},
    "demo": {"papers": 0.3, "abstracts": 0.8, "citations": 0.2},
    # Records with little else than what is kept. The release hci: 0.77, 1.03 and 0.38; synergy: 0.75, 1.03 and 0.39.
    "directory": {"papers": 0.8, "abstracts": 1.05, "citations": 0.4},
}
"""Bytes of Parquet for each byte of a shard, by the source of a corpus. In the three releases, the tables that are
merged from it took 0.74 to 0.99 of that; they take less where a release has more copies."""
TEXT_OF_PACKED = 3
"""Bytes of text for each byte of a packed shard, at least: 3.3 to 14 in the releases hci and synergy."""
IDS_OF_PACKED = 0.1
"""Bytes that the ids of citations take on top, where they are kept: 0.05 to 0.10 in these releases. A real one has 50
packed bytes for each of five billion citations, whose ids need five at most."""
MEMORY_OF_PARQUET = 10
"""A citation has 3.2 to 3.5 bytes in the Parquet of the three releases. In memory it has 17, twice while it is sorted:
what does not fit there is spilled."""
JOBS_AT_ONCE = 8
"""As many as profiles/slurm lets download at once; one machine has fewer."""
PACKED_OF_PAPER = {"papers": 80, "abstracts": 80, "citations": 320}
"""Bytes of each dataset for each paper of a generated release: 79, 79 and 315 for 20,000 papers."""


def packed_bytes(shard: Shard) -> int:
    """Bytes of a shard, as if it were packed."""
    return shard.bytes if is_packed(shard.name) else shard.bytes // TEXT_OF_PACKED


def parquet_of(source: str, dataset: str, packed: int) -> int:
    """Bytes of Parquet that so many bytes of shards become."""
    return round(PARQUET_OF_PACKED[source][dataset] * packed)


def imagined_release(release: str, papers: int, shards: int) -> Manifest:
    """About what the demo's generator will write."""
    datasets = {
        name: Dataset(
            shards=tuple(
                Shard(name=f"{number}.gz", bytes=papers * PACKED_OF_PAPER[name] // shards) for number in range(shards)
            ),
            readme="",
        )
        for name in DATASETS
    }
    return Manifest(release=release, datasets=datasets)


def raw_under_way(manifest: Manifest) -> int:
    """Bytes of the largest shards, as many as can be downloaded and ingested at one time."""
    sizes = [shard.bytes for dataset in manifest.datasets.values() for shard in dataset.shards]
    return sum(sorted(sizes)[-2 * JOBS_AT_ONCE :])


def spilled_while_merged(citations: int, buckets: int) -> int:
    """Bytes that merging may spill, of so many bytes of citations in Parquet."""
    return MEMORY_OF_PARQUET * citations * min(JOBS_AT_ONCE, buckets) // buckets
