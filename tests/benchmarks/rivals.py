"""Rivals that need an environment of their own, called with its Python: `python rivals.py FUNCTION ARGUMENT...`."""

import json
import sys
from pathlib import Path


def screen(reviews: str, starts: str, output: str) -> None:
    """Simulate ASReview's default for each start, those of the first number first; what is in the output is not again.

    `reviews` is JSON: by name, the titles, abstracts and labels of the papers, and the included and the excluded paper
    of each start. `output` receives a line for each start and review: the places, from 0, at which included papers are
    screened.
    """
    import pandas as pd
    from asreview import ActiveLearningCycle, Simulate
    from asreview.models.models import get_ai_config

    of_reviews, kept = json.loads(Path(reviews).read_text(encoding="utf-8")), Path(output)
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    done = {(each["start"], each["review"]) for each in map(json.loads, lines)}
    features = {}
    for start in range(int(starts)):
        for name, review in of_reviews.items():
            if (start + 1, name) in done:
                continue
            cycle = ActiveLearningCycle.from_meta(get_ai_config()["value"])
            if name not in features:
                features[name] = cycle.transform(pd.DataFrame({key: review[key] for key in ("title", "abstract")}))
            simulation = Simulate(features[name], review["labels"], cycle, skip_transform=True, print_progress=False)
            simulation.label(review["starts"][start])
            simulation.review()
            screened = simulation._results  # which has no other name
            places = [place for place, label in enumerate(screened["label"]) if label]
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"start": start + 1, "review": name, "places": places}) + "\n")


def find_twins(papers: str, output: str) -> None:
    """Write the groups of papers that bib-dedupe takes for one work, as lists of their ids."""
    import pandas as pd
    from bib_dedupe.bib_dedupe import block, cluster, match, prep

    records = [
        {
            "ID": str(paper["corpusid"]),
            "ENTRYTYPE": "article",
            "author": " and ".join(f"{name.split()[-1]}, {name.split()[0]}" for name in paper["authors"]),
            "year": str(paper["year"]),
            "journal": paper["venue"],
            **{key: paper[key] or "" for key in ("title", "doi", "abstract")},
            **dict.fromkeys(("volume", "number", "pages"), ""),
        }
        for paper in json.loads(Path(papers).read_text())
    ]
    matched = match(block(prep(pd.DataFrame(records), cpu=2), cpu=2), cpu=2)
    groups = [[int(paper) for paper in group] for group in cluster(matched)]
    Path(output).write_text(json.dumps([group for group in groups if len(group) > 1]))


if __name__ == "__main__":
    {"screen": screen, "find_twins": find_twins}[sys.argv[1]](*sys.argv[2:])
