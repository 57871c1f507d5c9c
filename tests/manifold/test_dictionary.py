"""Values, gradients and differentials against finite differences and plain products."""

import sys

import numpy as np
import pytest
from backends import marked

import isopursuit as ip
from isopursuit.errors import IsoPursuitError, LabelError, NonFiniteError, ParameterError, ShapeError
from isopursuit.manifold import as_dictionary, differentials, evaluate_dictionary, tangent_spaces


def central_differences(function, points, h=1e-6):
    """(n, B) from values of one function of all points."""
    steps = h * np.eye(points.shape[1])
    return np.stack([(function(points + s) - function(points - s)) / (2 * h) for s in steps], axis=1)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(12, 3)) + 2


FUNCTIONS = {"height": lambda x: x[:, 2] ** 2, "radius": lambda x: np.sqrt((x**2).sum(axis=1))}
GRADIENTS = {
    "height": lambda x: np.column_stack([0 * x[:, 0], 0 * x[:, 0], 2 * x[:, 2]]),
    "radius": lambda x: x / np.sqrt((x**2).sum(axis=1))[:, None],
}


def test_callables_by_name(points):
    found = evaluate_dictionary(FUNCTIONS, points, gradients=GRADIENTS)
    assert found.labels == ("height", "radius")
    for p, function in enumerate(FUNCTIONS.values()):
        np.testing.assert_allclose(found.values[:, p], function(points))
        np.testing.assert_allclose(found.gradients[:, :, p], central_differences(function, points), atol=1e-8)
    np.testing.assert_allclose(found.value("radius"), FUNCTIONS["radius"](points))
    some = found.take([3, 1])
    np.testing.assert_array_equal(some.gradients, found.gradients[[3, 1]])
    np.testing.assert_array_equal(some.values, found.values[[3, 1]])


def test_one_callable_for_all_functions(points):
    A = np.random.default_rng(1).normal(size=(3, 5))
    found = evaluate_dictionary(lambda x: x @ A, points, gradients=lambda x: np.tile(A, (len(x), 1, 1)), labels="abcde")
    assert found.labels == tuple("abcde")
    np.testing.assert_allclose(found.values, points @ A)
    assert found.gradients.shape == (12, 3, 5)


@pytest.mark.parametrize("framework", marked(["torch", "jax"]))
def test_automatic_gradients_are_exact_and_in_float64(points, framework):
    xp = pytest.importorskip("torch") if framework == "torch" else pytest.importorskip("jax").numpy

    def angle(x):
        return xp.arctan2(x[1], x[0])

    def radius(x):
        return xp.sqrt((x**2).sum())

    found = evaluate_dictionary([angle, radius], points, framework=framework)
    assert found.labels == ("angle", "radius")
    x, y, _ = points.T
    turn = np.column_stack([-y, x, 0 * x]) / (x**2 + y**2)[:, None]
    np.testing.assert_allclose(found.gradients[:, :, 0], turn, rtol=1e-13)
    np.testing.assert_allclose(found.gradients[:, :, 1], GRADIENTS["radius"](points), rtol=1e-13)
    np.testing.assert_allclose(
        found.values, np.column_stack([np.arctan2(y, x), FUNCTIONS["radius"](points)]), rtol=1e-13
    )
    together = evaluate_dictionary(lambda x: xp.stack([angle(x), radius(x)]), points, framework=framework)
    np.testing.assert_allclose(together.gradients, found.gradients, rtol=1e-13)
    np.testing.assert_allclose(together.values, found.values, rtol=1e-13)
    assert together.labels == (0, 1)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_framework_that_is_missing_is_named(points, framework, monkeypatch):
    monkeypatch.setitem(sys.modules, framework, None)
    with pytest.raises(IsoPursuitError, match=rf"isopursuit\[{framework}\]"):
        evaluate_dictionary([lambda x: x[0]], points, framework=framework)


def sheet():
    rng = np.random.default_rng(3)
    u = rng.uniform(size=(300, 2))
    data = np.column_stack([u, 0.2 * u[:, 0] ** 2, 0.1 * u[:, 1] ** 2])
    return tangent_spaces(data, range(20), D=2, neighbours=25), rng.normal(size=(20, 4, 9))


def test_differentials_are_projected_gradients():
    spaces, gradients = sheet()
    labels = [f"f{i}" for i in range(9)]
    plain = differentials(gradients, spaces, labels=labels, unit=None)
    assert plain.matrices.shape == (20, 2, 9)
    assert plain.labels == tuple(labels)
    for i in range(20):
        np.testing.assert_allclose(plain.matrices[i], spaces.bases[i].T @ gradients[i], atol=1e-14)
    overall = differentials(gradients, spaces).matrices
    np.testing.assert_allclose((np.linalg.norm(overall, axis=1) ** 2).mean(axis=0), 1.0)
    ratio = overall / plain.matrices
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:1, :1], ratio.shape))


def test_a_gradient_that_vanishes_stays_zero():
    spaces, gradients = sheet()
    gradients[:, :, 4] = 0.0
    for unit in ("overall", None, "median", "each"):
        found = differentials(gradients, spaces, unit=unit)
        assert not found.matrices[:, :, 4].any()
        assert 4 not in ip.select(found, method="exchange").indices


def test_labels_travel_to_every_door():
    spaces, gradients = sheet()
    names = [f"function {i}" for i in range(9)]
    found = differentials(as_dictionary(gradients, names), spaces)
    picked = ip.select(found)
    assert picked.labels == tuple(names[i] for i in picked.indices)
    assert ip.isometry_pursuit(found).labels == tuple(names)
    assert set(ip.select_pointwise(found).subsets[0].labels) <= set(names)
    assert ip.exact_search(found).labels == tuple(names)


def test_what_does_not_fit_is_refused(points):
    spaces, gradients = sheet()
    with pytest.raises(ShapeError, match="20 tangent spaces"):
        differentials(gradients[:5], spaces)
    with pytest.raises(ShapeError, match=r"\(n, B, P\)"):
        differentials(gradients[0], spaces)
    with pytest.raises(ParameterError, match="overall"):
        differentials(gradients, spaces, unit="after")
    with pytest.raises(LabelError, match="2 labels"):
        differentials(gradients, spaces, labels=["a", "b"])
    gradients[7, 1, 3] = np.nan
    with pytest.raises(NonFiniteError, match="for 3, first at point 7"):
        differentials(gradients, spaces)
    with pytest.raises(ParameterError, match="Pass either gradients="):
        evaluate_dictionary(FUNCTIONS, points)
    with pytest.raises(ParameterError, match="Pass either gradients="):
        evaluate_dictionary(FUNCTIONS, points, gradients=GRADIENTS, framework="torch")
    with pytest.raises(ParameterError, match="not recognized"):
        evaluate_dictionary(FUNCTIONS, points, framework="theano")
    with pytest.raises(LabelError, match="one gradient for each"):
        evaluate_dictionary(FUNCTIONS, points, gradients={"radius": GRADIENTS["radius"]})
    with pytest.raises(ShapeError, match="expected"):
        evaluate_dictionary(FUNCTIONS, points, gradients=FUNCTIONS)
    with pytest.raises(ParameterError, match="only gradients"):
        as_dictionary(np.ones((2, 3, 4))).value(0)
    with pytest.raises(LabelError, match="not a function"):
        evaluate_dictionary(FUNCTIONS, points, gradients=GRADIENTS).value("width")


def test_the_choice_does_not_depend_on_the_units_of_the_functions():
    spaces, gradients = sheet()
    plain, other = (ip.select(differentials(gradients * unit, spaces)) for unit in (1.0, np.geomspace(0.01, 100, 9)))
    assert plain.labels == other.labels
    assert plain.loss == pytest.approx(other.loss)
    median = differentials(gradients, spaces, unit="median")
    assert np.median(np.linalg.norm(median.matrices, axis=1)) == pytest.approx(1.0)
    assert median.tangents is spaces
