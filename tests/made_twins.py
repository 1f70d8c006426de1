"""Papers with known twins, and hard negatives: works that look like one another and are not one.

Words are made up and follow Zipf's law; abstracts are sentences that begin alike, as those of papers do. Each kind of
copy and of negative comes as often as any other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa
from tests.papers import papers_table

Paper = dict[str, Any]

SYLLABLES = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "al", "en", "or")]
OPENINGS = (
    *("in this paper we present", "we propose a method for", "the results show that", "this study examines the"),
    *("our experiments demonstrate that", "a comparison with", "we find that", "the aim of this study was to"),
    *("it is well known that", "we conclude that", "participants were asked to", "the proposed approach improves"),
)
JOINTS = ("of", "in", "for the", "and", "with", "on the", "by", "under")
FAMILIES = [("".join(Random(n).choices(SYLLABLES, k=3))).capitalize() for n in range(3000)]
UNTELLING = (
    *("Editorial", "Preface", "Book Reviews", "Guest Editorial"),
    *("Introduction", "Letter to the Editor", "Foreword"),
)


@dataclass
class Made:
    """Papers, the work that each is of, and the kind of copy or negative that each comes from."""

    papers: list[Paper] = field(default_factory=list)
    works: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


class Maker:
    def __init__(self, seed: int, words: int = 20_000) -> None:
        self.random = Random(seed)
        spelt = Random(1)
        self.words = ["".join(spelt.choices(SYLLABLES, k=spelt.randint(2, 4))) for _ in range(words)]
        total, self.shares = 0.0, []
        for rank in range(words):
            total += 1 / (rank + 20)
            self.shares.append(total)

    def some(self, count: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.shares, k=count)

    def title(self, count: int) -> str:
        """A title with so many telling words."""
        words = self.some(count)
        for place in range(2, count, 3):
            words[place] = f"{self.random.choice(JOINTS)} {words[place]}"
        return " ".join(words).capitalize()

    def abstract(self, sentences: int | None = None) -> str:
        """Sentences that begin as others do."""
        count = sentences or self.random.randint(5, 11)
        return " ".join(self.sentence() for _ in range(count))

    def sentence(self) -> str:
        """One sentence, with a number now and then."""
        words = self.some(self.random.randint(7, 16))
        words[3] = self.random.choice(JOINTS)
        if self.random.random() < 0.2:
            words.append(f"{self.random.randint(2, 999)}%")
        return f"{self.random.choice(OPENINGS).capitalize()} {' '.join(words)}."

    def paper(self, **changed: Any) -> Paper:
        """A paper of its own; one in five names no authors, one in ten no abstract, one in three no DOI."""
        draw = self.random
        names = [f"{draw.choice('ABCDEGHJKLMNPRST')}. {draw.choice(FAMILIES)}" for _ in range(draw.randint(1, 5))]
        return {
            "title": self.title(draw.choice((4, 5, 6, 7, 8, 9, 10, 11))),
            "abstract": self.abstract() if draw.random() < 0.9 else None,
            "year": draw.randint(1990, 2024),
            "doi": f"10.{draw.randint(1000, 9999)}/{draw.randrange(10**9)}" if draw.random() < 0.67 else None,
            "authors": names if draw.random() < 0.8 else [],
            "venue": f"Journal of {self.title(2)}",
            **changed,
        }


def _other_doi(maker: Maker, paper: Paper, **changed: Any) -> Paper:
    return {**paper, "doi": maker.paper()["doi"], **changed}


def _with_other_marks(title: str) -> str:
    words = title.split()
    return f"<i>{words[0]}</i> &ndash; “{' '.join(words[1:3])}”: {'-'.join(words[3:5])} {' '.join(words[5:])}"


def _cut(maker: Maker, text: str | None) -> str | None:
    return (text or "")[: int(len(text or "") * maker.random.uniform(0.25, 0.8))] or None


def _edited(maker: Maker, text: str | None) -> str | None:
    words = (text or "").split()
    for place in range(4, len(words), 12):
        words[place] = maker.some(1)[0]
    return " ".join(words) or None


Changes = Callable[[Maker, Paper], Paper]
SAME_TITLE: dict[str, Changes] = {
    "same": lambda maker, paper: {},
    "case": lambda maker, paper: {"title": paper["title"].upper() + ".", "year": paper["year"] + 1},
    "marks": lambda maker, paper: {"title": _with_other_marks(paper["title"]), "year": paper["year"] - 1},
    "cut abstract": lambda maker, paper: {"abstract": _cut(maker, paper["abstract"])},
    "without abstract": lambda maker, paper: {
        "abstract": None,
        "year": paper["year"] + maker.random.choice((-1, 0, 1)),
    },
    "edited abstract": lambda maker, paper: {"abstract": _edited(maker, paper["abstract"]), "year": paper["year"] + 1},
    "years later, same abstract": lambda maker, paper: {"year": paper["year"] + 3},
    "without authors": lambda maker, paper: {"authors": [], "year": paper["year"] + 1},
}
"""What a copy has in place of the title, the abstract, the year or the authors; its DOI is another one."""
OTHER_TITLE: dict[str, Changes] = {
    "same DOI": lambda maker, paper: {
        **{"doi": paper["doi"].upper(), "title": paper["title"] + " (extended version)", "abstract": None}
    },
    "retitled": lambda maker, paper: {
        "title": f"{maker.title(2)}: {' '.join(paper['title'].split()[1:])}",
        "year": paper["year"] + 1,
    },
}


def _parts(maker: Maker) -> list[Paper]:
    first = maker.paper(abstract=maker.abstract(8))
    one, two = maker.random.choice((("I", "II"), ("1", "2"), ("A", "B"), ("one", "two")))
    shared = first["abstract"].split(". ")
    second = ". ".join([*shared[:-1], maker.sentence()])
    how = maker.random.choice(("{title}. Part {part}", "{title} {part}: " + maker.title(3), "{title}, part {part}"))
    return [
        {**first, "title": how.format(title=first["title"], part=one)},
        _other_doi(maker, first, title=how.format(title=first["title"], part=two), abstract=second),
    ]


def _yearly(maker: Maker) -> list[Paper]:
    first, name = maker.paper(authors=[], abstract=maker.abstract(8)), maker.title(5)
    years = (first["year"], first["year"] + 1, first["year"] + 2)
    return [_other_doi(maker, first, title=f"{name}: annual report {year}", year=year) for year in years]


def _untelling(maker: Maker) -> list[Paper]:
    title = maker.random.choice(UNTELLING)
    first = maker.paper(title=title, abstract=None)
    same_editor = maker.random.random() < 0.5
    authors = first["authors"] if same_editor else maker.paper()["authors"]
    return [first, maker.paper(title=title, abstract=None, authors=authors, year=first["year"])]


def _correction(maker: Maker) -> list[Paper]:
    paper = maker.paper()
    title = maker.random.choice(("Correction to: {}", "Erratum: {}", "Comment on “{}”", "{} (Corrigendum)"))
    abstract = maker.random.choice((None, paper["abstract"]))
    return [paper, _other_doi(maker, paper, title=title.format(paper["title"]), abstract=abstract)]


def _two_corrections(maker: Maker) -> list[Paper]:
    paper = maker.paper(title="Correction to: " + maker.title(7), abstract=None)
    return [paper, _other_doi(maker, paper, year=paper["year"] + 1)]


def _short_title(maker: Maker) -> list[Paper]:
    title, paper = maker.title(maker.random.choice((1, 2, 3, 4, 5))), maker.paper()
    later = maker.paper(year=paper["year"] + maker.random.choice((0, 1, 4)))
    return [{**paper, "title": title}, {**later, "title": title}]


def _alike(maker: Maker) -> list[Paper]:
    """Short titles that come again after years, and abstracts that share two sentences of six."""
    title, sentences = f"{maker.title(maker.random.choice((1, 2)))} revisited", [maker.sentence() for _ in range(10)]
    first = maker.paper(title=title, abstract=" ".join(sentences[:6]), authors=[])
    year = first["year"] + maker.random.randint(0, 9)
    return [first, maker.paper(title=title, abstract=" ".join(sentences[4:]), authors=[], year=year)]


def _years_apart(maker: Maker) -> list[Paper]:
    paper = maker.paper(title=maker.title(maker.random.choice((4, 5, 6))), abstract=maker.abstract())
    later = paper["year"] + maker.random.randint(3, 12)
    authors = maker.random.choice((paper["authors"], maker.paper()["authors"]))
    return [paper, _other_doi(maker, paper, abstract=maker.abstract(), year=later, authors=authors)]


def _wrong_abstract(maker: Maker) -> list[Paper]:
    paper = maker.paper(abstract=maker.abstract())
    return [paper, maker.paper(abstract=paper["abstract"], year=paper["year"])]


def _proceedings(maker: Maker) -> list[Paper]:
    notice = maker.abstract(4)
    return [maker.paper(abstract=notice, year=2015) for _ in range(8)]


def _one_template(maker: Maker) -> list[Paper]:
    words, title = maker.abstract(4).split(), maker.title(6)

    def filled() -> Paper:
        text = [f"{maker.random.randint(1000, 9999)}" if place % 9 == 4 else word for place, word in enumerate(words)]
        return maker.paper(title=title, abstract=" ".join(text), year=2010, authors=[])

    return [filled(), filled() | {"title": f"{title} {maker.title(2)}"}]


def _common_title(maker: Maker) -> list[Paper]:
    title = maker.title(5)
    return [maker.paper(title=title, abstract=None, authors=[], year=2000 + n) for n in range(8)]


def _shared_doi(maker: Maker) -> list[Paper]:
    first = maker.paper(doi="10.5555/" + str(maker.random.randrange(10**9)))
    return [first, maker.paper(doi=first["doi"], year=first["year"])]


NEGATIVES: dict[str, Callable[[Maker], list[Paper]]] = {
    "parts": _parts,
    "yearly reports": _yearly,
    "editorials": _untelling,
    "corrections": _correction,
    "two corrections": _two_corrections,
    "short titles": _short_title,
    "short titles, abstracts alike": _alike,
    "one title, years apart": _years_apart,
    "wrong abstract": _wrong_abstract,
    "notice for an abstract": _proceedings,
    "one template": _one_template,
    "common title": _common_title,
    "chapters with the DOI of a book": _shared_doi,
}


def made_twins(each: int, seed: int = 1) -> Made:
    """So many works with a copy of each kind, sets of each kind of negatives, and as many papers by themselves."""
    maker, made = Maker(seed), Made()

    def add(kind: str, papers: Iterable[Paper], *, one_work: bool) -> None:
        for number, paper in enumerate(papers):
            is_new = number == 0 or not one_work
            made.papers.append(paper)
            made.works.append(len(made.papers) if is_new else made.works[-1])
            made.kinds.append(kind)

    for _ in range(each):
        for kind, changes in (SAME_TITLE | OTHER_TITLE).items():
            needs = {"abstract": maker.abstract()} if kind in ("retitled", "years later, same abstract") else {}
            needs |= {"doi": f"10.1234/x{maker.random.randrange(10**9)}"} if kind == "same DOI" else {}
            paper = maker.paper(**needs)
            changed = changes(maker, paper)
            copy = paper | changed if "doi" in changed else _other_doi(maker, paper, **changed)
            add(kind, (paper, copy), one_work=True)
        for kind, negatives in NEGATIVES.items():
            add(kind, negatives(maker), one_work=False)
        add("alone", (maker.paper() for _ in range(10)), one_work=False)
    ids = list(range(1, len(made.papers) + 1))
    maker.random.shuffle(ids)
    for paper, corpusid in zip(made.papers, ids, strict=True):
        paper["corpusid"] = corpusid
    return made


def table_of(papers: Iterable[Paper]) -> pa.Table:
    rising = sorted(papers, key=lambda paper: paper["corpusid"])
    texts = {paper["corpusid"]: (paper["title"], paper["abstract"]) for paper in rising}
    names = ("year", "doi", "authors", "venue")
    return papers_table(texts, **{name: [paper.get(name) for paper in rising] for name in names})


def pairs_of(groups: Mapping[int, int]) -> set[tuple[int, int]]:
    """The pairs of papers, the smaller id first, that are in one group; `groups` has the group of each paper."""
    members = defaultdict(list)
    for paper, group in groups.items():
        members[group].append(paper)
    return {pair for papers in members.values() for pair in combinations(sorted(papers), 2)}
