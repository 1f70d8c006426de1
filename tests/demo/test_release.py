"""What a generated release holds: the format of a real one, its flaws, and citations that follow topics."""

import json
import re
from collections import Counter, defaultdict
from itertools import combinations

import pytest

from cocite.core.errors import InputError
from cocite.demo.literature import FINDINGS, METHODS
from cocite.demo.release import generate_release

MARKED_TWICE = r"\[\d+[,–] ?\d+\]\.$"
DATASETS = ["papers", "abstracts", "citations"]


def _types(rows):
    types = defaultdict(set)
    for row in rows:
        for name, value in row.items():
            types[name].add(type(value).__name__)
    return types


def _citations(rows):
    return {(row["citingcorpusid"], row["citedcorpusid"]) for row in rows if row["citedcorpusid"] is not None}


@pytest.mark.parametrize("dataset", DATASETS)
def test_files_fields_and_types_are_those_of_a_real_release(dataset, release, shared, read_rows):
    names = sorted(path.name for path in (release / dataset).glob("*.gz"))
    assert names == [f"20260106_000000_0000{shard}_{dataset}.gz" for shard in range(3)]
    assert "generated data" in (release / dataset / "README.txt").read_text()
    real = read_rows(shared / "data" / "releases" / "synergy" / dataset)
    sample = read_rows(shared / "data" / "s2ag-samples" / dataset)
    generated = read_rows(release / dataset)
    assert {tuple(row) for row in generated} == {tuple(row) for row in real}
    for name in {"externalids", "openaccessinfo"} & set(real[0]):
        assert list(generated[0][name]) == list(real[0][name])
    allowed, also = _types(real), _types(sample if dataset != "citations" else [])
    flaws = {name: {"NoneType"} for name in ("citedcorpusid", "title", "year")}
    flaws |= {name: {"list"} for name in ("contexts", "intents")}
    for name, types in _types(generated).items():
        assert types <= allowed[name] | also[name] | flaws.get(name, set()), name


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others_and_shards_change_no_row(tmp_path, read_rows):
    for name, seed, shards in (("first", 1, 2), ("second", 1, 2), ("third", 2, 2), ("fourth", 1, 4)):
        generate_release(tmp_path / name, release="2026-01-06", papers=200, topics=6, shards=shards, seed=seed)
    files = {
        name: {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("first", "second", "third")
    }
    assert files["first"] == files["second"]
    assert all(files["first"][path] != files["third"][path] for path in files["first"] if path.endswith(".gz"))
    for dataset in DATASETS:
        two, four = (sorted(map(json.dumps, read_rows(tmp_path / name / dataset))) for name in ("first", "fourth"))
        assert two == four


def test_the_counts_of_release_json_are_true(release, papers, abstracts, citations):
    assert json.loads((release / "release.json").read_text()) == {
        "release_id": "2026-01-06",
        "datasets": DATASETS,
        "papers": 1200,
        "abstracts": len({row["corpusid"] for row in abstracts}),
        "citations": len(_citations(citations)),
    }


def test_the_counts_of_each_paper_are_true(papers, citations):
    citing, cited = (Counter(ends) for ends in zip(*_citations(citations), strict=True))
    influential = Counter(cited for _, cited in _citations(row for row in citations if row["isinfluential"]))
    for paper in papers:
        counts = (paper["referencecount"], paper["citationcount"], paper["influentialcitationcount"])
        assert counts == tuple(counter[paper["corpusid"]] for counter in (citing, cited, influential))


def test_papers_have_about_thirteen_references_and_never_cite_themselves_or_later_ones(papers, citations):
    years = {row["corpusid"]: row["year"] for row in papers if row["year"] is not None}
    citations = _citations(citations)
    assert 12 <= len(citations) / 1200 <= 15
    for citing, cited in citations:
        assert citing != cited
        assert years.get(cited, 0) <= years.get(citing, 9999)


@pytest.mark.long
def test_citations_stay_within_fields_and_journals_more_often_than_chance(papers, citations):
    fields = {row["corpusid"]: row["s2fieldsofstudy"] for row in papers if row["s2fieldsofstudy"]}
    main = {key: known[0]["category"] for key, known in fields.items()}
    journal = {row["corpusid"]: row["venue"] for row in papers if row["venue"].startswith("Journal of ")}
    for group in (main, journal):
        ends = [(group[a], group[b]) for a, b in _citations(citations) if {a, b} <= set(group)]
        within = sum(a == b for a, b in ends) / len(ends)
        sizes = Counter(group.values())
        chance = sum(size * size for size in sizes.values()) / len(group) ** 2
        assert within > 2 * chance


def test_most_papers_with_five_references_are_cocited_twice_with_five_others(papers, citations):
    papers = {row["corpusid"] for row in papers}
    cited = defaultdict(set)
    for citing, other in _citations(citations):
        cited[citing].add(other)
    counts = Counter(pair for others in cited.values() for pair in combinations(sorted(others & papers), 2))
    partners = Counter(paper for pair, count in counts.items() if count >= 2 for paper in pair)
    queries = [paper for paper in papers if len(cited[paper] & papers) >= 5]
    assert sum(partners[query] >= 5 for query in queries) > len(queries) / 2


def test_a_release_has_the_flaws_of_real_ones(papers, abstracts, citations):
    ids = {row["corpusid"] for row in papers}
    assert 0.03 < 1 - len(abstracts) / len(papers) < 0.09
    assert {row["title"] for row in papers} >= {None, ""}
    assert sum(not row["title"] for row in papers) < 0.02 * len(papers)
    assert 0.10 < sum(row["citedcorpusid"] is None for row in citations) / len(citations) < 0.20
    assert all(row["citingcorpusid"] in ids for row in citations)
    assert {cited for _, cited in _citations(citations)} - ids
    assert max(ids) - min(ids) > 2 * len(ids)
    assert len({row["citationid"] for row in citations}) == len(citations)


def test_copies_of_a_citation_stand_in_several_shards_and_disagree(release, read_rows):
    shards, influence = defaultdict(set), defaultdict(set)
    for path in sorted((release / "citations").glob("*.gz")):
        for row in read_rows(path):
            shards[row["citingcorpusid"], row["citedcorpusid"]].add(path.name)
            influence[row["citingcorpusid"], row["citedcorpusid"]].add(row["isinfluential"])
    repeated = [pair for pair in shards if pair[1] is not None and len(shards[pair]) > 1]
    assert len(repeated) > 0.05 * len(shards)
    assert any(len(influence[pair]) == 2 for pair in repeated)


def test_intents_are_lists_aligned_with_contexts_and_null_in_some_rows(citations):
    with_contexts = [row for row in citations if row["contexts"] is not None]
    assert len(citations) / 2 < len(with_contexts) < 0.75 * len(citations)
    assert all((row["contexts"] is None) == (row["intents"] is None) for row in citations)
    assert all(len(row["contexts"]) == len(row["intents"]) for row in with_contexts)
    intents = [intent for row in with_contexts for intent in row["intents"]]
    assert None in intents
    assert {word for intent in intents if intent for word in intent} == {"background", "methodology", "result"}


def test_some_sentences_cite_several_papers_of_a_topic_and_stand_in_the_record_of_each(citations):
    cited = defaultdict(set)
    for row in citations:
        for sentence in row["contexts"] or []:
            cited[row["citingcorpusid"], sentence].add(row["citedcorpusid"])
    together = {key: papers for key, papers in cited.items() if len(papers) > 1 and None not in papers}
    marked = [sentence for _, sentence in together if re.search(MARKED_TWICE, sentence)]
    assert len(marked) > 0.9 * len(together) > 0.02 * len(cited)


def test_no_placeholder_is_left_in_a_text(papers, abstracts):
    texts = [row["title"] or "" for row in papers] + [row["abstract"] for row in abstracts]
    assert not [text for text in texts if re.search(r"[{}]|  ", text)]
    assert all(7 <= row["abstract"].count(".") <= 9 for row in abstracts)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"release": "January"}, "--release"), ({"topics": 67}, "--topics"), ({"papers": 0}, "--papers")],
)
def test_options_out_of_range_are_named(wrong, message, tmp_path):
    options = {"release": "2026-01-06", "papers": 50, "topics": 4, "shards": 1, "seed": 1} | wrong
    with pytest.raises(InputError, match=message):
        generate_release(tmp_path / "release", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_intents_say_which_methods_and_findings_papers_share(tmp_path, read_rows):
    sizes = {"papers": 600, "topics": 12, "shards": 1}
    generate_release(tmp_path / "release", release="2026-01-06", **sizes, seed=3)
    abstracts = {row["corpusid"]: row["abstract"] for row in read_rows(tmp_path / "release/abstracts")}

    def named(paper, words):
        return {number for number, names in enumerate(words) if any(name in abstracts[paper] for name in names)}

    assert all(len(named(paper, words)) == 1 for paper in abstracts for words in (METHODS, FINDINGS))
    rows = [row for row in read_rows(tmp_path / "release/citations") if row["intents"] is not None]
    # The intent of a sentence that cites several papers was not recognised.
    rows = [row for row in rows if not re.search(MARKED_TWICE, row["contexts"][0])]
    checked = Counter[tuple[str, bool]]()
    for row in rows:
        ends = row["citingcorpusid"], row["citedcorpusid"]
        if not set(ends) <= abstracts.keys():
            continue
        for intent, words in (("methodology", METHODS), ("result", FINDINGS)):
            one, other = (named(paper, words) for paper in ends)
            has_intent = intent in (row["intents"][0] or [])
            assert has_intent == (one == other)
            checked[intent, has_intent] += 1
    assert min(checked.values()) > 100
    assert len(checked) == 4
