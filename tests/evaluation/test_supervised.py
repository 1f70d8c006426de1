"""Classification and regression: against scikit-learn and SciPy called directly, and on planted structure."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import LinearSVC, LinearSVR

from cocite.config.benchmarks import TASKS
from cocite.config.tasks import FewShot
from cocite.core.errors import InputError
from cocite.evaluation.linear_models import Protocol, fit_regression
from cocite.evaluation.metrics import f1_statistic
from cocite.evaluation.supervised import Examples, feasible_stages, few_shot_samples, score_supervised

SEED = 3
GRID = (0.01, 0.1, 1, 10, 100)


def examples(points, labels, train=120):
    return Examples(train=points[:train], train_labels=labels[:train], test=points[train:], test_labels=labels[train:])


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(180, 12))


def score(name, given, mode="compat", seed=SEED):
    found = score_supervised(Protocol(task=TASKS[name], seed=seed, mode=mode), given)
    return found.metric, found.value


def best_c(points, targets, machine=None, folds=None, grid=GRID):
    """The C of the best 3-fold score of scikit-learn's model; a classifier unless another machine is given."""
    machine = machine or LinearSVC(fit_intercept=False, random_state=1)
    search = GridSearchCV(machine, {"C": grid}, cv=folds or StratifiedKFold(3))
    return search.fit(points, targets).best_params_["C"]


def test_labels_that_no_test_document_has_or_is_given_are_in_neither_score_nor_comparison(points):
    """Scikit-learn's macro F1 over indicators would count them as 0."""
    has = points[:, :2] > 0
    labels = [[name for name, is_so in zip("ab", row, strict=True) if is_so] for row in has]
    labels[0] = [*labels[0], "only in training"]
    given = examples(np.column_stack([points, np.full(180, 3.0)]), labels)  # a bias, so that it is not predicted
    found = score_supervised(Protocol(task=replace(TASKS["fos"], few_shot=()), seed=SEED, mode="compat"), given)
    compared = f1_statistic(given.test_labels, found.predicted)(np.ones((1, 60)))
    assert {name for names in found.predicted for name in names} == {"a", "b"}
    assert found.value == pytest.approx(compared[0])
    assert found.value > 90


def test_classes_are_learned_with_the_c_that_has_the_best_accuracy(points):
    draw = np.random.default_rng(1)
    classes = (points[:, 0] + draw.normal(size=180) > 0).astype(int) + (points[:, 1] > 0.5)
    given = examples(points, [[str(name)] for name in classes])
    ordered = given.reordered(SEED, "drsm")
    target = np.array([int(label) for [label] in ordered.train_labels])
    machine = LinearSVC(C=best_c(ordered.train, target), fit_intercept=False)
    predicted = machine.fit(ordered.train, target).predict(ordered.test)
    expected = 100 * f1_score(classes[120:], predicted, average="macro")
    assert score("drsm", given) == ("f1_macro", pytest.approx(expected))


def test_regression_is_learned_with_the_c_that_has_the_best_r2():
    draw = np.random.default_rng(2)
    points = draw.normal(size=(2120, 12))
    target = points[:, 0] + 0.5 * draw.normal(size=2120)
    given = examples(points, [[repr(float(value))] for value in target])
    ordered = given.reordered(SEED, "cite_count")
    train = np.array([float(label) for [label] in ordered.train_labels])
    machine = LinearSVR(epsilon=0.0, fit_intercept=False, random_state=1)
    machine.set_params(C=best_c(ordered.train, train, machine, KFold(3), 10.0 ** np.arange(-4, 3)))
    predicted = machine.fit(ordered.train, train).predict(ordered.test)
    expected = 100 * kendalltau(target[120:], predicted).statistic
    assert score("cite_count", given) == ("kendall_tau", pytest.approx(expected, abs=0.2))


@pytest.mark.parametrize("mode", ["compat", "correct", "sklearn"])
def test_planted_structure_scores_high_and_noise_scores_chance(points, mode):
    noise = np.random.default_rng(9).normal(size=points.shape)
    labels = {
        "biomimicry": [[str(int(value > 0))] for value in points[:, 0]],
        "drsm": [[str(number)] for number in points[:, :3].argmax(axis=1)],
        "fos": [[name for name, value in zip("abc", row, strict=False) if value > 0] for row in points],
        "pub_year": [[repr(float(value))] for value in points[:, 0]],
    }
    for name, of_documents in labels.items():
        assert score(name, examples(points, of_documents), mode)[1] > 85, name
        assert score(name, examples(noise, of_documents), mode)[1] < 68, name


def test_only_correct_finds_what_needs_an_intercept_and_only_compat_depends_on_the_scale_of_an_input(points):
    years = examples(points, [[repr(float(2015 + value))] for value in points[:, 0]])
    assert score("pub_year", years, "compat")[1] < 40
    assert score("pub_year", years, "correct")[1] > 90
    labels = [[str(number)] for number in (points[:, :3] + points[:, 3:6]).argmax(axis=1)]
    scaled = points * np.array([1e-3, *[1.0] * 11])
    assert score("drsm", examples(scaled, labels), "correct") == score("drsm", examples(points, labels), "correct")
    assert score("drsm", examples(scaled, labels), "compat") != score("drsm", examples(points, labels), "compat")


def test_the_evaluation_seed_changes_the_folds_and_nothing_else_does(points):
    labels = [[str(int(value > 0))] for value in points[:, 0] + np.random.default_rng(4).normal(size=180)]
    given = examples(points, labels)
    assert score("biomimicry", given, seed=1) == score("biomimicry", given, seed=1)
    assert given.reordered(1, "x").train_labels != given.reordered(2, "x").train_labels
    assert sorted(given.reordered(1, "x").train_labels) == sorted(given.train_labels)


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("pub_year", [["2001.0"], ["2002.0"]], "only 2 training documents"),
        ("drsm", [["a"], ["b"], ["c"], ["c"]], "only 2 training documents"),
        ("fos", [["a"], ["b"], ["a", "b"], ["a"]], "only 2 training documents"),
        ("biomimicry", [["1"]] * 9, "only one class"),
    ],
)
def test_fewer_documents_than_folds_and_one_class_cannot_be_learned(points, name, labels, message):
    given = examples(points[: len(labels) + 1], [*labels, labels[0]], train=len(labels))
    with pytest.raises(InputError, match=f"{name} has {message}"):
        score(name, given)


def test_documents_that_all_have_different_labels_can_be_learned_and_a_constant_correlates_with_nothing(points):
    labels = [["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"]]
    assert score("fos", examples(points[:7], [*labels, ["a"]], train=6))[0] == "f1_macro"
    given = examples(np.zeros((30, 2)), [[repr(float(value))] for value in range(30)], train=20)
    assert score("pub_year", given) == ("kendall_tau", 0.0)


def test_regression_ignores_the_units_of_the_target_in_correct_mode(points):
    protocol = Protocol(task=TASKS["cite_count"], seed=1, mode="correct")
    near = fit_regression(protocol, points, points[:, 0]).outputs(points)
    far = fit_regression(protocol, points, 2000 + 100 * points[:, 0]).outputs(points)
    assert far == pytest.approx(2000 + 100 * near, abs=1e-4)


def released(task, given):
    """What SciRepEval's code predicts without lightning: scikit-learn's machines, but for C as they are."""
    ordered, classes = given.reordered(SEED, task.name), [float(name) for [name] in given.test_labels]
    known = np.array([float(name) for [name] in ordered.train_labels])
    machine, grid = (LinearSVR, np.logspace(-4, 2, 7)) if task.kind == "regression" else (LinearSVC, GRID)
    search = GridSearchCV(machine(random_state=SEED), {"C": grid}, cv=3).fit(ordered.train, known)
    return np.array(classes), search.predict(ordered.test)


@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_in_the_mode_sklearn_classes_and_numbers_are_those_of_scikit_learn_as_it_is(points, offset):
    moved = points * np.geomspace(30, 0.1, 12) + offset
    noise = np.random.default_rng(1).normal(size=180)
    few = replace(TASKS["drsm"], few_shot=())
    classes = examples(moved, [[str(name)] for name in np.digitize(points[:, 0] + points[:, 1] + noise, [-1, 1.5])])
    truth, predicted = released(few, classes)
    assert score("drsm", classes, "sklearn")[1] == pytest.approx(100 * f1_score(truth, predicted, average="macro"))
    numbers = examples(moved, [[repr(float(value))] for value in 2000 + 5 * points[:, 3] + noise])
    truth, predicted = released(TASKS["pub_year"], numbers)
    assert score("pub_year", numbers, "sklearn")[1] == pytest.approx(100 * kendalltau(truth, predicted).statistic)
    assert score("pub_year", numbers, "sklearn") != score("pub_year", numbers, "compat")
    assert score("pub_year", numbers, "sklearn") != score("pub_year", numbers, "correct")


def test_in_the_mode_sklearn_each_label_has_scikit_learns_machine_and_one_that_none_has_is_given_to_none(points):
    draw = np.random.default_rng(2)
    has = points[:, :4] + 0.4 * draw.normal(size=(180, 4)) > [0, 0.5, 1, 99]
    labels = [[name for name, is_so in zip("abcd", row, strict=True) if is_so] for row in has]
    labels[170] = ["d"]  # of no document to train on
    given = examples(points + 0.5, labels)
    ordered = given.reordered(SEED, "fos")
    known = np.array([[name in names for name in "abcd"] for names in ordered.train_labels]) * 1
    machine = GridSearchCV(LinearSVC(max_iter=10_000, random_state=SEED), {"C": GRID}, cv=3)
    expected = [machine.fit(ordered.train, column).predict(ordered.test) for column in known[:, :3].T]
    task = replace(TASKS["fos"], few_shot=())
    found = score_supervised(Protocol(task=task, seed=SEED, mode="sklearn", threads=2), given).predicted
    assert [[name in names for name in "abcd"] for names in found] == [[*row, 0] for row in zip(*expected, strict=True)]


def test_in_the_mode_sklearn_few_documents_and_rare_classes_are_no_obstacle(points, recwarn):
    few = examples(points[:9], [["1"], ["0"], ["0"], ["0"], ["2"], ["0"], ["1"], ["0"], ["0"]], train=7)
    assert 0 <= score("drsm", few, "sklearn")[1] <= 100
    rare = examples(points[:9], [["a"], ["b"], ["b"], ["b"], ["a", "c"], ["b"], ["b"], ["b"], ["a"]], train=7)
    assert 0 <= score("fos", rare, "sklearn")[1] <= 100
    assert [str(each.message) for each in recwarn] == []


def test_few_shot_folds_are_disjoint_and_stratified():
    classes = np.array(["a"] * 30 + ["b"] * 20)
    samples = list(few_shot_samples(FewShot(size=10, runs=4), classes, 1, "drsm"))
    assert len(samples) == 4
    assert len(set(np.concatenate(samples).tolist())) == 40
    assert all(sorted(classes[sample].tolist()) == ["a"] * 6 + ["b"] * 4 for sample in samples)


def test_few_shot_samples_hold_so_many_documents_of_each_label():
    classes = np.random.default_rng(1).integers(0, 2, size=(60, 3))
    first, second = few_shot_samples(FewShot(size=5, runs=2), classes, 1, "fos")
    other, _ = few_shot_samples(FewShot(size=5, runs=2), classes, 2, "fos")
    assert (classes[first].sum(axis=0) >= 5).all()
    assert len(first) == len(set(first.tolist())) <= 15
    assert first.tolist() not in (second.tolist(), other.tolist())


def test_few_shot_stages_need_documents_for_all_their_runs():
    stages = [FewShot(size=10, runs=5), FewShot(size=5, runs=10)]
    assert feasible_stages(stages, np.array(["a", "b"] * 25)) == stages
    assert feasible_stages(stages, np.array(["a", "b"] * 24)) == ()
    assert feasible_stages(stages, np.array(["a"] * 46 + ["b"] * 4)) == ()
    assert feasible_stages(stages, np.eye(2, dtype=int)[[0] * 41 + [1] * 9]) == ()


def test_the_full_task_counts_as_much_as_all_few_shot_stages_together():
    draw = np.random.default_rng(0)
    points = draw.normal(size=(3300, 4))
    labels = [[str(int(value > 0))] for value in points[:, 0] + draw.normal(size=3300)]
    given = examples(points, labels, train=3200)
    ordered = given.reordered(SEED, "biomimicry")
    classes = np.array([label for [label] in ordered.train_labels])
    truth = [label for [label] in given.test_labels]
    stages = []
    for size, runs in ((64, 50), (16, 100)):
        folds = [fold for _, fold in StratifiedKFold(-(-3200 // size)).split(points[:3200], classes)][:runs]
        model = LinearSVC(fit_intercept=False, random_state=1)
        found = [model.fit(ordered.train[fold], classes[fold]).predict(given.test) for fold in folds]
        stages.append(np.mean([f1_score(truth, predicted, pos_label="1") for predicted in found]))
    whole = LinearSVC(C=best_c(ordered.train, classes), fit_intercept=False).fit(ordered.train, classes)
    full = f1_score(truth, whole.predict(given.test), pos_label="1")
    metric, value = score("biomimicry", given)
    assert metric == "f1_with_few_shot"
    assert value == pytest.approx(100 * (full / 2 + stages[0] / 4 + stages[1] / 4), abs=0.02)
