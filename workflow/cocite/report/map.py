"""The map: held-out papers as models place them, laid out by t-SNE and coloured by field of study.

van der Maaten & Hinton, 2008, "Visualizing data using t-SNE". A layout of 200 papers takes half a second and one
of 2,000 takes ten, so a map has some models and some papers, and says how many it leaves out.
"""

from collections.abc import Mapping
from itertools import compress
from pathlib import Path

import numpy as np
import polars as pl

from cocite.config.runs import MAPPED_PAPERS
from cocite.ground.randomness import derive_seed, generator
from cocite.report.canvas import COLOURS, Entry, Titles, canvas
from cocite.report.results import UNKNOWN_FIELD
from cocite.report.svg import SERIES

PANEL = (2.2, 2.2)
"""Width and height of a model's part, inches."""
FIELD_COLOURS = len(COLOURS) - 1
GREY = COLOURS[-1]
OTHER = "other fields"
PERPLEXITY = 30
ITERATIONS = 500
"""As many as bring the divergence within 1% of that after the library's 1,000, on the demo's papers."""


def draw_map(
    embeddings: Mapping[str, np.ndarray], fields: list[str], titles: list[str], seed: int, output: Path
) -> None:
    """The same papers in each embedding (papers × dimension), coloured by field, titles on hover.

    Fields beyond the most frequent share a colour. Of many papers, some are drawn at random.
    """
    chosen = _chosen(len(fields), seed)
    fields, titles = [fields[place] for place in chosen], [titles[place] for place in chosen]
    shown: Titles = {}
    entries = _entries(fields)
    with canvas(output, panels=len(embeddings), size=PANEL, entries=entries, titles=shown) as axes:
        for axis, (name, vectors) in zip(axes, embeddings.items(), strict=True):
            axis.set_axis_off()
            points = _layout(vectors[chosen], seed)
            for place, (field, entry) in enumerate(entries.items()):
                is_of_field = [(f if f in entries else OTHER) == field for f in fields]
                x, y = points[np.array(is_of_field, dtype=bool)].T
                drawn = axis.scatter(x, y, s=9, color=entry.colour, linewidths=0)
                identity = f"{SERIES}{place}-{name}"
                drawn.set_gid(identity)
                shown[identity] = list(compress(titles, is_of_field))
            axis.set_title(name)


def _chosen(papers: int, seed: int) -> np.ndarray:
    """The places of the papers that are drawn, rising."""
    if papers <= MAPPED_PAPERS:
        return np.arange(papers)
    return np.sort(generator(seed, "papers of the map").choice(papers, MAPPED_PAPERS, replace=False))


def _entries(fields: list[str]) -> dict[str, Entry]:
    """A colour for each of the most frequent fields, and grey for the others together and for papers without one."""
    frequent = (
        pl.Series(fields, dtype=pl.String).value_counts(sort=True).sort(["count", pl.first()], descending=[True, False])
    )
    names = [name for name in frequent.to_series(0) if name != UNKNOWN_FIELD]
    colours = dict(zip(names[:FIELD_COLOURS], COLOURS, strict=False))
    if len(names) > FIELD_COLOURS:
        colours[OTHER] = GREY
    if UNKNOWN_FIELD in fields:
        colours[UNKNOWN_FIELD] = GREY
    return {name: Entry(name=name, colour=colour, marker="o") for name, colour in colours.items()}


def _layout(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Points of the papers, papers × 2; all on one spot where no two vectors differ, which t-SNE cannot lay out."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if (vectors[:1] == vectors).all():
        return np.zeros((len(vectors), 2))
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    random_state = derive_seed(seed, "map") % 2**32
    tsne = TSNE(init="pca", perplexity=perplexity, max_iter=ITERATIONS, random_state=random_state)
    # So few papers keep no second thread busy: it would wait for work, and take as much of a processor.
    with threadpool_limits(1):
        points: np.ndarray = tsne.fit_transform(vectors)
    return points
