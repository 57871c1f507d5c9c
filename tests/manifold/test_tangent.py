"""Tangent spaces against a plain SVD of each neighbourhood, found by sorting all distances."""

import numpy as np
import pytest
from oracles import random_rotation

from isopursuit.errors import ParameterError, RankError
from isopursuit.manifold import tangent_spaces


def by_svd(points, place, D, k):
    """The basis and the variances, from the definition."""
    inside = np.argsort(np.linalg.norm(points - place, axis=1), kind="stable")[:k]
    _, s, vt = np.linalg.svd((points[inside] - points[inside].mean(axis=0)) / np.sqrt(k), full_matrices=False)
    return vt[:D].T, s**2


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
        basis, variances = by_svd(points, place, 2, k)
        assert_same_space(spaces.bases[i], basis)
        m = min(len(variances), 10, k - 1)
        np.testing.assert_allclose(spaces.spectra[i, :m], variances[:m], atol=1e-12)
        assert spaces.totals[i] == pytest.approx(variances.sum())
    assert spaces.neighbours == k
    assert spaces.at.tolist() == at.tolist()


def test_all_points_with_progress():
    points = bent_sheet(700, 20, np.random.default_rng(1))
    seen = []
    spaces = tangent_spaces(points, D=2, neighbours=30, callback=lambda *now: seen.append(now))
    alone = tangent_spaces(points, [699], D=2, neighbours=30)
    np.testing.assert_array_equal(spaces.bases[699:], alone.bases)
    assert len(spaces.bases) == 700
    assert seen[-1] == (700, 700)


def test_rotating_the_data_rotates_the_tangent_spaces():
    rng = np.random.default_rng(3)
    points = bent_sheet(300, 18, rng)
    turn = random_rotation(18, rng)
    plain, turned = (tangent_spaces(data, range(20), D=2, neighbours=40) for data in (points, points @ turn))
    for one, other in zip(plain.bases, turned.bases, strict=True):
        assert_same_space(turn.T @ one, other)


def test_curves_surfaces_and_solids_have_their_variance_in_as_many_directions():
    rng = np.random.default_rng(2)
    for D in (1, 2, 3, 5):
        u = rng.uniform(0, 1, (3000, D))
        # a product of circles: flat, of dimension D, in 2 D dimensions
        points = np.concatenate([np.cos(2 * u), np.sin(2 * u)], axis=1) + 1e-3 * rng.normal(size=(3000, 2 * D))
        spaces = tangent_spaces(points, range(50), D=D, neighbours=40 + 20 * D)
        assert (spaces.explained > 0.9).all()
        assert f"tangent spaces of dimension {D} in {2 * D} dimensions" in str(spaces)


def test_projection_takes_coordinates_in_each_space():
    points = bent_sheet(200, 6, np.random.default_rng(5))
    spaces = tangent_spaces(points, [3, 8], D=2, neighbours=30)
    vectors = np.random.default_rng(0).normal(size=(2, 6, 7))
    np.testing.assert_allclose(spaces.project(vectors)[1], spaces.bases[1].T @ vectors[1])


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
        ({"neighbours": 2}, "at least 3"),
        ({"neighbours": 51}, "at least 102 points are needed"),
        ({"D": 5}, "4 coordinates"),
        ({"D": 0}, "at least 1"),
        ({"leading": 0}, "at least 1"),
        ({"at": [100]}, "0 to 99"),
        ({"at": []}, "at "),
        ({"at": [0.5]}, "at "),
    ],
)
def test_options_out_of_range_are_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        tangent_spaces(bent_sheet(100, 4, np.random.default_rng(0)), **{"D": 2, "neighbours": 9} | options)


def test_members_are_the_nearest_points():
    points = bent_sheet(100, 4, np.random.default_rng(1))
    spaces = tangent_spaces(points, [7, 50], D=2, neighbours=9).take([1])
    assert set(spaces.members[0]) == set(np.linalg.norm(points - points[50], axis=1).argsort()[:9])


def test_more_dimensions_than_the_spectrum_shows_by_default():
    points = np.random.default_rng(2).normal(size=(300, 15))
    assert tangent_spaces(points, range(5), D=12, neighbours=60).bases.shape == (5, 15, 12)


def test_a_far_cluster_has_the_tangent_spaces_of_a_near_one():
    sheet = np.round(bent_sheet(60, 20, np.random.default_rng(4)) * 2.0**20) / 2.0**20  # exact when moved by 2**27
    near = tangent_spaces(sheet, D=2, neighbours=20)
    both = tangent_spaces(np.vstack([sheet - 2.0**27, sheet + 2.0**27]), D=2, neighbours=20)
    np.testing.assert_allclose(both.spectra, np.tile(near.spectra, (2, 1)), atol=1e-14)
    for one, other in zip(near.bases, both.bases[60:], strict=True):
        assert_same_space(one, other)
