"""Learned sums of words."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.baselines.tables import embedded, train
from tests.rows import write_rows

from cocite.baselines import summed_words
from cocite.baselines.methods.citeomatic import SummedWords
from cocite.baselines.steps import Sources
from cocite.baselines.summed_words import Learner, Sums, Words
from cocite.core.errors import InputError
from cocite.core.tables.files import read_table

SMALL = SummedWords(
    kind="citeomatic", triplets="set", dimension=8, min_count=2, nearest=3, epochs=6, batch_size=16, lr=0.05
)
TOPICS = (("graph", "vertex", "clique"), ("protein", "enzyme", "cell"), ("treaty", "senate", "vote"))


def a_set(folder: Path, seed: int = 0) -> Sources:
    """Papers of three topics with words of their own, each paper's positives of its topic."""
    random = np.random.default_rng(seed)
    topic = {paper: paper % 3 for paper in range(60)}
    texts = {paper: " ".join(random.choice(TOPICS[of], 2)) for paper, of in topic.items()}
    rows = [(paper, text, text) for paper, text in texts.items()]
    write_rows(folder / "documents" / "0.parquet", "training_documents", "corpusid title abstract", rows)
    examples = []
    for paper, of in topic.items():
        near = [other for other in topic if other != paper and topic[other] == of]
        far = [other for other in topic if topic[other] != of]
        drawn = (random.choice(some, count, replace=False).tolist() for some, count in ((near, 2), (far, 3)))
        examples.append((paper, *drawn))
    path = write_rows(folder / "examples.parquet", "training_examples", "query positives negatives", examples)
    return Sources(examples=path, texts=folder / "documents")


def test_a_document_is_the_sum_of_its_fields_which_are_sums_of_words():
    model = Sums(3, 2)
    with torch.no_grad():
        model.directions.copy_(torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]]))
        model.weights.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        model.fields.copy_(torch.tensor([1.0, 0.5]))
    # The title has the words 0 and 1, the abstract 1 and 1; the second document has no word at all.
    words = Words(numbers=torch.tensor([0, 1, 1, 1]), starts=torch.tensor([0, 2, 4, 4, 4]))
    title = np.array([1.0, 3.0]) / 10**0.5
    expected = title + 0.5 * np.array([0.0, 1.0])
    found = model(words).detach().numpy()
    assert found[0] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert (found[1] == 0).all()


def test_words_of_one_topic_come_together_and_a_document_without_a_known_word_has_no_vector(tmp_path):
    model = train(SMALL, tmp_path, a_set(tmp_path))
    topics = {word: topic for topic, some in enumerate(TOPICS) for word in some}
    texts = {word: (word.title(), None) for word in topics} | {"lost": ("the xylophone", None)}
    found = embedded(SMALL, texts, tmp_path / "vectors.parquet", model=model)
    assert found.keys() == topics.keys()
    alike = {True: [], False: []}
    for one, other in combinations(topics, 2):
        alike[topics[one] == topics[other]].append(float(found[one] @ found[other]))
    assert min(alike[True]) > max(alike[False])


def test_a_killed_training_ends_as_one_that_was_not(tmp_path, monkeypatch):
    sources = a_set(tmp_path)
    whole = (train(SMALL, tmp_path / "whole", sources) / "weights.safetensors").read_bytes()
    save = Learner.save

    def killed(learner, state, epochs):
        save(learner, state, epochs)
        if epochs == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Learner, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        train(SMALL, tmp_path / "killed", sources)
    monkeypatch.undo()
    epochs = []
    monkeypatch.setattr(Learner, "save", lambda learner, state, count: epochs.append(count))
    assert (train(SMALL, tmp_path / "killed", sources) / "weights.safetensors").read_bytes() == whole
    assert epochs == [5, 6]


def test_a_negative_is_near_and_no_positive(tmp_path):
    sources = a_set(tmp_path)
    known = summed_words.known_words(sorted(sources.texts.glob("*.parquet")), 2)
    ids, words = summed_words.read_words(sorted(sources.texts.glob("*.parquet")), known)
    examples = summed_words.read_examples(sources.examples, ids)
    torch.manual_seed(0)
    learner = Learner(Sums(len(known), 8), words, examples, SMALL, seed=3)
    near = learner._near(np.random.default_rng(0))
    vectors = learner.model(words).detach().numpy()
    for query, paper in zip(examples.queries.tolist(), near.tolist(), strict=True):
        positives = set(examples.positives[examples.queries == query].tolist())
        left = [other for other in range(len(vectors)) if other != query and other not in positives]
        third = sorted((float(vectors[query] @ vectors[other]) for other in left), reverse=True)[SMALL.nearest - 1]
        assert paper in left
        assert vectors[query] @ vectors[paper] >= third - 1e-6


def test_pairs_of_a_set_without_negatives_get_random_documents(tmp_path):
    sources = a_set(tmp_path)
    rows = read_table(sources.examples, "training_examples").to_pylist()
    pairs = [(row["query"], row["positives"], []) for row in rows]
    path = write_rows(tmp_path / "pairs.parquet", "training_examples", "query positives negatives", pairs)
    drawn = summed_words.read_examples(path, np.arange(60)).draw_negatives(np.random.default_rng(1))
    assert len(drawn) == 120
    assert len(drawn.unique()) > 40


def test_words_that_are_too_rare_are_refused(tmp_path):
    rare = SMALL.model_copy(update={"min_count": 1000})
    with pytest.raises(InputError, match="no word is in 1000 documents of the set; lower min_count"):
        train(rare, tmp_path, a_set(tmp_path))
