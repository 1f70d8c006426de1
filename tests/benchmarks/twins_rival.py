"""The rival of finding twins: bib-dedupe, with its own Python: `python twins_rival.py papers.json groups.json`."""

import json
import sys
from pathlib import Path

import pandas as pd
from bib_dedupe.bib_dedupe import block, cluster, match, prep


def main(papers: Path, output: Path) -> None:
    """Write the groups of papers that it takes for one work, as lists of their ids."""
    records = [
        {
            "ID": str(paper["corpusid"]),
            "ENTRYTYPE": "article",
            "title": paper["title"] or "",
            "author": " and ".join(f"{name.split()[-1]}, {name.split()[0]}" for name in paper["authors"]),
            "year": str(paper["year"]),
            "journal": paper["venue"],
            "doi": paper["doi"] or "",
            "abstract": paper["abstract"] or "",
            **dict.fromkeys(("volume", "number", "pages"), ""),
        }
        for paper in json.loads(papers.read_text())
    ]
    matched = match(block(prep(pd.DataFrame(records), cpu=2), cpu=2), cpu=2)
    groups = [[int(paper) for paper in group] for group in cluster(matched)]
    output.write_text(json.dumps([group for group in groups if len(group) > 1]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
