"""What the samplers do, in plain Python over dictionaries and lists, a query at a time.

Only the hashes that rank papers, and the order in which a query draws random papers, are taken from the package; they
have tests of their own.
"""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from cocite.core.randomness import priorities
from cocite.triplets.picking import draw

from .blocks import rows_of, unserved

INTENTS = ("background", "methodology", "result")
DEFAULTS = {"easy": 0, "text_filter": "before", "partial": "kept", "oversample": False, "fill": False}
CHOSEN = {
    "text_filter": st.sampled_from(["before", "after"]),
    "partial": st.sampled_from(["kept", "dropped"]),
    "oversample": st.booleans(),
}
"""Settings that samplers of triplets share."""
MIXED = st.integers(1, 5).flatmap(
    lambda count: st.fixed_dictionaries(
        {**CHOSEN, "per_query": st.just(count), "easy": st.integers(0, count), "fill": st.booleans()}
    )
)
"""Those of samplers of hard and easy negatives."""


def check_triplets(sampled, given_block, easy, definition, settings, *known):
    """Compare triplets with their definition, which takes a query and `easy` random papers or more, in order."""
    drawn = draw(given_block, easy, "easy negatives").papers.tolist()
    expected = [
        definition(query, [paper for paper in papers if paper > 0], SimpleNamespace(**DEFAULTS | settings), *known)
        for query, papers in zip(given_block.queries.tolist(), drawn, strict=True)
    ]
    assert rows_of(sampled) == [row for rows in expected for row in rows]
    assert sum(unserved(sampled).values()) == sum(not rows for rows in expected)


def by_priority(papers, name, query, seed=1):
    """Papers in the order of the hashes that they and the query have for this use."""
    return sorted(papers, key=lambda paper: int(priorities(seed, name, np.array([query]), np.array([paper]))[0]))


def picked(candidates, count, name, query, texts, text_filter):
    """What is picked of candidates {paper: rank} and has a text, in the order of their hashes."""
    allowed = [paper for paper in candidates if text_filter == "after" or paper in texts]
    return [paper for paper in by_priority(allowed, name, query)[:count] if paper in texts]


def triplets_of(query, positives, hard, easy, settings, texts):
    """The triplets of a query: candidates {paper: rank} of positives and hard negatives, easy ones in order."""
    good = picked(positives, settings.per_query, "positives", query, texts, settings.text_filter)
    bad = picked(hard, settings.per_query - settings.easy, "hard negatives", query, texts, settings.text_filter)
    room = settings.per_query - len(bad) if settings.fill and bad else settings.easy
    random = list(easy)[:room]
    mixed = by_priority([*bad, *random], "order of negatives", query)
    if settings.oversample and good:
        good = [good[number % len(good)] for number in range(settings.per_query)]
    rows = [
        (query, p, n, positives[p] or None, hard.get(n) or None if n in bad else None, "hard" if n in bad else "easy")
        for p, n in list(zip(good, mixed, strict=False))[: settings.per_query]
    ]
    return [] if settings.partial == "dropped" and len(rows) < settings.per_query else sorted(rows)


def band_of(ranked, k, within, picked):
    """First and last rank of a band; ranked: (rank, paper, distance)."""
    if within is not None:
        if all(distance <= within for _, _, distance in ranked):
            return 1, 0
        last = max((rank for rank, _, distance in ranked if distance <= within and rank), default=0)
        return max(1, last - picked + 1), last
    return k if isinstance(k, tuple) else (k - picked + 1, k)


def from_neighbours(query, drawn, settings, texts, neighbours):
    """neighbours: {query: papers with distances, the nearest first}; drawn: random papers in order of preference."""
    number, ranked, near = 0, [], dict(neighbours.get(query, ()))
    for paper, distance in near.items():
        counts = settings.text_filter == "after" or paper in texts
        number += counts
        ranked.append((number if counts else 0, paper, distance))
    hard_count = settings.per_query - settings.easy
    first, last = band_of(ranked, settings.k_positive, settings.distance_positive, settings.per_query)
    hard_first, hard_last = band_of(ranked, settings.k_negative, settings.distance_negative, hard_count)
    positives = {paper: rank for rank, paper, _ in ranked if rank and first <= rank <= last}
    hard = {paper: rank for rank, paper, _ in ranked if rank and max(hard_first, last + 1) <= rank <= hard_last}
    easy = [paper for paper in drawn if paper not in near]
    return triplets_of(query, positives, hard if hard_count else {}, easy, settings, texts)


def from_citations(query, drawn, settings, texts, citations, directed):
    """citations: pairs (citing, cited)."""
    steps = citations if directed else citations | {(cited, citing) for citing, cited in citations}
    near = {end for start, end in steps if start == query}
    two_away = {end for start, end in steps if start in near and end != query and end not in near}
    with_text = two_away if settings.text_filter == "after" else two_away & texts
    easy = [paper for paper in drawn if paper not in near | two_away]
    return triplets_of(query, dict.fromkeys(near, 0), dict.fromkeys(with_text, 0), easy, settings, texts)


def from_cocitations(query, drawn, settings, texts, counts):
    """counts: {(paper, other): how often they are cited together}."""
    near = {sum(pair) - query: count for pair, count in counts.items() if query in pair}
    positives = {paper: 0 for paper, count in near.items() if count >= settings.min_count}
    easy = [paper for paper in drawn if paper not in near]
    settings.easy = settings.per_query
    return triplets_of(query, positives, {}, easy, settings, texts)


def links_of(query, citations):
    """Each paper linked with the query, and the intents of the citations between the two, whichever cites the other.

    citations: {(citing, cited): intents}.
    """
    found = {}
    for ends, intents in citations.items():
        if query in ends:
            found.setdefault(sum(ends) - query, set()).update(intents)
    return found


def examples_of(query, citations, drawn, settings, texts, aspects=(None,)):
    """The examples of a query: (aspect, positives, negatives with their kinds); `drawn` has easy negatives in order."""
    links = links_of(query, citations)
    references = {cited for citing, cited in citations if citing == query}
    reached = [(cited, intents) for (citing, cited), intents in citations.items() if citing in references]
    beyond = {paper: [] for paper, _ in reached if paper != query and paper not in links}
    for paper, intents in reached:
        if paper in beyond:
            beyond[paper].append(set(intents))
    easy = [paper for paper in drawn if paper not in links and paper not in beyond]
    examples, lacks_one = [], False
    for number, aspect in enumerate(aspects):
        place = 0 if aspect is None else 1 + [*INTENTS, "miscellaneous"].index(aspect)
        key = int(priorities(1, "seat", np.array([query]), np.array([place])).view(np.int64)[0])
        positives = [paper for paper, intents in links.items() if is_of(intents, aspect) and paper in texts]
        lacks_one |= not positives and aspect in INTENTS
        linked = [paper for paper, intents in links.items() if is_against(intents, aspect) and paper in texts]
        by_any = settings.two_away_by == "any" and aspect != "miscellaneous"
        away = [
            paper
            for paper, ways in beyond.items()
            if paper in texts and (by_any or any(is_against(way, aspect) for way in ways))
        ]
        negatives = [
            *((p, "linked") for p in by_priority(linked, "linked negatives", key)[: settings.linked]),
            *((p, "two-away") for p in by_priority(away, "negatives two citations away", key)[: settings.two_away]),
            *((p, "easy") for p in easy[number * settings.easy : (number + 1) * settings.easy]),
        ]
        if positives and negatives:
            examples.append((aspect, by_priority(positives, "positives", key)[: settings.positives], negatives))
    return [] if settings.complete and lacks_one else examples


def is_of(intents, aspect):
    return aspect is None or (not intents if aspect == "miscellaneous" else aspect in intents)


def is_against(intents, aspect):
    return aspect in INTENTS and bool(intents) and aspect not in intents
