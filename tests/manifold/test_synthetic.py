"""The known manifolds are what they claim to be, and their coordinates are found among the distractors."""

import numpy as np
import pytest
from scipy.integrate import quad

import isopursuit as ip
from isopursuit.errors import ParameterError
from isopursuit.manifold import clifford_torus, differentials, swiss_roll, tangent_spaces

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
def test_the_true_coordinates_are_isometric_on_the_true_tangent_spaces(name):
    manifold = MANIFOLDS[name](200)
    T = true_tangents(manifold.points)
    G = manifold.dictionary.gradients[:, :, [manifold.dictionary.labels.index(label) for label in manifold.truth]]
    np.testing.assert_allclose(np.swapaxes(T, 1, 2) @ G, np.tile(np.eye(2), (200, 1, 1)), atol=1e-12)


@pytest.mark.parametrize("name", MANIFOLDS)
def test_gradients_are_those_of_the_values(name):
    """Between near points values differ by ⟨mean gradient, step⟩, but for a cut where an angle jumps."""
    manifold = MANIFOLDS[name](4000, noise=0.1)
    x, values, gradients = manifold.points, manifold.dictionary.values, manifold.dictionary.gradients
    order = np.argsort(np.linalg.norm(x - x[0], axis=1))[1:4]
    for j in order:
        rise = (x[j] - x[0]) @ (gradients[0] + gradients[j]) / 2
        scale = np.linalg.norm(x[j] - x[0])
        smooth = np.abs(values[j] - values[0]) < 3 * scale
        assert smooth.mean() > 0.9
        assert np.abs(rise - (values[j] - values[0]))[smooth].max() < 0.1 * scale


def test_the_arc_length_is_the_spirals():
    roll = swiss_roll(50)
    t = np.hypot(roll.points[:, 0], roll.points[:, 2])
    lengths = roll.dictionary.value("arc length")
    for i in range(5):
        expected = quad(lambda u: np.sqrt(1 + u**2), 0, t[i])[0]
        assert lengths[i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("name", "noise"), [("roll", 0.0), ("roll", 0.3), ("torus", 0.0), ("torus", 0.1)])
def test_the_true_coordinates_are_found_among_50_distractors(name, noise):
    manifold = MANIFOLDS[name](3000, noise=noise)
    at = np.arange(60)
    spaces = tangent_spaces(manifold.points, at, D=2, neighbours=60)
    found = differentials(manifold.dictionary.take(at), spaces, unit=None)
    assert found.matrices.shape == (60, 2, 52)
    for method in ("two-stage", "exact"):
        picked = ip.select(found, method=method)
        assert set(picked.labels) == set(manifold.truth)
        assert picked.search.optimal
    if noise == 0:
        assert set(ip.select_pointwise(found).subsets[0].labels) == set(manifold.truth)


def test_the_same_call_gives_the_same_manifold_and_other_seeds_others():
    np.testing.assert_array_equal(swiss_roll(30).dictionary.gradients, swiss_roll(30).dictionary.gradients)
    assert not np.array_equal(swiss_roll(30, rng=1).points, swiss_roll(30, rng=2).points)
    assert len(clifford_torus(30, distractors=3).dictionary.labels) == 5
    with pytest.raises(ParameterError, match="noise"):
        swiss_roll(noise=-1)
    for wrong in ({"n": 0}, {"n": -1}, {"distractors": -1}):
        for manifold in (swiss_roll, clifford_torus):
            with pytest.raises(ParameterError, match=f"got.*{next(iter(wrong))}={next(iter(wrong.values()))}"):
                manifold(**wrong)
    with pytest.raises(ParameterError, match="radii"):
        clifford_torus(radii=(1.0, 0.0))
