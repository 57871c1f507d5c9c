"""Tangent spaces against a plain SVD of each neighbourhood, found by sorting all distances."""

import numpy as np
import pytest
from oracles import random_rotation

from isopursuit.errors import IsoPursuitError, ParameterError, RankError, ShapeError
from isopursuit.manifold import neighbours as finder
from isopursuit.manifold.tangent import estimate_dimension, tangent_spaces


def by_svd(points, place, D, k=None, radius=None, weight=None):
    """The basis and the variances, from the definition."""
    distances = np.linalg.norm(points - place, axis=1)
    inside = np.argsort(distances, kind="stable")[:k] if radius is None else np.flatnonzero(distances <= radius)
    w = np.ones(len(inside)) if weight is None else weight(distances[inside])
    w = w / w.sum()
    Y = (points[inside] - w @ points[inside]) * np.sqrt(w)[:, None]
    _, s, vt = np.linalg.svd(Y, full_matrices=False)
    return vt[:D].T, s**2, len(inside)


def assert_same_space(first, second, atol=1e-7):
    """Equal as subspaces: the projections agree."""
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=atol)


def bent_sheet(n, B, rng, noise=0.01):
    """A curved surface in B dimensions, turned, with a little noise."""
    u = rng.uniform(-1, 1, (n, 2))
    flat = np.column_stack([u, 0.3 * u[:, 0] ** 2, 0.2 * u[:, 0] * u[:, 1]])
    return flat @ random_rotation(B, rng)[:4] + noise * rng.normal(size=(n, B))


@pytest.mark.parametrize(("B", "k"), [(4, 30), (4, 3), (20, 60), (20, 12), (60, 100), (60, 25), (60, 55)])
def test_nearest_neighbours_give_the_svds_space_and_variances(B, k):
    rng = np.random.default_rng(B + k)
    points = bent_sheet(400, B, rng)
    at = rng.permutation(400)[:25]
    spaces = tangent_spaces(points, at, D=2, neighbours=k)
    assert spaces.bases.shape == (25, B, 2)
    np.testing.assert_allclose(
        np.swapaxes(spaces.bases, 1, 2) @ spaces.bases, np.tile(np.eye(2), (25, 1, 1)), atol=1e-12
    )
    for i, place in enumerate(points[at]):
        basis, variances, count = by_svd(points, place, 2, k)
        assert_same_space(spaces.bases[i], basis)
        m = min(len(variances), 10, k - 1)
        np.testing.assert_allclose(spaces.spectra[i, :m], variances[:m], atol=1e-12)
        assert spaces.totals[i] == pytest.approx(variances.sum())
        assert spaces.counts[i] == count
    assert spaces.at.tolist() == at.tolist()
    assert spaces.how == "given"


@pytest.mark.parametrize("B", [3 + 1, 30])
@pytest.mark.parametrize("weights", [None, "gaussian", lambda d: 1 / (0.1 + d)])
def test_neighbours_within_a_radius_and_weights(B, weights):
    rng = np.random.default_rng(B)
    points = bent_sheet(600, B, rng)
    places = points[:10] + 0.01
    spaces = tangent_spaces(points, places, D=2, radius=0.5, weights=weights)
    weight = (lambda d: np.exp(-2 * (d / 0.5) ** 2)) if weights == "gaussian" else weights
    for i, place in enumerate(places):
        basis, variances, count = by_svd(points, place, 2, radius=0.5, weight=weight)
        assert_same_space(spaces.bases[i], basis)
        np.testing.assert_allclose(spaces.spectra[i, :3], variances[:3], rtol=1e-8)
        assert spaces.counts[i] == count
    assert spaces.at is None


def test_gaussian_weights_of_nearest_neighbours_reach_to_the_farthest():
    rng = np.random.default_rng(0)
    points = bent_sheet(300, 5, rng)
    spaces = tangent_spaces(points, [7], D=2, neighbours=40, weights="gaussian")
    edge = np.sort(np.linalg.norm(points - points[7], axis=1))[39]
    basis, variances, _ = by_svd(points, points[7], 2, 40, weight=lambda d: np.exp(-2 * (d / edge) ** 2))
    assert_same_space(spaces.bases[0], basis)
    np.testing.assert_allclose(spaces.spectra[0], variances, rtol=1e-8)


def test_all_points_in_threads_and_with_progress():
    points = bent_sheet(700, 20, np.random.default_rng(1))
    seen = []
    spaces = tangent_spaces(points, D=2, neighbours=30, workers=2, callback=lambda *now: seen.append(now))
    alone = tangent_spaces(points, D=2, neighbours=30)
    np.testing.assert_array_equal(spaces.bases, alone.bases)
    assert len(spaces.bases) == 700
    assert seen[-1] == (700, 700)


def test_rotating_the_data_rotates_the_tangent_spaces():
    rng = np.random.default_rng(3)
    points = bent_sheet(300, 18, rng)
    turn = random_rotation(18, rng)
    plain, turned = (tangent_spaces(data, range(20), D=2, neighbours=40) for data in (points, points @ turn))
    for one, other in zip(plain.bases, turned.bases, strict=True):
        assert_same_space(turn.T @ one, other)


def test_curves_surfaces_and_solids_are_told_apart():
    rng = np.random.default_rng(2)
    for D in (1, 2, 3, 5):
        u = rng.uniform(0, 1, (3000, D))
        # a product of circles: flat, of dimension D, in 2 D dimensions
        points = np.concatenate([np.cos(2 * u), np.sin(2 * u)], axis=1) + 1e-3 * rng.normal(size=(3000, 2 * D))
        spaces = tangent_spaces(points, range(50), neighbours=40 + 20 * D)
        assert spaces.dimension == D
        assert spaces.how == "estimated"
        assert (spaces.dimensions == D).mean() > 0.6
        assert (spaces.explained > 0.9).all()
        assert f"dimension {D} (estimated)" in str(spaces)


def test_what_falls_after_the_variance_is_exhausted_is_no_dimension():
    assert estimate_dimension(np.array([0.5, 0.48, 0.01, 1e-3, 1e-12])) == 2
    assert estimate_dimension(np.array([1.0])) == 1
    assert estimate_dimension(np.array([0.3, 0.3, 0.3, 0.0])) == 3


def test_projection_takes_coordinates_in_each_space():
    points = bent_sheet(200, 6, np.random.default_rng(5))
    spaces = tangent_spaces(points, [3, 8], D=2, neighbours=30)
    vectors = np.random.default_rng(0).normal(size=(2, 6, 7))
    np.testing.assert_allclose(spaces.project(vectors)[1], spaces.bases[1].T @ vectors[1])


def test_too_small_a_radius_is_refused_with_one_that_works():
    points = bent_sheet(200, 4, np.random.default_rng(0))
    with pytest.raises(ShapeError, match=r"fewer than 3 points.*radius ≥") as error:
        tangent_spaces(points, D=2, radius=0.03)
    enough = float(str(error.value).split("radius ≥ ")[1].split(" ")[0])
    assert (tangent_spaces(points, D=2, radius=enough).counts >= 3).all()
    with pytest.raises(ShapeError, match="fewer than 2 points"):
        tangent_spaces(points, radius=1e-6)


def test_copies_of_one_point_are_refused_by_number():
    points = bent_sheet(100, 4, np.random.default_rng(0))
    points[40:60] = points[40]
    with pytest.raises(RankError, match="point 40 spans 0"):
        tangent_spaces(points, [3, 40], D=2, neighbours=15)
    line = np.linspace(0, 1, 50)[:, None] * np.ones(20)
    with pytest.raises(RankError, match="spans 1"):
        tangent_spaces(line, D=2, neighbours=10)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "either neighbours"),
        ({"neighbours": 9, "radius": 1.0}, "either neighbours"),
        ({"neighbours": 2, "D": 2}, "at least 3"),
        ({"neighbours": 51}, "at least 102 points are needed"),
        ({"radius": 100.0}, "100 of 100 points"),
        ({"neighbours": 9, "D": 5}, "4 coordinates"),
        ({"radius": -1.0}, "positive"),
        ({"neighbours": 9, "weights": "flat"}, "gaussian"),
        ({"neighbours": 9, "weights": lambda d: -d}, "≥ 0"),
        ({"neighbours": 9, "method": "magic"}, "approximate"),
        ({"radius": 1.0, "method": "approximate"}, "neighbours="),
        ({"neighbours": 9, "workers": 0}, "workers=0"),
        ({"neighbours": 9, "at": [100]}, "0 to 99"),
    ],
)
def test_options_out_of_range_are_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        tangent_spaces(bent_sheet(100, 4, np.random.default_rng(0)), **options)


def test_places_of_the_wrong_shape_are_refused():
    points = bent_sheet(100, 4, np.random.default_rng(0))
    for at in ([], [[1.0, 2.0]], [0.5]):
        with pytest.raises(ShapeError, match="at "):
            tangent_spaces(points, at, neighbours=9)


@pytest.mark.needs("pynndescent")
def test_approximate_neighbours_are_nearly_the_nearest():
    points = bent_sheet(2000, 20, np.random.default_rng(0))
    exact = tangent_spaces(points, range(50), D=2, neighbours=50)
    near = tangent_spaces(points, range(50), D=2, neighbours=50, method="approximate")
    overlap = np.linalg.svd(np.swapaxes(exact.bases, 1, 2) @ near.bases, compute_uv=False)
    assert overlap.min() > 0.99


def test_without_pynndescent_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynndescent", None)
    with pytest.raises(IsoPursuitError, match=r"isopursuit\[manifold\]"):
        finder.neighbour_search(np.zeros((5, 2)), 3, None, "approximate")


def test_points_that_fill_their_space_have_its_dimension():
    rng = np.random.default_rng(0)
    for B in (2, 3):
        assert tangent_spaces(rng.uniform(size=(2000, B)), range(20), neighbours=60).dimension == B


def test_a_small_neighbourhood_does_not_pass_for_a_high_dimension():
    rng = np.random.default_rng(1)
    plane = np.pad(rng.uniform(size=(2000, 2)), ((0, 0), (0, 18))) + 1e-3 * rng.normal(size=(2000, 20))
    for neighbours in (8, 12, 30):
        assert tangent_spaces(plane, range(20), neighbours=neighbours).dimension == 2


def test_more_dimensions_than_the_spectrum_shows_by_default():
    points = np.random.default_rng(2).normal(size=(300, 15))
    assert tangent_spaces(points, range(5), D=12, neighbours=60).bases.shape == (5, 15, 12)


@pytest.mark.parametrize("B", [4, 20, 60])
@pytest.mark.parametrize("spread", [0.0, 1e3, 1e8, 1e12])
def test_neighbours_are_right_wherever_clusters_are(B, spread):
    rng = np.random.default_rng(B)
    points = np.vstack([rng.normal(size=(21, B)) + centre for centre in (-spread, spread, 0.5 * spread)])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    within = np.unique(apart[:21, :21])
    radius = float(within[len(within) // 2 :][:2].mean())  # between two distances
    search = finder.neighbour_search(points, None, radius, "exact")
    numbers, distances, there = search(points)
    nearest, reach, _ = finder.neighbour_search(points, 9, None, "exact")(points)
    for i in range(len(points)):
        assert sorted(numbers[i, there[i]]) == np.flatnonzero(apart[i] <= radius).tolist()
        np.testing.assert_allclose(distances[i, there[i]], apart[i, numbers[i, there[i]]], rtol=1e-12)
        assert sorted(nearest[i]) == sorted(np.argsort(apart[i], kind="stable")[:9])
        np.testing.assert_allclose(np.sort(reach[i]), np.sort(apart[i])[:9], rtol=1e-12)


def test_a_far_cluster_has_the_tangent_spaces_of_a_near_one():
    sheet = np.round(bent_sheet(60, 20, np.random.default_rng(4)) * 2.0**20) / 2.0**20  # exact when moved by 2**27
    near = tangent_spaces(sheet, D=2, radius=0.7)
    both = tangent_spaces(np.vstack([sheet - 2.0**27, sheet + 2.0**27]), D=2, radius=0.7)
    np.testing.assert_array_equal(both.counts, np.tile(near.counts, 2))
    np.testing.assert_allclose(both.spectra, np.tile(near.spectra, (2, 1)), atol=1e-14)
    for one, other in zip(near.bases, both.bases[60:], strict=True):
        assert_same_space(one, other)


def test_each_neighbourhoods_dimension_follows_the_rule_of_the_estimate():
    points = np.random.default_rng(0).normal(size=(400, 20))
    spaces = tangent_spaces(points, range(50), neighbours=9)
    assert spaces.dimensions.max() <= 4  # half of what 9 points can span
    assert f"{(spaces.dimensions == spaces.dimension).mean():.0%} of the neighbourhoods" in str(spaces)
    most = int(np.bincount(spaces.dimensions).argmax())
    assert f"D = {most}" in str(spaces).rpartition("suggest")[2]
    alone = tangent_spaces(points, [7], neighbours=9)
    assert alone.dimensions.tolist() == [alone.dimension]
    assert "100% of the neighbourhoods suggest" in str(alone)
