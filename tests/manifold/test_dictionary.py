"""Values, gradients and differentials against finite differences and plain products."""

import numpy as np
import pytest
from manifolds import clifford_torus, swiss_roll
from scipy.integrate import quad

import isopursuit as ip
from isopursuit.errors import FileError, LabelError, NonFiniteError, ParameterError, ShapeError
from isopursuit.manifold import as_dictionary, differentials, read_colvar, tangent_spaces

MANIFOLDS = {"roll": swiss_roll, "torus": clifford_torus}


def true_tangents(points):
    """From the parametrizations."""
    if points.shape[1] == 3:
        t = np.hypot(points[:, 0], points[:, 2])
        along = np.column_stack([np.cos(t) - t * np.sin(t), 0 * t, np.sin(t) + t * np.cos(t)])
        return np.stack([along / np.sqrt(1 + t**2)[:, None], np.tile([0.0, 1.0, 0.0], (len(t), 1))], axis=-1)
    a, b, c, d = points.T
    zero = 0 * a
    first = np.column_stack([-b, a, zero, zero]) / np.hypot(a, b)[:, None]
    second = np.column_stack([zero, zero, -d, c]) / np.hypot(c, d)[:, None]
    return np.stack([first, second], axis=-1)


@pytest.mark.parametrize("name", MANIFOLDS)
def test_the_manifolds_of_the_tests_are_what_they_claim(name):
    manifold = MANIFOLDS[name](200)
    T = true_tangents(manifold.points)
    G = manifold.dictionary.gradients[:, :, [manifold.dictionary.labels.index(label) for label in manifold.truth]]
    np.testing.assert_allclose(np.swapaxes(T, 1, 2) @ G, np.tile(np.eye(2), (200, 1, 1)), atol=1e-12)
    if name == "roll":
        t = np.hypot(manifold.points[0, 0], manifold.points[0, 2])
        expected = quad(lambda u: np.sqrt(1 + u**2), 0, t)[0]
        assert manifold.dictionary.value("arc length")[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("name", "noise"), [("roll", 0.0), ("roll", 0.3), ("torus", 0.1)])
def test_the_true_coordinates_are_found_among_50_distractors(name, noise):
    manifold = MANIFOLDS[name](3000, noise=noise)
    spaces = tangent_spaces(manifold.points, np.arange(60), D=2, neighbours=60)
    found = differentials(manifold.dictionary.take(np.arange(60)), spaces, unit=None)
    for method in ("two-stage", "exact"):
        picked = ip.select(found, method=method)
        assert set(picked.labels) == set(manifold.truth)
        assert picked.search.optimal


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


def test_what_does_not_fit_is_refused():
    points = np.ones((6, 2))
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
    with pytest.raises(ParameterError, match="only gradients"):
        as_dictionary(np.ones((2, 3, 4))).value(0)
    with pytest.raises(LabelError, match="not a function"):
        as_dictionary(values=points).value("width")
    with pytest.raises(ShapeError, match="expected"):
        as_dictionary(np.ones((2, 3, 4)), values=np.ones((2, 5)))


def test_dictionaries_are_taken_at_points_and_added():
    values = np.arange(12.0).reshape(4, 3)
    first = as_dictionary(np.ones((4, 2, 3)), values=values, labels="abc")
    np.testing.assert_array_equal(first.take([2, 0]).values, values[[2, 0]])
    assert first.take([2, 0]).gradients.shape == (2, 2, 3)
    both = as_dictionary(values=values, labels="abc") + as_dictionary(values={"t": values[:, 0]}, periodic=True)
    assert both.labels == ("a", "b", "c", "t")
    assert both.periods.tolist() == [np.inf] * 3 + [2 * np.pi]
    with pytest.raises(LabelError, match="more than once"):
        both + both
    with pytest.raises(ShapeError, match="at the same points"):
        both + both.take([1, 2])


def test_the_choice_does_not_depend_on_the_units_of_the_functions():
    spaces, gradients = sheet()
    plain, other = (ip.select(differentials(gradients * unit, spaces)) for unit in (1.0, np.geomspace(0.01, 100, 9)))
    assert plain.labels == other.labels
    assert plain.loss == pytest.approx(other.loss)
    median = differentials(gradients, spaces, unit="median")
    assert np.median(np.linalg.norm(median.matrices, axis=1)) == pytest.approx(1.0)
    assert median.tangents is spaces


@pytest.mark.parametrize(("make", "k"), [(swiss_roll, 30), (clifford_torus, 30)])
def test_slopes_from_values_are_the_analytic_gradients(make, k):
    """On all functions that change along both manifolds; the median error is that of curvature, about r²."""
    made = make(4000, distractors=20)
    at = np.arange(0, 4000, 80)
    spaces = tangent_spaces(made.points, at, D=2, neighbours=k)
    analytic = differentials(made.dictionary.take(at), spaces, unit=None)
    values, labels = made.dictionary.values, made.dictionary.labels
    turns = {"first arc": 2, "second arc": 2, "twice the first arc": 4, "half the second arc": 1, "sum of arcs": 2}
    periods = {label: np.pi * turn for label, turn in turns.items() if make is clifford_torus}
    dictionary = as_dictionary(values=values, labels=labels, periodic=periods)
    found = differentials(dictionary, spaces, unit=None, points=made.points)
    scale = np.sqrt((analytic.matrices**2).sum(axis=1).mean(axis=0))
    wrong = np.linalg.norm(found.matrices - analytic.matrices, axis=1) / np.where(scale > 0.1, scale, np.inf)
    assert np.median(wrong) < 0.02
    assert np.quantile(wrong, 0.9) < 0.15  # at the edges of the roll the neighbours are on one side


@pytest.mark.parametrize("period", [np.inf, 2 * np.pi])
def test_standard_errors_are_those_of_noise(period):
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(3000, 2))
    values = points @ [[1.0], [2.0]] + 0.1 * rng.normal(size=(3000, 1))
    if period < np.inf:
        values = np.angle(np.exp(1j * values))
    spaces = tangent_spaces(points, range(0, 3000, 10), D=2, neighbours=100)
    dictionary = as_dictionary(values=values, periodic=period < np.inf)
    found = differentials(dictionary, spaces, unit=None, points=points)
    truth = spaces.project(np.tile([[1.0], [2.0]], (300, 1, 1)))
    scores = (found.matrices - truth) / found.errors
    assert np.sqrt((scores**2).mean()) == pytest.approx(1.0, abs=0.1)
    scaled = differentials(dictionary, spaces, points=points)
    np.testing.assert_allclose(scaled.errors / scaled.matrices, found.errors / found.matrices)


def test_the_period_and_the_jump_do_not_matter():
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 2 * np.pi, 800)
    ring = np.column_stack([np.cos(t), np.sin(t)])
    spaces = tangent_spaces(ring, range(40), D=1, neighbours=20)
    slopes = [
        differentials(as_dictionary(values=v[:, None], periodic=p), spaces, points=ring, unit=None).matrices
        * 2
        * np.pi
        / p
        for v, p in ((t, 2 * np.pi), (np.angle(np.exp(1j * (t + 1))), 2 * np.pi), (np.degrees(t), 360.0))
    ]
    np.testing.assert_allclose(slopes[0], slopes[1], atol=1e-9)
    np.testing.assert_allclose(slopes[0], slopes[2], atol=1e-9)
    np.testing.assert_allclose(np.abs(slopes[0]), 1.0, rtol=0.01)


def test_values_that_do_not_fit_are_refused():
    points = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(ParameterError, match="values of the functions, their gradients"):
        as_dictionary()
    with pytest.raises(LabelError, match="periodic= names 'c'"):
        as_dictionary(values={"a": points[:, 0]}, periodic=["c"])
    with pytest.raises(ParameterError, match="must be positive"):
        as_dictionary(values={"a": points[:, 0]}, periodic={"a": -1.0})
    spaces = tangent_spaces(points, range(3), D=2, neighbours=6)
    with pytest.raises(ParameterError, match="Pass points="):
        differentials(as_dictionary(values=points), spaces)
    with pytest.raises(ShapeError, match="values at 5 points"):
        differentials(as_dictionary(values=points[:5]), spaces, points=points)


def test_a_colvar_file_has_values_and_periods(tmp_path):
    file = tmp_path / "COLVAR"
    file.write_text("#! FIELDS time phi d\n#! SET min_phi -pi\n#! SET max_phi pi\n 0.0 1.5 2\n 1.0 -3.0 4\n")
    found = read_colvar(file)
    assert found.labels == ("phi", "d")
    np.testing.assert_allclose(found.periods, [2 * np.pi, np.inf])
    np.testing.assert_array_equal(found.values, [[1.5, 2.0], [-3.0, 4.0]])
    for text in ("a,b\n1,2\n", "#! FIELDS time phi\n0.0\n", "#! FIELDS time\n0.0\n"):
        file.write_text(text)
        with pytest.raises(FileError, match="no COLVAR file"):
            read_colvar(file)
