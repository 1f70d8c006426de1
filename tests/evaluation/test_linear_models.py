"""The linear models against scikit-learn's, and their solvers against what defines the least objective."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from cocite.config.benchmarks import TASKS
from cocite.evaluation.linear_models import (
    Protocol,
    absolute_errors,
    fit_classes,
    fit_labels,
    fit_regression,
    hinge,
    squared_hinge,
)
from cocite.evaluation.solvers import GAP, GAP_OF_NUMBERS, ROUNDING, path, path_of_few

GRID = (0.01, 1.0, 100.0)
LOSSES = {"squared hinge": squared_hinge, "hinge": hinge, "absolute errors": absolute_errors}
SHAPES = st.tuples(st.integers(4, 40), st.integers(1, 12), st.integers(0, 10_000))

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def drawn(shape):
    """Inputs whose axes differ in length as those of embeddings do, and targets that follow them in part."""
    documents, dimension, seed = shape
    draw = np.random.default_rng(seed)
    inputs = draw.normal(size=(documents, dimension)) * 3.0 ** -np.arange(dimension) + draw.normal(size=dimension)
    return inputs, inputs @ draw.normal(size=dimension) + draw.normal(size=documents)


def drawn_for(name, shape):
    """Inputs and targets, numbers for absolute errors and −1 or 1 for the others."""
    inputs, values = drawn(shape)
    return inputs, values if name == "absolute errors" else np.where(values > np.median(values), 1.0, -1.0)


def objective(name, weights, inputs, targets, c):
    outputs = inputs @ weights
    short = np.maximum(0, 1 - targets * outputs)
    losses = {"squared hinge": short**2, "hinge": short, "absolute errors": np.abs(targets - outputs)}
    return weights @ weights / 2 + c * losses[name].sum()


def liblinear(name, c):
    """scikit-learn's model, given as many sweeps as it needs."""
    patient = {"C": c, "fit_intercept": False, "tol": 1e-8, "max_iter": 200_000, "random_state": 1}
    if name == "absolute errors":
        return LinearSVR(**patient)
    return LinearSVC(loss=name.replace(" ", "_"), **patient)


def rounding(weights, inputs, c):
    """How far outputs move the objective if ROUNDING is added to products of fewer documents than dimensions: it is
    what they lose by its share of the dual variables α, of which the weights are Xᵀα."""
    duals = np.linalg.lstsq(inputs.T, weights, rcond=None)[0]
    return c * ROUNDING * np.square(inputs).sum(axis=1).mean() * np.abs(duals).sum() * (len(inputs) < inputs.shape[1])


@pytest.mark.parametrize("name", LOSSES)
@given(shape=SHAPES)
@example(shape=(4, 9, 6838))
def test_no_weights_that_scikit_learn_finds_are_better_by_more_than_the_gap(name, shape):
    inputs, targets = drawn_for(name, shape)
    loss = LOSSES[name](targets[:, None])
    for c, found in zip(GRID, path(inputs, loss, GRID), strict=True):
        other = np.ravel(liblinear(name, c).fit(inputs, targets).coef_)
        reached, least = (objective(name, weights, inputs, targets, c) for weights in (found[:, 0], other))
        assert reached * (1 - loss.gap) <= least + rounding(found[:, 0], inputs, c) + 1e-12


def test_documents_of_zeros_and_targets_of_zero_are_no_obstacle():
    inputs, targets = np.array([[0.0], [1.0], [-1.0], [0.0]]), np.array([[1.0], [1.0], [-1.0], [-1.0]])
    for loss in LOSSES.values():
        [weights] = path(inputs, loss(targets), [100.0])
        assert weights == pytest.approx(1, abs=0.02)
    [weights] = path_of_few(np.array([[0.0, 0, 0], [1, 0, 0], [-1, 0, 0]]), targets[:3], [100.0], 1e-6)
    assert weights[:, 0] == pytest.approx([1, 0, 0], abs=1e-3)
    [weights] = path(np.ones((5, 2)), absolute_errors(np.zeros((5, 1))), [1.0])
    assert weights.tolist() == [[0], [0]]


@given(shape=SHAPES)
def test_few_documents_have_a_model_as_good_as_that_of_many(shape):
    inputs, targets = drawn_for("hinge", shape)
    grid = (0.01, 0.1, 1.0)
    of_few, of_many = path_of_few(inputs, targets[:, None], grid, 1e-4), path(inputs, hinge(targets[:, None]), grid)
    for c, *found in zip(grid, of_few, of_many, strict=True):
        few, many = (objective("hinge", weights[:, 0], inputs, targets, c) for weights in found)
        assert few * (1 - 1e-4) <= many + 1e-12
        assert many * (1 - GAP) <= few + 1e-12


@pytest.mark.parametrize(("mode", "seed"), [("compat", 7), ("correct", 2)])
def test_the_order_of_numbers_is_that_of_the_least_objective(mode, seed, monkeypatch):
    """Kendall's τ of years, as vectors of length 1 predict them, is within 0.05 of that with a hundredth of the gap."""
    draw = np.random.default_rng(seed)
    scales = np.geomspace(3, 0.05, 96)
    points = (draw.normal(size=(2000, 96)) + 4 * draw.normal(size=96)) * scales
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    signal = points @ draw.normal(size=96)
    years = 2010 + 3 * (signal - signal.mean()) / signal.std() + 6 * draw.normal(size=2000)
    train, test = slice(0, 1300), slice(1300, None)
    taus = []
    for gap in (GAP_OF_NUMBERS, GAP_OF_NUMBERS / 100):
        monkeypatch.setattr("cocite.evaluation.linear_models.GAP_OF_NUMBERS", gap)
        model = fit_regression(Protocol(task=TASKS["pub_year"], seed=1, mode=mode), points[train], years[train])
        taus.append(100 * kendalltau(model.outputs(points[test])[:, 0], years[test]).statistic)
    assert taus[0] == pytest.approx(taus[1], abs=0.05)


@pytest.mark.parametrize("name", LOSSES)
def test_a_model_does_not_depend_on_those_that_are_found_with_it(name):
    inputs, first = drawn_for(name, (200, 10, 3))
    both = np.column_stack([first, drawn_for(name, (200, 10, 4))[1]])
    found = (path(inputs, LOSSES[name](targets), GRID) for targets in (first[:, None], both))
    for alone, together in zip(*found, strict=True):
        np.testing.assert_allclose(together[:, 0], alone[:, 0], rtol=1e-6)


def test_each_label_has_the_model_that_scikit_learn_finds_for_it():
    draw = np.random.default_rng(2)
    points = draw.normal(size=(600, 8)).astype(np.float32)
    labels = (points[:, :3] + draw.normal(size=(600, 3)) > [0, 0.5, 1]).astype(int)
    train, test = slice(0, 300), slice(300, None)
    fitted = fit_labels(Protocol(task=TASKS["fos"], seed=1, mode="compat", threads=2), points[train], labels[train])
    found = fitted.outputs(points[test]) > 0
    model = LinearSVC(loss="hinge", fit_intercept=False, max_iter=10_000, random_state=1)
    search = GridSearchCV(model, {"C": [0.01, 0.1, 1, 10, 100]}, cv=3)
    expected = OneVsRestClassifier(search).fit(points[train], labels[train]).predict(points[test])
    assert np.mean(found == expected) > 0.98
    assert 100 * f1_score(labels[test], found, average="macro") == pytest.approx(
        100 * f1_score(labels[test], expected, average="macro"), abs=1
    )


def test_a_label_that_all_or_no_documents_have_is_predicted_as_it_was_seen():
    points = np.random.default_rng(0).normal(size=(20, 2))
    labels = np.repeat([[1, 0]], 20, axis=0)
    model = fit_labels(Protocol(task=TASKS["fos"], seed=1, mode="correct"), points, labels)
    assert ((model.outputs(points) > 0) == labels).all()


def test_correct_models_are_those_of_scikit_learn_on_standardised_inputs():
    inputs, values = drawn((300, 6, 4))
    classes = np.digitize(values, np.quantile(values, [0.3, 0.7]))
    model = fit_classes(Protocol(task=TASKS["drsm"], seed=1, mode="correct"), inputs, classes, c=1.0)
    expected = make_pipeline(StandardScaler(), LinearSVC(C=1.0, tol=1e-8, max_iter=100_000)).fit(inputs, classes)
    np.testing.assert_allclose(model.outputs(inputs), expected.decision_function(inputs), atol=0.02)


@pytest.mark.parametrize("fit", [fit_labels, fit_classes, fit_regression])
def test_threads_change_nothing(fit):
    points = np.random.default_rng(5).normal(size=(90, 5))
    targets = {fit_labels: points[:, :4] > 0, fit_classes: points[:, :3].argmax(axis=1), fit_regression: points[:, 0]}
    one, four = (
        fit(Protocol(task=TASKS["fos"], seed=1, mode="compat", threads=threads), points, targets[fit] * 1)
        for threads in (1, 4)
    )
    assert np.array_equal(one.weights, four.weights)
