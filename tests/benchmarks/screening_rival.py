"""ASReview's default on reviews, in an environment that has it: `python screening_rival.py REVIEWS STARTS OUTPUT`.

REVIEWS is JSON: by name, the titles, abstracts and labels of the papers, and the included and the excluded paper of
each start. OUTPUT receives a line for each start and review: the places at which included papers are screened, from 0.
"""

import json
import sys
from pathlib import Path

import pandas as pd
from asreview import ActiveLearningCycle, Simulate
from asreview.models.models import get_ai_config


def main(reviews: Path, starts: int, output: Path) -> None:
    """Simulate each start, those of the first number first; what is in the output is not simulated again."""
    of_reviews = json.loads(reviews.read_text(encoding="utf-8"))
    lines = output.read_text(encoding="utf-8").splitlines() if output.is_file() else []
    done = {(each["start"], each["review"]) for each in map(json.loads, lines)}
    features = {}
    for start in range(starts):
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
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"start": start + 1, "review": name, "places": places}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
